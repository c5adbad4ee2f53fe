//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"example.com/holdfast/internal/web"
	"example.com/holdfast/migrate"
	v1 "example.com/holdfast/v1"
	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/queue"
)

// The codes are an interface: a change here breaks other people's programs.
func TestErrorCodesArePinned(t *testing.T) {
	for _, want := range []struct {
		err  error
		code string
		exit int
	}{
		{usagef("x"), "usage", 2},
		{errAmbiguous, "ambiguous", 2},
		{fmt.Errorf("x: %w", web.ErrAddress), "address", 2},
		{errDemo, "demo", 3},
		{errFaults, "faults", 3},
		{errDeclined, "declined", 5},
		{errEmpty, "empty", 1},
		{nothingf("x"), "nothing", 1},
		{errTimedOut, "timed_out", 1},
		{&queue.UpdateError{Err: queue.ErrFull}, "full", 5},
		{&queue.BatchError{Refused: []queue.Refusal{{Err: queue.ErrDuplicate}}}, "duplicate", 5},
		{&queue.UncertainError{Err: fs.ErrClosed}, "uncertain", 3},
		{holdfast.ErrUnresolved, "unresolved", 3},
		{&holdfast.StaleLockError{}, "stale_lock", 3},
		{holdfast.ErrNoStore, "no_store", 3},
		{holdfast.ErrInterruptedInit, "interrupted_init", 3},
		{holdfast.ErrInterruptedRestore, "interrupted_restore", 3},
		{&holdfast.BackupError{Err: holdfast.ErrCorrupt}, "bad_copy", 5},
		{holdfast.ErrUnsafe, "unsafe", 3},
		{holdfast.ErrVersion, "version", 3},
		{&holdfast.CorruptError{}, "corrupt", 3},
		{&holdfast.CorruptError{Err: holdfast.ErrVersion}, "version", 3},
		{holdfast.ErrBound, "bound", 3},
		{holdfast.ErrReplaced, "replaced", 3},
		{holdfast.ErrExists, "exists", 5},
		{holdfast.ErrNotEmpty, "not_empty", 5},
		{holdfast.ErrFilesystem, "unsupported_filesystem", 5},
		{holdfast.ErrReadOnly, "read_only", 5},
		{&holdfast.ImportingError{}, "importing", 5},
		{holdfast.ErrNotImporting, "not_importing", 5},
		{migrate.ErrNotFenced, "not_fenced", 2},
		{&migrate.LocksError{}, "v1_locked", 3},
		{&migrate.RecordsError{}, "v1_ambiguous", 3},
		{&migrate.ProblemsError{What: migrate.ErrUnimportable, Problems: []migrate.Problem{{Err: queue.ErrTooLarge}}}, "unimportable", 2},
		{&migrate.ProblemsError{What: migrate.ErrTaken, Problems: []migrate.Problem{{Err: queue.ErrDuplicate}}}, "ids_taken", 5},
		{&migrate.MarkerError{What: migrate.ErrOtherImport}, "other_import", 5},
		{&migrate.MarkerError{What: migrate.ErrClosedSource}, "closed_source", 5},
		{&migrate.MarkerError{What: migrate.ErrOtherRole}, "other_role", 5},
		{&migrate.MarkerError{What: migrate.ErrFailedTaken}, "failed_taken", 5},
		{&migrate.DirectoryError{What: migrate.ErrSwapped}, "swapped", 2},
		{&migrate.DirectoryError{What: migrate.ErrInStore}, "in_store", 5},
		{&migrate.DirectoryError{What: migrate.ErrNothing}, "v1_nothing", 1},
		{migrate.ErrMarker, "marker", 3},
		{&migrate.ProblemsError{What: migrate.ErrFence, Problems: []migrate.Problem{{Err: v1.ErrNotFound}}}, "fence", 3},
		{migrate.ErrNoImport, "no_import", 1},
		{&migrate.MarkerError{What: migrate.ErrNotClosed}, "not_closed", 5},
		{&v1.Error{What: v1.ErrSourceBusy}, "v1_busy", 5},
		{&v1.Error{What: v1.ErrNoDirectory, Err: fs.ErrNotExist}, "v1_no_directory", 3},
		{&v1.LinkError{Errno: syscall.EACCES}, "v1_helper_unavailable", 5},
		{&v1.LockError{What: v1.ErrLockStale}, "v1_lock_stale", 3},
		{&v1.LockError{What: v1.ErrLockTimeout}, "v1_lock_timeout", 3},
		{v1.ErrPathMismatch, "v1_path_mismatch", 3},
		{v1.ErrNotFile, "v1_not_file", 3},
		{v1.ErrChanged, "v1_changed", 3},
		{v1.ErrMigration, "v1_migration", 2},
		{v1.ErrSettled, "v1_settled", 5},
		{v1.ErrUncertain, "v1_uncertain", 4},
		{v1.ErrImported, "v1_imported", 5},
		{v1.ErrAlreadyExists, "v1_already_exists", 5},
		{v1.ErrNoFailedDir, "v1_no_failed_dir", 2},
		{v1.ErrInvalidPath, "v1_invalid_path", 2},
		{v1.ErrInvalidJSON, "v1_invalid_json", 2},
		{v1.ErrTooLarge, "v1_too_large", 2},
		{v1.ErrOptions, "v1_options", 2},
		{v1.ErrNotFound, "v1_not_found", 1},
		{queue.ErrInvalidName, "invalid_name", 2},
		{queue.ErrInvalidPayload, "invalid_payload", 2},
		{queue.ErrInvalidReceipt, "invalid_receipt", 2},
		{queue.ErrTooLarge, "too_large", 2},
		{queue.ErrInvalid, "invalid", 2},
		{queue.ErrDuplicate, "duplicate", 5},
		{queue.ErrFull, "full", 5},
		{queue.ErrNotFound, "not_found", 1},
		{queue.ErrLeased, "leased", 5},
		{&queue.DamagedError{}, "damaged", 5},
		{&queue.LostError{Err: queue.ErrStale}, "stale", 5},
		{&queue.LostError{Err: queue.ErrGone}, "gone", 5},
		{queue.ErrLost, "lost", 5},
		{queue.ErrFailedExists, "failed_exists", 5},
		{queue.ErrNotFailed, "not_failed", 1},
		{queue.ErrInFlight, "in_flight", 5},
		{queue.ErrClosed, "closed", 4},
		{errors.ErrUnsupported, "unsupported", 5},
		{context.Canceled, "cancelled", 4},
		{context.DeadlineExceeded, "timed_out", 1},
		{fs.ErrPermission, "io", 4},
	} {
		k := kindOf(fmt.Errorf("around: %w", want.err))
		if k.code != want.code || k.exit != want.exit {
			t.Errorf("%v: got %s, %d; want %s, %d", want.err, k.code, k.exit, want.code, want.exit)
		}
	}
}

// Whoever adds a sentinel must give it a code.
func TestEverySentinelHasACode(t *testing.T) {
	table, err := os.ReadFile("exit.go")
	if err != nil {
		t.Fatal(err)
	}
	for pkg, dir := range map[string]string{"queue": "../../queue", "holdfast": "../../v2", "v1": "../../v1", "migrate": "../../migrate"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		found := 0
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, name := range sentinels(t, file) {
				found++
				if !strings.Contains(string(table), "\t{"+pkg+"."+name+", ") {
					t.Errorf("%s.%s has no line in kinds", pkg, name)
				}
			}
		}
		if found < 10 {
			t.Errorf("only %d sentinels seen in %s", found, dir)
		}
	}
}

func sentinels(t *testing.T, file string) (names []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range f.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.VAR && group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				if strings.HasPrefix(name.Name, "Err") {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

func TestWorstExitCode(t *testing.T) {
	order := []int{0, 1, 5, 2, 4, 3}
	for i, a := range order {
		for j, b := range order {
			if got, want := worse(a, b), order[max(i, j)]; got != want {
				t.Errorf("worse(%d, %d) = %d, want %d", a, b, got, want)
			}
		}
	}
}

func TestErrorsEndWithTheNextCommand(t *testing.T) {
	s := &session{t: t, dir: filepath.Join(t.TempDir(), "it's here")}
	quoted := `'` + strings.ReplaceAll(s.dir, `'`, `'\''`) + `'`
	got := s.run("status")
	if got.code != exitOperator || !strings.HasSuffix(got.err, "; run: holdfast init --dir "+quoted+"\n") {
		t.Errorf("exit %d, %q", got.code, got.err)
	}
	if !strings.Contains(got.err, s.dir+": ") {
		t.Errorf("%q does not say where", got.err)
	}
	s.must("init")
	for _, try := range []struct {
		args []string
		exit int
		run  string
	}{
		{[]string{"init"}, exitRefused, "holdfast status --dir " + quoted},
		{[]string{"claim"}, exitUsage, "holdfast claim --help"},
		{[]string{"claim", "chat", "--bogus"}, exitUsage, "holdfast claim --help"},
		{[]string{"claim", "chat"}, exitNothing, "holdfast status chat --dir " + quoted},
		{[]string{"load", "chat", "m"}, exitNothing, "holdfast ls chat --dir " + quoted},
		{[]string{"failed", "show", "m"}, exitNothing, "holdfast failed ls --dir " + quoted},
		{[]string{"failed", "bogus"}, exitUsage, "holdfast failed --help"},
		{[]string{"failed"}, exitUsage, "holdfast failed --help"},
		{[]string{"bogus"}, exitUsage, "holdfast --help"},
		{[]string{"set", "on_dead_owner=guess"}, exitUsage, "holdfast set --help"},
	} {
		got := s.run(try.args...)
		if got.code != try.exit || !strings.HasSuffix(got.err, "; run: "+try.run+"\n") || strings.Count(got.err, "\n") != 1 {
			t.Errorf("%q: exit %d, %q; want %d, and to run %q", try.args, got.code, got.err, try.exit, try.run)
		}
		if got := s.run(append(try.args, "--json")...); decode[errorLine](t, got.err).Run != try.run || got.code != try.exit {
			t.Errorf("%q --json: exit %d, %q", try.args, got.code, got.err)
		}
	}
}
