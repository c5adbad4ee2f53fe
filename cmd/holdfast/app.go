//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	holdfast "example.com/holdfast/v2"
)

// lookAfter is how long a look waits for the lock before it shows the last
// committed state, marked as unsettled.
const lookAfter = 2 * time.Second

// An app is one run of the command: its streams, its flags and its exit code.
type app struct {
	in     io.Reader
	out    *bufio.Writer // keeps the first error of stdout until the end
	stderr io.Writer
	env    func(string) string
	tty    func(stream any) bool
	stdout io.Writer // under out; asked only whether it is a terminal
	engine engine
	after  func(time.Duration) <-chan time.Time // time.After; tests put their own in its place
	now    func() time.Time                     // time.Now, likewise
	size   func(stream any) (width, height int) // terminalSize, likewise

	dir     string // of the store, absolute
	dirFlag string
	json    bool
	unsafe  bool // --allow-unsafe-root
	verbose bool

	bound   int64  // of the state; 0: the library's default
	command string // the command's path, for errors
	started bool   // the arguments were good: what fails now is no usage error
	worst   int    // the exit code so far
	undone  tally  // changes whose lines were not yet written to stdout
}

// Main runs one command and returns its exit code. SIGINT, SIGTERM and SIGHUP end it
// after the commit in flight; a second one ends it at once.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := untilSignal()
	defer stop()
	return newApp(stdin, stdout, stderr).run(ctx, args)
}

func newApp(stdin io.Reader, stdout, stderr io.Writer) *app {
	return &app{
		in: stdin, out: bufio.NewWriter(stdout), stdout: stdout, stderr: &lockedWriter{w: stderr},
		env: os.Getenv, tty: isTerminal, engine: v2Engine(), after: time.After,
		now: time.Now, size: terminalSize,
	}
}

func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil {
		if !a.started { // cobra's own errors come before any command runs
			before, _, _ := cut(args, "--")
			a.json = a.json || slices.Contains(before, "--json")
			if !errors.Is(err, errUsage) {
				err = plainUsage(root, err)
			}
		}
		a.command = cmd.CommandPath()
		a.report(err)
	}
	switch err := a.flush(); {
	case errors.Is(err, syscall.EPIPE) && a.undone.n == 0:
		a.worst = worse(a.worst, exitIO) // who reads has had enough, and misses nothing that was done
	case err != nil:
		a.report(a.undone.unwritten(err))
	}
	return a.worst
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "A durable JSON queue on the local filesystem",
		Long: `A durable JSON queue on the local filesystem.

Exit codes: 0 done; 1 nothing there; 2 usage, bad ID or payload; 3 the store
needs the operator; 4 I/O; 5 refused. A call with several operands does all it
can and exits with the worst, in this order: 3, 4, 2, 5, 1, 0.

Commands that look take any part of an ID or failed name that begins or ends only
one, and say which it is. Load, reprocess and failed purge take the whole name, or at
least 8 characters of a generated ID. A receipt may be shortened to its end: at least 8
characters of the generation's token and the whole attempt, as in u4uxfcv2.0:1.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.command, a.started = cmd.CommandPath(), true
			return a.findDir()
		},
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.stderr)
	flags := root.PersistentFlags()
	flags.StringVar(&a.dirFlag, "dir", "", "the store's directory (default: HOLDFAST_DIR, else the current directory)")
	flags.BoolVar(&a.json, "json", false, "write one JSON line per result, and errors as JSON lines to stderr")
	flags.BoolVar(&a.unsafe, "allow-unsafe-root", false, "accept a directory that others own or can write to; files that another user makes in it may lock the owner out")
	root.AddCommand(a.initCmd(), a.enqueueCmd(), a.claimCmd(), a.loadCmd(), a.ackCmd(), a.releaseCmd(),
		a.retryCmd(), a.failCmd(), a.extendCmd(), a.reapCmd(), a.reprocessCmd(), a.pauseCmd(), a.resumeCmd(),
		a.waitCmd(), a.workCmd(), a.cursorCmd(), a.statusCmd(), a.topCmd(), a.lsCmd(), a.showCmd(), a.peekCmd(), a.clearCmd(), a.failedCmd(),
		a.verifyCmd(), a.collectCmd(), a.backupCmd(), a.restoreCmd(), a.recoverCmd(), a.setCmd(), a.importCmd(), a.doctorCmd(), a.doctorWorkerCmd(), a.demoCmd(), a.demoWorkerCmd(), a.completionCmd(), a.versionCmd(), a.treeCmd(), a.serveCmd())
	plainArgs(root)
	a.completeNames(root)
	return root
}

// findDir settles which directory the command is about: --dir, HOLDFAST_DIR, the
// current one. An absolute path makes the commands that errors name exact.
func (a *app) findDir() error {
	dir := a.dirFlag
	if dir == "" {
		dir = a.env("HOLDFAST_DIR")
	}
	if dir == "" {
		dir = "."
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	a.dir = abs
	return nil
}

func (a *app) options() *holdfast.Options {
	return &holdfast.Options{AllowUnsafeRoot: a.unsafe, MaxStateBytes: a.bound}
}

// lookBytes is how large a state the command looks at and recovers, whatever bound the
// programs that fill it have.
const lookBytes = 1 << 30

// lookOptions are those of commands that add nothing to the store.
func (a *app) lookOptions() *holdfast.Options {
	o := a.options()
	o.LookAfter, o.MaxStateBytes = lookAfter, lookBytes
	return o
}

// withStore runs do on the store, opened for changes. A command that makes one
// change and ends uses withChange.
func (a *app) withStore(ctx context.Context, do func(s store) error) error {
	return use(ctx, a.engine.open, a.dir, a.options(), do)
}

// withLook runs do on the store, opened for looking: nothing is created, and no
// write permission is needed.
func (a *app) withLook(ctx context.Context, do func(s store) error) error {
	return use(ctx, a.engine.look, a.dir, a.lookOptions(), do)
}

func use(ctx context.Context, open openFunc, dir string, o *holdfast.Options, do func(s store) error) error {
	s, err := open(ctx, dir, o)
	if err != nil {
		return err
	}
	if err := do(s); err != nil {
		s.Close() // the first error says more
		return err
	}
	return s.Close()
}

func cut(args []string, sep string) (before, after []string, found bool) {
	if i := slices.Index(args, sep); i >= 0 {
		return args[:i], args[i+1:], true
	}
	return args, nil, false
}
