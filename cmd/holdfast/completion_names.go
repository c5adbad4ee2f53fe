//go:build unix

package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/holdfast/queue"
)

// completeWithin bounds how long the names of a store may take: the shell waits for them.
const completeWithin = time.Second

// completeLook is how long a completion waits for the lock before it goes by the last
// committed state.
const completeLook = 50 * time.Millisecond

// mostOffered bounds how many names are offered.
const mostOffered = 200

// A typing is what stands in the line that is being completed.
type typing struct {
	args  []string // the operands before
	word  string   // what there is of this one
	space string   // the value of --namespace
}

// A source looks up the names that begin with a word.
type source func(ctx context.Context, s store, t typing) ([]string, error)

// An offer says which names a command takes as operands.
type offer struct {
	of   []source // in their order
	more bool     // any number of the last one
}

// offers are those of each command, by its path.
var offers = map[string]offer{
	"enqueue": {of: []source{queueNames}}, "claim": {of: []source{queueNames}}, "peek": {of: []source{queueNames}},
	"ls": {of: []source{queueNames}}, "clear": {of: []source{queueNames}}, "cursor": {of: []source{queueNames}},
	"work": {of: []source{queueNames}}, "failed ls": {of: []source{queueNames}},
	"show": {of: []source{queueNames, liveIDs}}, "load": {of: []source{queueNames, liveIDs}},
	"pause": {[]source{queueNames}, true}, "resume": {[]source{queueNames}, true}, "wait": {[]source{queueNames}, true},
	"status": {[]source{queueNames}, true}, "reap": {[]source{queueNames}, true},
	"failed show": {of: []source{failedNames}}, "failed purge": {[]source{failedNames}, true}, "reprocess": {[]source{failedNames}, true},
}

// flagNames are flags whose value is a name in the store, flagValues those that take one of
// a few words.
var (
	flagNames  = map[string]source{"queue": queueNames, "namespace": namespaces}
	flagValues = map[string][]string{"on-dead-owner": {"stop", "recover"}, "if-exists": {"refuse", "keep", "replace"}}
)

// completeNames gives the commands below cmd the names that their operands and flags take.
func (a *app) completeNames(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		if o, ok := offers[commandName(c)]; ok {
			c.ValidArgsFunction = a.complete(o)
		}
		for flag, from := range flagNames {
			if c.Flags().Lookup(flag) != nil {
				must(c.RegisterFlagCompletionFunc(flag, a.complete(offer{[]source{from}, true})))
			}
		}
		for flag, words := range flagValues {
			if c.Flags().Lookup(flag) != nil {
				must(c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)))
			}
		}
		a.completeNames(c)
	}
}

// commandName gives the path of a command without the program's name.
func commandName(c *cobra.Command) string {
	_, name, _ := strings.Cut(c.CommandPath(), " ")
	return name
}

// must is for what only our own mistake can make fail: here a flag with two completions.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// complete looks the names up. Whatever goes wrong, nothing is offered and nothing said: it
// would stand in the middle of the line that is being typed.
func (a *app) complete(o offer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		const done = cobra.ShellCompDirectiveNoFileComp
		at := min(len(args), len(o.of)-1)
		if len(args) >= len(o.of) && !o.more || a.findDir() != nil {
			return nil, done
		}
		t := typing{args: args, word: word}
		if flag := cmd.Flags().Lookup("namespace"); flag != nil {
			t.space = flag.Value.String()
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
		defer cancel()
		look := a.lookOptions()
		look.LookAfter = completeLook
		var names []string
		err := use(ctx, a.engine.look, a.dir, look, func(s store) (err error) {
			names, err = o.of[at](ctx, s, t)
			return err
		})
		if err != nil {
			return nil, done
		}
		names = slices.DeleteFunc(names, func(name string) bool {
			return !strings.HasPrefix(name, word) || slices.Contains(args, name)
		})
		slices.Sort(names)
		names = slices.Compact(names)
		return names[:min(len(names), mostOffered)], done
	}
}

func queueNames(ctx context.Context, s store, _ typing) ([]string, error) {
	st, err := s.Status(ctx, queue.StatusOptions{})
	return slices.Collect(maps.Keys(st.Queues)), err
}

func namespaces(ctx context.Context, s store, _ typing) ([]string, error) {
	st, err := s.Status(ctx, queue.StatusOptions{})
	var names []string
	for _, q := range st.Queues {
		if q.FailedNamespace != "" {
			names = append(names, q.FailedNamespace)
		}
	}
	return names, err
}

func liveIDs(ctx context.Context, s store, t typing) ([]string, error) {
	if queue.CheckQueue(t.args[0]) != nil {
		return nil, nil
	}
	return begun(t.word, func(e queue.Entry) string { return e.ID }, func(o queue.ListOptions) (queue.Page, error) {
		return s.List(ctx, t.args[0], o)
	})
}

func failedNames(ctx context.Context, s store, t typing) ([]string, error) {
	return begun(t.word, func(e queue.Entry) string { return e.FailedName }, func(o queue.ListOptions) (queue.Page, error) {
		return s.ListFailed(ctx, queue.FailedOptions{Namespace: t.space}, o)
	})
}

// begun reads page after page until enough names begin with the word: it may be the last
// message of a deep queue that does.
func begun(word string, name func(queue.Entry) string, get func(queue.ListOptions) (queue.Page, error)) ([]string, error) {
	var names []string
	o := queue.ListOptions{Limit: pageSize}
	for {
		p, err := get(o)
		if err != nil {
			return nil, err
		}
		for _, e := range p.Entries {
			if n := name(e); strings.HasPrefix(n, word) {
				names = append(names, n)
			}
		}
		if p.Next == "" || len(names) >= mostOffered {
			return names, nil
		}
		o.After = p.Next
	}
}
