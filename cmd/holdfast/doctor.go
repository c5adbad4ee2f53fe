//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"example.com/holdfast/internal/doctor"
	"example.com/holdfast/internal/fsguard"
)

// The doctor's own errors.
var (
	errUnfit       = errors.New("not fit for v2")
	errKillTest    = errors.New("the kill test failed")
	errPowerTest   = errors.New("the power test failed")
	errNoPowerCut  = errors.New("the power was not away")
	errNoPowerTest = errors.New("no power test was prepared here")
	errPowerThere  = errors.New("a power test is here already")
	errPowerRuns   = errors.New("prepare still works on it")
	errPowerMemory = errors.New("no reboot leaves what is in memory")
	errJournal     = errors.New("the journal cannot serve")
	errNoDirectory = errors.New("no directory")
)

// mostRounds bounds a kill test.
const mostRounds = 10_000

// doctorFlags are what the command was told.
type doctorFlags struct {
	skip, try    []string
	rounds       int
	seed         uint64
	power        string
	journal      string
	acknowledged uint64
	steps        uint64
	verbose      bool

	seeded, told bool // --seed, --acknowledged were given
}

func (a *app) doctorCmd() *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find out whether a store can stand in a directory",
		Long: `Try everything that a store stands on, in the directory or, where it is not there,
in its parent, and say of each try: ok; WARN, a store works there all the same; NO, v2
needs it; or - for what v2 does without and what was not tried. --verbose shows for
each what was tried, what Holdfast uses it for and what was seen. It works in a
scratch directory that it removes, and touches no file of a store. The verdict is
about the place: a store that is there already is told of, and a warning where it
cannot be read.

--skip leaves a check out, by its name in --json: hard_link where a sandbox kills at a
link, which Android's does not. A needed check that is left out is a warning. Under
Termux rename_no_replace is left out unless --try names it: the sandbox of Android 8
kills at that call.

--kill-test N runs N rounds: a worker process on a store of its own is killed with
SIGKILL at a random moment, and all that it was told is done must be there. If something
is not, the store is kept.

--power-test prepare works on a store of its own until the power goes, and prints
"acknowledged N" after each step: read it on another machine (ssh, adb), or give
--journal a file on another device. Then --power-test check --acknowledged N, or with
the same --journal, says PASS or FAIL; NO POWER CUT where there was no reboot, and so
no test; CONSISTENT where nobody says N. docs/android.md has it step by step.

Exit codes:
  0  fit, or with warnings; the kill test passed; prepare ended, by Ctrl-C too;
     PASS, CONSISTENT
  1  nothing was tested: NO POWER CUT, or no power test was prepared there
  2  usage
  3  not fit; the kill test failed; FAIL; or a store that needs the operator
  4  the looking failed (I/O), or was ended by Ctrl-C: of the checks, of the kill test
     and of check
  5  refused: no directory, a power test that is there or still runs, a place in
     memory, a journal that cannot serve

With --json a report is one object. That of the checks: dir, place, exists,
filesystem, free_bytes, floor_bytes, mount, checks (each: check, tried, for, needed,
outcome, errno, seen, weight), mechanisms, leftovers, holds (what keeps init from
making a store), fit (yes, with warnings, no), store (null: there is none), next. Of
the kill test: ok, seed, rounds, acknowledged, cut_off, cut_off_done, deaths_in_commit,
failures, dir (of the store; empty: it is removed). Of the power test: one object with
"acknowledged" per step; of its check: ok, verdict (pass, consistent, no_power_cut,
fail), dir, seed, steps, acknowledged, rebooted, recovered, reasons, proven, not_proven,
next.`,
		Example: `  holdfast doctor --dir ~/store
  holdfast doctor --dir ~/store --kill-test 100
  holdfast doctor --dir ~/store --power-test prepare
  holdfast doctor --dir ~/store --power-test check --acknowledged 4711`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("give the directory with --dir %s", shellWord(args[0]))
			}
			flags := cmd.Flags()
			f.seeded, f.told = flags.Changed("seed"), flags.Changed("acknowledged")
			if err := f.check(flags.Changed("kill-test")); err != nil {
				return err
			}
			if !f.seeded {
				f.seed = uint64(rand.Uint32()) // short enough to be typed
			}
			switch {
			case f.power == "prepare":
				return a.powerPrepare(cmd.Context(), fsguard.OS(), f)
			case f.power == "check":
				return a.powerCheck(cmd.Context(), f)
			case f.rounds > 0:
				return a.killTest(cmd.Context(), f)
			}
			return a.examine(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.verbose, "verbose", false, "show the whole of each check")
	flags.StringArrayVar(&f.skip, "skip", nil, "leave out the check of this name; may be given again")
	flags.StringArrayVar(&f.try, "try", nil, "make the check of this name where it would be left out")
	flags.IntVar(&f.rounds, "kill-test", 0, "kill a worker process in so many rounds")
	flags.Uint64Var(&f.seed, "seed", 0, "repeat the choices of an earlier test")
	flags.StringVar(&f.power, "power-test", "", "prepare or check")
	flags.StringVar(&f.journal, "journal", "", "a file on another device in which the steps are noted")
	flags.Uint64Var(&f.acknowledged, "acknowledged", 0, "the last step that was read on the screen")
	flags.Uint64Var(&f.steps, "steps", 0, "stop preparing after so many steps; 0: go on until the power goes")
	return cmd
}

// check refuses flags that do not belong together.
func (f *doctorFlags) check(killing bool) error {
	powering, choosing := f.power != "", len(f.skip)+len(f.try) > 0
	switch {
	case f.power != "" && f.power != "prepare" && f.power != "check":
		return usagef("--power-test %q: want prepare or check", f.power)
	case killing && powering:
		return usagef("give --kill-test or --power-test, not both")
	case killing && (f.rounds < 1 || f.rounds > mostRounds):
		return usagef("--kill-test %d: from 1 to %d rounds", f.rounds, mostRounds)
	case choosing && (killing || powering):
		return usagef("--skip and --try are for the checks only")
	case f.verbose && (killing || powering):
		return usagef("--verbose is for the checks only")
	case f.seeded && !killing && f.power != "prepare":
		return usagef("--seed is for --kill-test and --power-test prepare")
	case f.journal != "" && !powering:
		return usagef("--journal is for --power-test")
	case f.told && f.power != "check":
		return usagef("--acknowledged is for --power-test check")
	case f.told && f.journal != "":
		return usagef("give --acknowledged or --journal, not both")
	case f.steps > 0 && f.power != "prepare":
		return usagef("--steps is for --power-test prepare")
	}
	for _, name := range f.skip {
		if slices.Contains(f.try, name) {
			return usagef("--try %s and --skip %s: give one of them", name, name)
		}
	}
	return errors.Join(checkSteps("--steps", f.steps), checkSteps("--acknowledged", f.acknowledged), checkNames("--skip", f.skip), checkNames("--try", f.try))
}

func checkNames(flag string, names []string) error {
	for _, name := range names {
		if !slices.Contains(doctor.Names(), name) {
			return usagef("%s %q: there is no such check; there are %s", flag, name, strings.Join(doctor.Names(), ", "))
		}
	}
	return nil
}

// examine runs the checks.
func (a *app) examine(ctx context.Context, f doctorFlags) error {
	m := doctor.System()
	m.Trial, m.Floor, m.AllowUnsafeRoot = a.trial, storeFloor, a.unsafe
	m.Skip = a.leftOut(f)
	a.verbose = f.verbose
	return a.examineBy(ctx, m)
}

// leftOut gives the checks that are not made, and why.
func (a *app) leftOut(f doctorFlags) map[string]string {
	out := map[string]string{}
	if a.termux() || runtime.GOOS == "android" {
		out["rename_no_replace"] = "Android 8 kills at this call; on a newer one add --try rename_no_replace"
	}
	for _, name := range f.try {
		delete(out, name)
	}
	for _, name := range f.skip {
		out[name] = "left out, as was asked"
	}
	return out
}

func (a *app) examineBy(ctx context.Context, m doctor.Machine) error {
	report, err := m.Examine(ctx, a.dir)
	if interrupted(err) {
		return &stoppedError{"stopped; the scratch directory is removed"}
	}
	if err != nil {
		if file := isFile(a.dir); file != nil {
			return file
		}
		return a.aboutPlace(a.aboutParent(err))
	}
	x := examined{Report: report, Fit: report.Verdict()}
	if report.Exists {
		x.Store = a.storeThere(ctx)
	}
	if warning, next := a.standing(x); warning != "" {
		x.warning, x.Next = warning, next
		if x.Fit == doctor.Yes {
			x.Fit = doctor.Warnings
		}
	}
	unfit := report.Weighing(doctor.Unfit)
	if len(unfit) > 0 {
		x.Next = a.afterUnfit(report, unfit[0])
	}
	a.printExamined(x)
	if len(unfit) > 0 {
		return about(fmt.Errorf("%w: %s", errUnfit, reasonOf(unfit[0])), facts{run: x.Next})
	}
	return nil
}

// reasonOf says in one sentence why a check weighs what it does.
func reasonOf(c doctor.Check) string {
	text := title(c.Name)
	if c.Outcome != doctor.Told {
		text += ": " + string(c.Outcome)
	}
	if c.Errno != "" {
		text += " with " + c.Errno
	}
	if c.Seen != "" {
		text += ": " + c.Seen
	}
	return text
}
