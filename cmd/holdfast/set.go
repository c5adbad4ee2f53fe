//go:build unix

package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/queue"
)

func (a *app) setCmd() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "set [NAME=VALUE...]",
		Short: "Show the settings of the store or of a queue, or change them",
		Long: `Show the settings that are kept in the store, or change them.

on_dead_owner=stop|recover  what a program does when it finds that another was
                            killed inside a commit

With --queue those of one queue:

failed_namespace=NAME       where messages of the queue that fail from now on are
                            kept; queues with the same one share its failed names.
                            Empty: the store's common one`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if cmd.Flags().Changed("queue") {
				return a.setQueue(ctx, name, args)
			}
			if len(args) == 0 {
				return a.withLook(ctx, func(s store) error {
					set, err := s.Settings(ctx)
					if err == nil {
						a.printSettings(set)
					}
					return err
				})
			}
			for _, arg := range args {
				if err := applySetting(&holdfast.Settings{}, arg); err != nil {
					return err
				}
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
	cmd.Flags().StringVar(&name, "queue", "", "show or change the settings of this queue")
	return cmd
}

func applySetting(set *holdfast.Settings, arg string) error {
	name, value, ok := strings.Cut(arg, "=")
	if name == "failed_namespace" {
		return usagef("failed_namespace is a setting of a queue: add --queue QUEUE")
	}
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

// setQueue shows the settings of one queue, or changes them.
func (a *app) setQueue(ctx context.Context, name string, args []string) error {
	if err := queue.CheckQueue(name); err != nil {
		return err
	}
	if len(args) == 0 {
		return a.withLook(ctx, func(s store) error {
			st, err := s.Status(ctx, queue.StatusOptions{Queues: []string{name}})
			if err == nil {
				a.printQueueSettings(name, st.Queues[name].FailedNamespace)
			}
			return err
		})
	}
	space := ""
	for _, arg := range args {
		field, value, ok := strings.Cut(arg, "=")
		if !ok || field != "failed_namespace" {
			return usagef("%q: want failed_namespace=NAME", arg)
		}
		if err := queue.CheckNamespace(value); err != nil {
			return err
		}
		space = value
	}
	return about(a.withChange(ctx, func(s store) error {
		_, err := certain(ctx, s, s.SetFailedNamespace(ctx, name, space))
		if err == nil {
			a.did("set", "failed_namespace="+space+" of "+name)
			a.printQueueSettings(name, space)
		}
		return err
	}), facts{queue: name})
}

func (a *app) printQueueSettings(name, space string) {
	if a.json {
		a.printJSON(struct {
			Queue string `json:"queue"`
			Space string `json:"failed_namespace"`
		}{name, space})
		return
	}
	a.printf("failed_namespace=%s\n", space)
}
