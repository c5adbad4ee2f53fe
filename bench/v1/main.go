//go:build unix

// Command v1 measures the v1 store in one interleaved run: its mechanisms beside each
// other, one of them twice as a control, its routes, and the npm package that it shares
// its directories with.
//
//	go -C bench run ./v1                       without the package
//	go -C bench run ./v1 -package DIR          DIR holds node_modules with @openclaw/fs-safe and node
//	go -C bench run ./v1 -dir /dev/shm         where a sync costs nothing: what is left is the calls
//
// One message is an enqueue, a load and an ack of 512 bytes. Ratios carry over to other
// machines, absolute figures do not.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	dir := flag.String("dir", ".", "make the directories below this one")
	messages := flag.Int("messages", 200, "messages in one trial")
	reps := flag.Int("reps", 9, "trials of each contender")
	pkg := flag.String("package", "", "directory with node_modules of the npm package; empty: it is left out")
	flag.Parse()

	base, err := os.MkdirTemp(*dir, "holdfast-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(base)
	for _, workers := range []int{1, 16} {
		list := contenders()
		if *pkg != "" {
			list = append(list, contender{name: "npm package", trial: npmTrial(*pkg)})
		}
		if err := measure(list, base, *reps, load{messages: *messages, workers: workers}); err != nil {
			return err
		}
		report(os.Stdout, list, workers, *messages)
	}
	return nil
}

// A load is what one trial does.
type load struct{ messages, workers int }

// A contender is measured by trials, each in a directory of its own.
type contender struct {
	name   string
	trial  func(dir string, l load) (time.Duration, error)
	speeds []float64 // messages a second, one for each round
}

// measure runs every contender once a round. Each round begins with another one, so that
// none always runs first.
func measure(list []contender, base string, reps int, l load) error {
	for round := range reps + 1 {
		for i := range list {
			c := &list[(round+i)%len(list)]
			dir, err := os.MkdirTemp(base, "trial-")
			if err != nil {
				return err
			}
			took, err := c.trial(dir, l)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
			if round > 0 { // the first one warms up
				c.speeds = append(c.speeds, float64(l.messages)/took.Seconds())
			}
		}
	}
	return nil
}
