//go:build unix

package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/holdfast/bench/load"
	"example.com/holdfast/bench/peer"
)

// options are what the command line says.
type options struct {
	dir       string
	npm       string
	out       string
	reps      int
	size      load.Size
	list      bool
	peers     []peer.Peer
	workloads []load.Workload
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.dir, "dir", ".", "measure on the filesystem of this directory, in a new one below it")
	fs.StringVar(&o.npm, "package", defaultNpm(), "directory with node_modules of the npm package; see .ci/npm")
	fs.StringVar(&o.out, "out", "", "write the page to this file too")
	fs.IntVar(&o.reps, "reps", 5, "trials of each peer in each workload")
	fs.IntVar(&o.size.Messages, "messages", 1000, "the most messages that one goroutine has in one trial")
	fs.DurationVar(&o.size.Limit, "limit", 400*time.Millisecond, "no message is begun later than this in a trial")
	fs.BoolVar(&o.list, "list", false, "list the workloads and the peers, and why one is left out here")
	only := fs.String("only", "", "workloads, separated by commas; empty: all")
	peers := fs.String("peers", "", "peers, separated by commas; empty: all")
	deep := fs.Bool("deep", false, "a million pending too, which takes minutes to fill")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 || o.reps < 1 || o.size.Messages < 1 || o.size.Limit <= 0 {
		return o, fmt.Errorf("usage: bench [flags], all of them positive; see -help")
	}
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return o, err
	}
	o.dir = dir
	workloads := slices.DeleteFunc(load.All(), func(w load.Workload) bool { return w.Deep && !*deep })
	if o.workloads, err = pick(workloads, *only, func(w load.Workload) string { return w.Key }); err != nil {
		return o, err
	}
	o.peers, err = pick(peer.All(o.npm), *peers, func(p peer.Peer) string { return p.Key })
	return o, err
}

// pick keeps those whose keys are in the list, all for an empty one.
func pick[T any](all []T, list string, key func(T) string) ([]T, error) {
	if list == "" {
		return all, nil
	}
	keys := strings.Split(list, ",")
	for _, k := range keys {
		if !slices.ContainsFunc(all, func(t T) bool { return key(t) == k }) {
			return nil, fmt.Errorf("there is no %q; see -list", k)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(t T) bool { return !slices.Contains(keys, key(t)) }), nil
}

// defaultNpm is where `make interop` puts the package.
func defaultNpm() string {
	if dir := os.Getenv("HOLDFAST_FS_SAFE"); dir != "" {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".cache", "holdfast-interop")
}

func printList(w io.Writer, o options) {
	fmt.Fprintln(w, "workloads:")
	for _, l := range o.workloads {
		fmt.Fprintf(w, "  %-16s %s\n", l.Key, l.Title)
	}
	fmt.Fprintln(w, "peers:")
	for _, p := range o.peers {
		fmt.Fprintf(w, "  %-16s %s", p.Key, p.Name)
		if p.Missing != "" {
			fmt.Fprintf(w, " (left out: %s)", p.Missing)
		}
		fmt.Fprintln(w)
	}
}
