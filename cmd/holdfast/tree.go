//go:build unix

package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A treeLine is a command with all that its help says, and the commands below it.
type treeLine struct {
	Name     string     `json:"name"`
	Use      string     `json:"use"`
	Short    string     `json:"short"`
	Long     string     `json:"long,omitempty"`
	Runs     bool       `json:"runs"` // it does something itself
	Flags    []flagLine `json:"flags"`
	Commands []treeLine `json:"commands"`
}

type flagLine struct {
	Name       string `json:"name"`
	Short      string `json:"short,omitempty"`
	Usage      string `json:"usage"`
	Type       string `json:"type"`
	Default    string `json:"default"`
	Persistent bool   `json:"persistent,omitempty"` // of the commands below as well
}

// treeCmd prints what the manual pages are made of. The program that makes them,
// internal/mandoc, is a module of its own: what it needs to write a page is then neither in
// this program nor among what those who use the library have to trust.
func (a *app) treeCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "tree",
		Short:  "Print all commands and their flags as JSON",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.printJSON(treeOfCommands(cmd.Root()))
			return nil
		},
	}
}

func treeOfCommands(c *cobra.Command) treeLine {
	l := treeLine{Name: c.Name(), Use: c.Use, Short: c.Short, Long: c.Long, Runs: c.Runnable(), Flags: []flagLine{}, Commands: []treeLine{}}
	add := func(persistent bool) func(*pflag.Flag) {
		return func(f *pflag.Flag) {
			if !f.Hidden && f.Name != "help" {
				l.Flags = append(l.Flags, flagLine{f.Name, f.Shorthand, f.Usage, f.Value.Type(), f.DefValue, persistent})
			}
		}
	}
	c.LocalNonPersistentFlags().VisitAll(add(false))
	c.PersistentFlags().VisitAll(add(true))
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			l.Commands = append(l.Commands, treeOfCommands(below))
		}
	}
	return l
}
