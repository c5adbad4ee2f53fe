//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	holdfast "example.com/holdfast/v2"
)

func (a *app) initCmd() *cobra.Command {
	var resume bool
	var onDeadOwner string
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Create a store in an empty directory",
		Long: `Create a store in the directory, which is made if it is missing and else must be
empty and yours alone (mode 0700).

--on-dead-owner is what a program does when it finds that another was killed
inside a commit: stop, until "holdfast recover" is run; or recover, which is that
consent given in advance. Without the flag it is stop, and recover under Termux,
where Android kills programs at will. "holdfast set" changes it later.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := a.options()
			why := ""
			switch onDeadOwner {
			case "":
				o.OnDeadOwner = holdfast.Stop
				if a.termux() {
					o.OnDeadOwner, why = holdfast.AutoRecover, " (chosen because this is Termux)"
				}
			case string(holdfast.Stop), string(holdfast.AutoRecover):
				o.OnDeadOwner = holdfast.OnDeadOwner(onDeadOwner)
			default:
				return usagef("--on-dead-owner %q: want stop or recover", onDeadOwner)
			}
			create, verb := a.engine.create, "created"
			if resume {
				create, verb = a.engine.resume, "finished creating"
			}
			return a.aboutParent(use(cmd.Context(), create, a.dir, o, func(s store) error {
				a.did(verb, "a store in "+a.dir)
				if a.json {
					a.printJSON(struct {
						Dir         string               `json:"dir"`
						Store       string               `json:"store"`
						OnDeadOwner holdfast.OnDeadOwner `json:"on_dead_owner"`
						Resumed     bool                 `json:"resumed"`
					}{a.dir, s.ID(), o.OnDeadOwner, resume})
					return nil
				}
				a.printf("%s a store in %s\n", verb, printable(a.dir))
				a.printf("on_dead_owner is %s%s\n", o.OnDeadOwner, why)
				return nil
			}))
		},
	}
	cmd.Flags().BoolVar(&resume, "resume", false, "finish a creation that was interrupted")
	cmd.Flags().StringVar(&onDeadOwner, "on-dead-owner", "", "stop or recover")
	return cmd
}

// aboutParent says of a missing parent that it is the parent that is missing.
func (a *app) aboutParent(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(a.dir)
	if _, statErr := os.Stat(parent); !errors.Is(statErr, fs.ErrNotExist) {
		return err
	}
	return about(fmt.Errorf("the parent directory %s does not exist; make it first", parent),
		facts{run: "mkdir -p " + shellWord(parent)})
}

// termux reports whether this is Termux on Android.
func (a *app) termux() bool {
	return a.env("TERMUX_VERSION") != "" || strings.Contains(a.env("PREFIX"), "com.termux")
}
