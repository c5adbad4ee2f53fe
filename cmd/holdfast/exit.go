//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"example.com/holdfast/internal/web"
	"example.com/holdfast/migrate"
	v1 "example.com/holdfast/v1"
	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/queue"
)

// The exit codes.
const (
	exitDone     = 0
	exitNothing  = 1 // nothing there: empty, not found, a wait that timed out
	exitUsage    = 2 // usage, a bad ID or payload
	exitOperator = 3 // the store needs the operator
	exitIO       = 4
	exitRefused  = 5 // stale, gone, duplicate, leased, full and the like
)

// severity orders the exit codes from the best to the worst.
var severity = []int{exitDone, exitNothing, exitRefused, exitUsage, exitIO, exitOperator}

func worse(a, b int) int {
	if slices.Index(severity, b) > slices.Index(severity, a) {
		return b
	}
	return a
}

// The command's own errors.
var (
	errUsage     = errors.New("usage")
	errAmbiguous = errors.New("more than one fits")
	errEmpty     = errors.New("nothing is due")
	errFaults    = errors.New("the store has faults")
	errDemo      = errors.New("the demo did not go as it must")
	errDeclined  = errors.New("not confirmed")
	errNothing   = errors.New("nothing there")
	errTimedOut  = errors.New("timed out")
)

// A kind is how one sentinel is told: the stable code of its JSON form, the exit
// code, and the next command. In next, {dir}, {queue}, {id}, {receipt}, {name}
// and {command} stand for what the error is about; where one is unknown, otherwise
// is the next command. {space} is --namespace where one is known, else nothing. Empty:
// no command helps, and none is named.
type kind struct {
	err  error
	code string
	exit int
	next string
}

const otherwise = "holdfast status --dir {dir}"

// kinds lists every sentinel, the particular before the general: the first that
// an error wraps decides. An error that wraps none is of the kind ioKind.
var kinds = []kind{
	{errUsage, "usage", exitUsage, "{command} --help"},
	{web.ErrAddress, "address", exitUsage, "{command} --help"},
	{errAmbiguous, "ambiguous", exitUsage, "holdfast ls {queue} --dir {dir}"},
	{errDemo, "demo", exitOperator, "holdfast demo --keep"},
	{errFaults, "faults", exitOperator, ""},
	{errUnfit, "unfit", exitOperator, "df {dir}"},
	{errKillTest, "kill_test", exitOperator, "holdfast version --json"},
	{errPowerTest, "power_test", exitOperator, "holdfast doctor --dir {dir}"},
	{errNoPowerCut, "no_power_cut", exitNothing, "rm -r {dir}/holdfast-power-test"},
	{errNoPowerTest, "no_power_test", exitNothing, "holdfast doctor --power-test prepare --dir {dir}"},
	{errPowerThere, "power_test_exists", exitRefused, "holdfast doctor --power-test check --dir {dir}"},
	{errPowerRuns, "power_test_runs", exitRefused, ""}, // its text says how it ends
	{errPowerMemory, "power_test_in_memory", exitRefused, "df {dir}"},
	{errJournal, "journal", exitRefused, "{command} --help"},
	{errNoDirectory, "no_directory", exitRefused, "mkdir -m 700 -p {dir}"},
	{errDeclined, "declined", exitRefused, ""}, // nothing happened, as was wanted
	{errEmpty, "empty", exitNothing, "holdfast status {queue} --dir {dir}"},
	{errNothing, "nothing", exitNothing, otherwise},
	{errTimedOut, "timed_out", exitNothing, "holdfast status {queue} --dir {dir}"},

	// Of import-v1, before what they wrap; where the next command depends on the import it
	// comes from aboutImport.
	{migrate.ErrNotFenced, "not_fenced", exitUsage, "{command} --help"},
	{migrate.ErrLocked, "v1_locked", exitOperator, "{command} --help"},
	{migrate.ErrAmbiguous, "v1_ambiguous", exitOperator, "{command} --help"},
	{migrate.ErrUnimportable, "unimportable", exitUsage, "{command} --help"},
	{migrate.ErrTaken, "ids_taken", exitRefused, "holdfast ls {queue} --dir {dir}"},
	{migrate.ErrOtherImport, "other_import", exitRefused, otherwise},
	{migrate.ErrClosedSource, "closed_source", exitRefused, "holdfast status {queue} --dir {dir}"},
	{migrate.ErrOtherRole, "other_role", exitRefused, "{command} --help"},
	{migrate.ErrFailedTaken, "failed_taken", exitRefused, "{command} --help"},
	{migrate.ErrSwapped, "swapped", exitUsage, "{command} --help"},
	{migrate.ErrInStore, "in_store", exitRefused, "{command} --help"},
	{migrate.ErrNothing, "v1_nothing", exitNothing, "{command} --help"},
	{migrate.ErrMarker, "marker", exitOperator, otherwise},
	{migrate.ErrFence, "fence", exitOperator, "{command} --help"},
	{migrate.ErrNoImport, "no_import", exitNothing, otherwise},
	{migrate.ErrNotClosed, "not_closed", exitRefused, otherwise},

	{queue.ErrUncertain, "uncertain", exitOperator, "holdfast recover --dir {dir}"},
	{holdfast.ErrUnresolved, "unresolved", exitOperator, otherwise},
	{holdfast.ErrStaleLock, "stale_lock", exitOperator, "holdfast recover --dir {dir}"},
	{holdfast.ErrNoStore, "no_store", exitOperator, "holdfast init --dir {dir}"}, // see aboutNoStore
	{holdfast.ErrInterruptedInit, "interrupted_init", exitOperator, "holdfast init --resume --dir {dir}"},
	{holdfast.ErrInterruptedRestore, "interrupted_restore", exitOperator, "rm -r {dir}/.fs-safe-queue-v2.restoring"},
	{holdfast.ErrBackup, "bad_copy", exitRefused, ""}, // its text names the file; another copy is needed
	{holdfast.ErrUnsafe, "unsafe", exitOperator, "ls -la {dir}"},
	{holdfast.ErrVersion, "version", exitOperator, "holdfast version"},
	{holdfast.ErrBound, "bound", exitOperator, ""},     // its text says which bound is to be raised
	{holdfast.ErrCorrupt, "corrupt", exitOperator, ""}, // see adviceFor
	{holdfast.ErrReplaced, "replaced", exitOperator, otherwise},

	{holdfast.ErrBusy, "busy", exitIO, otherwise},
	{holdfast.ErrExists, "exists", exitRefused, otherwise},
	{holdfast.ErrNotEmpty, "not_empty", exitRefused, "holdfast init --dir {dir}/holdfast"},
	{holdfast.ErrFilesystem, "unsupported_filesystem", exitRefused, "df {dir}"},
	{holdfast.ErrDeferred, "deferred", exitRefused, "holdfast collect --dir {dir}"},
	{holdfast.ErrReadOnly, "read_only", exitRefused, otherwise},
	{holdfast.ErrImporting, "importing", exitRefused, "holdfast status {queue} --dir {dir}"},
	{holdfast.ErrNotImporting, "not_importing", exitRefused, "holdfast status {queue} --dir {dir}"},

	{queue.ErrInvalidName, "invalid_name", exitUsage, "{command} --help"},
	{queue.ErrInvalidPayload, "invalid_payload", exitUsage, "{command} --help"},
	{queue.ErrInvalidReceipt, "invalid_receipt", exitUsage, "holdfast ls {queue} --dir {dir}"},
	{queue.ErrTooLarge, "too_large", exitUsage, "{command} --help"},
	{queue.ErrInvalid, "invalid", exitUsage, "{command} --help"},
	{queue.ErrDuplicate, "duplicate", exitRefused, "holdfast show {queue} {id} --dir {dir}"},
	{queue.ErrFull, "full", exitRefused, "holdfast status --orphans --dir {dir}"},

	{queue.ErrNotFound, "not_found", exitNothing, "holdfast ls {queue} --dir {dir}"},
	{queue.ErrLeased, "leased", exitRefused, "holdfast show {queue} {id} --dir {dir}"},
	{queue.ErrDamaged, "damaged", exitRefused, "holdfast failed show {name}{space} --dir {dir}"},

	{queue.ErrStale, "stale", exitRefused, "holdfast show {queue} {id} --dir {dir}"},
	{queue.ErrGone, "gone", exitRefused, "holdfast status {queue} --dir {dir}"},
	{queue.ErrLost, "lost", exitRefused, "holdfast status {queue} --dir {dir}"},

	{queue.ErrFailedExists, "failed_exists", exitRefused, "holdfast failed show {name}{space} --dir {dir}"},
	{queue.ErrNotFailed, "not_failed", exitNothing, "holdfast failed ls{space} --dir {dir}"},
	{queue.ErrInFlight, "in_flight", exitRefused, "holdfast show {queue} {id} --dir {dir}"},

	// Of a v1 directory, by the package's codes where it has one.
	{v1.ErrSourceBusy, "v1_busy", exitRefused, otherwise},
	{v1.ErrNoDirectory, "v1_no_directory", exitOperator, otherwise},
	{v1.ErrHelperUnavailable, "v1_helper_unavailable", exitRefused, otherwise},
	{v1.ErrLockStale, "v1_lock_stale", exitOperator, otherwise},
	{v1.ErrLockTimeout, "v1_lock_timeout", exitOperator, otherwise},
	{v1.ErrPathMismatch, "v1_path_mismatch", exitOperator, otherwise},
	{v1.ErrNotFile, "v1_not_file", exitOperator, otherwise},
	{v1.ErrChanged, "v1_changed", exitOperator, otherwise},
	{v1.ErrMigration, "v1_migration", exitUsage, "{command} --help"},
	{v1.ErrSettled, "v1_settled", exitRefused, otherwise},
	{v1.ErrUncertain, "v1_uncertain", exitIO, otherwise},
	{v1.ErrImported, "v1_imported", exitRefused, otherwise},
	{v1.ErrAlreadyExists, "v1_already_exists", exitRefused, otherwise},
	{v1.ErrNoFailedDir, "v1_no_failed_dir", exitUsage, "{command} --help"},
	{v1.ErrInvalidPath, "v1_invalid_path", exitUsage, "{command} --help"},
	{v1.ErrInvalidJSON, "v1_invalid_json", exitUsage, "{command} --help"},
	{v1.ErrTooLarge, "v1_too_large", exitUsage, "{command} --help"},
	{v1.ErrOptions, "v1_options", exitUsage, "{command} --help"},
	{v1.ErrNotFound, "v1_not_found", exitNothing, otherwise},

	{queue.ErrClosed, "closed", exitIO, otherwise},
	{errors.ErrUnsupported, "unsupported", exitRefused, "holdfast --help"},
	{context.Canceled, "cancelled", exitIO, ""},
	{context.DeadlineExceeded, "timed_out", exitNothing, otherwise},
	{fs.ErrPermission, "io", exitIO, "ls -ld {dir}"},
}

var ioKind = kind{nil, "io", exitIO, "holdfast verify --dir {dir}"}

func kindOf(err error) kind {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k
		}
	}
	return ioKind
}

// A usageError says that the command was called wrongly.
type usageError string

func (e usageError) Error() string        { return string(e) }
func (e usageError) Is(target error) bool { return target == errUsage }

func usagef(format string, args ...any) error { return usageError(fmt.Sprintf(format, args...)) }

// A nothingError says that there was nothing to do it to.
type nothingError string

func (e nothingError) Error() string        { return string(e) }
func (e nothingError) Is(target error) bool { return target == errNothing }

func nothingf(format string, args ...any) error { return nothingError(fmt.Sprintf(format, args...)) }

// noRepair is the advice for a store that cannot be read.
const noRepair = "no command repairs this; restore a copy, into another directory (holdfast restore)"

// What is lost with a run is a block of messages: all else goes on.
const (
	noRepairOfRuns = noRepair + ", or give up what lies in that file: messages that wait by holdfast clear QUEUE, which drops all that wait there, failed ones by holdfast failed purge --lost"
	noRepairOfRun  = noRepairOfRuns + "; holdfast verify names the queue, or none where they have failed"
)

func adviceFor(k kind, err error) string {
	var c *holdfast.CorruptError
	switch {
	case k.err != holdfast.ErrCorrupt:
		return ""
	case errors.As(err, &c) && strings.HasSuffix(c.File, "/run.json"):
		return noRepairOfRun
	}
	return noRepair
}

// othersWrite reports whether dir is ours and has a mode that lets others write:
// then chmod is the way out.
func othersWrite(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&0o022 == 0 {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
