//go:build unix

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"example.com/holdfast/queue"
)

func (a *app) cursorCmd() *cobra.Command {
	var text string
	cmd := &cobra.Command{
		Use:   "cursor QUEUE",
		Short: "Show the cursor of a queue, or set it",
		Long: `Show the cursor of a queue, or set it: a text of at most 1 KiB that a program keeps
there in the same commit as a batch, such as the offset up to which it has read its
source. Setting it to an empty text removes it. Exit code 1: there is none.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, ctx := args[0], cmd.Context()
			if err := queue.CheckQueue(name); err != nil {
				return err
			}
			if !cmd.Flags().Changed("set") {
				return about(a.withLook(ctx, func(s store) error {
					text, err := s.Cursor(ctx, name)
					if err == nil && text == "" {
						err = about(nothingf("queue %s has no cursor", name), facts{run: "holdfast cursor {queue} --set TEXT --dir {dir}"})
					}
					if err == nil {
						a.printCursor(name, text)
					}
					return err
				}), facts{queue: name})
			}
			if err := queue.CheckCursor(text); err != nil {
				return err
			}
			return about(a.withChange(ctx, func(s store) error {
				_, err := s.Update(ctx, queue.CursorChange{Queue: name, Cursor: text})
				_, err = certain(ctx, s, err)
				var refused *queue.UpdateError
				if errors.As(err, &refused) {
					err = refused.Err // there is one change only
				}
				if err == nil {
					a.printCursorSet(name, text)
				}
				return err
			}), facts{queue: name})
		},
	}
	cmd.Flags().StringVar(&text, "set", "", "set it to this text")
	return cmd
}

// cursorLine is the machine form of a cursor.
type cursorLine struct {
	Queue  string `json:"queue"`
	Cursor string `json:"cursor"`
}

func (a *app) printCursor(name, text string) {
	if a.json {
		a.printJSON(cursorLine{name, text})
		return
	}
	a.printf("%s\n", printable(text))
}

func (a *app) printCursorSet(name, text string) {
	a.did("set", "the cursor of "+name)
	switch {
	case a.json:
		a.printJSON(cursorLine{name, text})
	case text == "":
		a.printf("removed the cursor of %s\n", name)
	default:
		a.printf("set the cursor of %s to %s\n", name, printable(text))
	}
}
