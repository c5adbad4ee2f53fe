// Mandoc writes the manual pages of the command, from what "holdfast tree" prints on its
// standard input, into a directory:
//
//	holdfast tree | go -C internal/mandoc run . -version v1.2.3 -date 2026-11-30 DIR
//
// The pages are cobra's own (cobra/doc), of a tree of commands that is built again here. It
// is a module of its own because cobra/doc brings a Markdown renderer and a YAML library with
// it: neither is to be in the command, nor in the go.sum of a program that uses the library.
// The command is a package main and cannot be imported; hence the JSON between them.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

func main() {
	version := flag.String("version", "", "the version that the pages are of")
	date := flag.String("date", "", "the day of the pages, as 2006-01-02")
	flag.Parse()
	if err := write(os.Stdin, flag.Arg(0), *version, *date); err != nil {
		fmt.Fprintln(os.Stderr, "mandoc:", err)
		os.Exit(1)
	}
}

// A command is one of the tree; its fields are those of cmd/holdfast/tree.go.
type command struct {
	Name     string    `json:"name"`
	Use      string    `json:"use"`
	Short    string    `json:"short"`
	Long     string    `json:"long"`
	Runs     bool      `json:"runs"`
	Flags    []option  `json:"flags"`
	Commands []command `json:"commands"`
}

type option struct {
	Name       string `json:"name"`
	Short      string `json:"short"`
	Usage      string `json:"usage"`
	Type       string `json:"type"`
	Default    string `json:"default"`
	Persistent bool   `json:"persistent"`
}

// write makes a page for each command. The date is told and not taken from a clock, so that
// the same commit gives the same pages.
func write(tree io.Reader, dir, version, date string) error {
	if dir == "" {
		return errors.New("want a directory")
	}
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return fmt.Errorf("-date: %w", err)
	}
	in := json.NewDecoder(tree)
	in.DisallowUnknownFields()
	var top command
	if err := in.Decode(&top); err != nil {
		return fmt.Errorf("the tree: %w", err)
	}
	root := top.build()
	root.InitDefaultHelpCmd()
	root.CompletionOptions.DisableDefaultCmd = true
	return doc.GenManTree(root, &doc.GenManHeader{
		Section: "1", Date: &day, Source: strings.TrimSpace("holdfast " + version), Manual: "holdfast",
	}, dir)
}

// build makes a command of cobra's again.
func (c command) build() *cobra.Command {
	cmd := &cobra.Command{Use: c.Use, Short: c.Short, Long: markdown(c.Long), DisableAutoGenTag: true}
	if c.Runs {
		cmd.Run = func(*cobra.Command, []string) {}
	}
	for _, o := range c.Flags {
		to := cmd.Flags()
		if o.Persistent {
			to = cmd.PersistentFlags()
		}
		f := to.VarPF(value{o}, o.Name, o.Short, o.Usage)
		if o.Type == "bool" {
			f.NoOptDefVal = "true"
		}
	}
	for _, below := range c.Commands {
		cmd.AddCommand(below.build())
	}
	return cmd
}

// A value stands for that of a flag: its type and its default are all that a page tells.
type value struct{ o option }

func (v value) String() string   { return v.o.Default }
func (v value) Set(string) error { return errors.New("it is only told of") }
func (v value) Type() string     { return v.o.Type }

var _ pflag.Value = value{}

// markdown makes of a help text what reads the same as a page. A paragraph with an indented
// line is a table and keeps its columns; in the others nothing is markup.
func markdown(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if strings.HasPrefix(p, "  ") || strings.Contains(p, "\n  ") {
			paragraphs[i] = "    " + strings.ReplaceAll(p, "\n", "\n    ")
		} else {
			paragraphs[i] = escape.Replace(p)
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

var escape = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "<", `\<`, ">", `\>`, "[", `\[`, "]", `\]`, "#", `\#`)
