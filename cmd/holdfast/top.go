//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"regexp"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
)

func (a *app) topCmd() *cobra.Command {
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch the queues, claims and failed messages on a terminal, and act on them",
		Long: `Watch the queues, the claims and the failed messages on a terminal, and act on them:
pause and resume a queue, end a claim and return its message, reprocess or purge a
failed message. Every change is asked for in a line of its own and made only after y.
The keys stand in the last line; ? shows all of them.

It looks without waiting long for the store's lock. Where another process holds it, the
last committed state is shown, and who holds it. SEEN is how long this view has seen a
claim: the store does not keep when one began. Where stdout is no terminal, use status.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case interval < minInterval:
				return usagef("--interval %s: want at least %s", interval, minInterval)
			case a.json:
				return about(usagef("top draws on a terminal and has no --json"), facts{run: "holdfast status --watch --json --dir {dir}"})
			case !a.tty(a.stdout) || !a.tty(a.in) || a.env("TERM") == "dumb":
				return about(usagef("top needs a terminal for what it shows and for its keys"), facts{run: "holdfast status --watch --dir {dir}"})
			}
			if _, err := a.survey(cmd.Context(), nil, true); err != nil {
				return err // told where it stays, and with its exit code
			}
			return a.top(cmd.Context(), interval)
		},
	}
	cmd.Flags().DurationVar(&interval, "interval", defaultInterval, "how often it looks")
	return cmd
}

// top runs the view until a key or a signal ends it. The terminal is given back before
// the change that may still be in flight is waited for.
func (a *app) top(ctx context.Context, interval time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	store := &liveStore{app: a}
	defer store.end()
	defer cancel()
	m := newTop(ctx, store, a.dir, a.style(), func() tea.Msg {
		select {
		case <-a.after(interval):
		case <-ctx.Done():
		}
		return tickMsg{}
	})
	out, ok := a.stdout.(term.File)
	if !ok {
		return usagef("top needs a terminal for what it shows")
	}
	// A signal ends ctx, as for every command. What the terminal can show is not asked.
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithoutSignalHandler(), tea.WithInput(a.in),
		tea.WithOutput(plainKeys{out}), tea.WithColorProfile(colorprofile.ANSI), tea.WithEnvironment(os.Environ())).Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return nil // interrupted, its proper end
	}
	return err
}

// plainKeys keeps from a terminal what asks it for newer forms of keys, or what it can do.
// One that does not know them may show their letters (Termux up to 0.118 does), and what
// it answers may come after the view has ended.
type plainKeys struct{ term.File }

// askedKeys are the sequences of modifyOtherKeys and of kitty's keyboard protocol, and
// the question for a mode.
var askedKeys = regexp.MustCompile(`\x1b\[(?:[<>=?][0-9;]*u|>4(?:;[0-9]*)?m|\?[0-9;]*\$p)`)

func (p plainKeys) Write(b []byte) (int, error) {
	if _, err := p.File.Write(askedKeys.ReplaceAll(b, nil)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// A liveStore is the store that top shows and changes, opened anew for every look and
// every change: nothing of it is held between them.
type liveStore struct {
	app    *app
	acting sync.RWMutex // shared by each change while it is made
	ended  bool
}

// end waits for the changes that are being made, and lets none begin any more.
func (l *liveStore) end() {
	l.acting.Lock()
	defer l.acting.Unlock()
	l.ended = true
}

func (l *liveStore) look(ctx context.Context) (*survey, error) { return l.app.survey(ctx, nil, true) }
