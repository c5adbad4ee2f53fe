//go:build unix

package main

import (
	"strings"

	"github.com/spf13/cobra"

	holdfast "example.com/holdfast/v2"
)

func (a *app) setCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "set [NAME=VALUE...]",
		Short: "Show the store's settings, or change them",
		Long: `Show the settings that are kept in the store, or change them.

on_dead_owner=stop|recover  what a program does when it finds that another was
                            killed inside a commit`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if len(args) == 0 {
				return a.withLook(ctx, func(s store) error {
					set, err := s.Settings(ctx)
					if err == nil {
						a.printSettings(set)
					}
					return err
				})
			}
			return a.withChange(ctx, func(s store) error {
				set, err := s.Settings(ctx)
				if err != nil {
					return err
				}
				for _, arg := range args {
					if err := applySetting(&set, arg); err != nil {
						return err
					}
				}
				if _, err := certain(ctx, s, s.Set(ctx, set)); err != nil {
					return err
				}
				a.did("set", "on_dead_owner="+string(set.OnDeadOwner))
				a.printSettings(set)
				return nil
			})
		},
	}
}

func applySetting(set *holdfast.Settings, arg string) error {
	name, value, ok := strings.Cut(arg, "=")
	if !ok || name != "on_dead_owner" {
		return usagef("%q: want on_dead_owner=stop or on_dead_owner=recover", arg)
	}
	switch v := holdfast.OnDeadOwner(value); v {
	case holdfast.Stop, holdfast.AutoRecover:
		set.OnDeadOwner = v
		return nil
	}
	return usagef("on_dead_owner=%s: want stop or recover", value)
}

func (a *app) printSettings(set holdfast.Settings) {
	if a.json {
		a.printJSON(set)
		return
	}
	a.printf("on_dead_owner=%s\n", set.OnDeadOwner)
}
