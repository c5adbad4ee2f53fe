//go:build unix

package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// plainArgs makes every command answer a wrong number of operands with its usage,
// in place of counts.
func plainArgs(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		if check := c.Args; check != nil {
			c.Args = func(cmd *cobra.Command, args []string) error {
				if check(cmd, args) != nil {
					return usagef("usage: %s", strings.TrimSuffix(cmd.UseLine(), " [flags]"))
				}
				return nil
			}
		}
		plainArgs(c)
	}
}

// plainUsage puts what cobra says of the arguments into one sentence.
func plainUsage(root *cobra.Command, err error) error {
	first, _, _ := strings.Cut(err.Error(), "\n")
	if rest, ok := strings.CutPrefix(first, `unknown command "`); ok {
		name, _, _ := strings.Cut(rest, `" for `)
		text := `unknown command "` + name + `"`
		near := root.SuggestionsFor(name)
		begun := slices.DeleteFunc(slices.Clone(near), func(s string) bool { return !strings.HasPrefix(s, name) })
		if len(begun) > 0 {
			near = begun
		}
		if slices.Sort(near); len(near) > 0 {
			text += "; did you mean " + strings.Join(near, " or ") + "?"
		}
		return usageError(text)
	}
	first, _, _ = strings.Cut(first, ": strconv.")
	return usageError(first)
}

// minusPayload recognises a payload that was read as flags: JSON that begins with
// a minus is a number.
func minusPayload(_ *cobra.Command, err error) error {
	_, flag, _ := strings.Cut(err.Error(), "unknown shorthand flag: ")
	_, word, _ := strings.Cut(flag, " in -")
	if word == "" || word[0] < '0' || word[0] > '9' {
		return err
	}
	return about(usagef("-%s reads as a flag: a payload that begins with a minus goes after --", word),
		facts{run: "holdfast enqueue QUEUE -- -" + shellWord(word)})
}
