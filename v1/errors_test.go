//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The codes are the npm package's, spelled as it spells them.
func TestCodes(t *testing.T) {
	for code, want := range map[Code]string{
		ErrHelperUnavailable: "helper-unavailable", ErrPathMismatch: "path-mismatch", ErrNotFile: "not-file", ErrInvalidPath: "invalid-path",
		ErrTooLarge: "too-large", ErrAlreadyExists: "already-exists", ErrLockTimeout: "file_lock_timeout", ErrLockStale: "file_lock_stale",
	} {
		wrapped := fmt.Errorf("outside: %w", &Error{File: "x", What: code, Err: syscall.EIO})
		var got Code
		if code.Error() != want || !errors.As(wrapped, &got) || got != code || !errors.Is(wrapped, code) {
			t.Errorf("%s: got %q", want, got)
		}
		for other := range map[Code]bool{ErrHelperUnavailable: true, ErrPathMismatch: true} {
			if other != code && errors.Is(wrapped, other) {
				t.Errorf("%s is taken for %s", code, other)
			}
		}
	}
}

func TestErrorTexts(t *testing.T) {
	stale := &LockError{What: ErrLockStale, Lock: Lock{File: "l", Owner: "o", Age: 31*time.Second + 400*time.Millisecond}}
	busy := &LockError{What: ErrLockTimeout, Lock: Lock{File: "l", Age: 2 * time.Second}}
	refused := &LinkError{Route: HardLink, From: "a", To: "b", Errno: syscall.EACCES}
	for _, c := range []struct {
		err  error
		want string
		is   []error
		not  []error
	}{
		{&Error{File: "a.json", What: ErrNotFound}, "a.json: no such entry", []error{ErrNotFound}, []error{fs.ErrNotExist}},
		{&Error{File: "a.json", What: ErrTooLarge, Why: "reason"}, "a.json: too-large: reason", []error{ErrTooLarge}, nil},
		{&Error{File: "a.json", What: ErrNotFile, Why: "reason", Err: syscall.ELOOP}, "a.json: not-file: reason: " + syscall.ELOOP.Error(), []error{ErrNotFile, syscall.ELOOP}, nil},
		{stale, "l: file_lock_stale: held by owner o for 31s; it is never taken over: prove that its holder is gone, then remove that file",
			[]error{ErrLockStale}, []error{ErrLockTimeout}},
		{busy, "l: file_lock_timeout: held by an owner that its record does not tell for 2s", []error{ErrLockTimeout}, []error{ErrLockStale}},
		{refused, "helper-unavailable: the hard link from a to b was refused: " + syscall.EACCES.Error() + "; ClaimBy: RenameNoReplace needs none",
			[]error{ErrHelperUnavailable, syscall.EACCES, fs.ErrPermission}, []error{syscall.EPERM}},
		{&LinkError{Route: HardLink, From: "a", To: "b", Imitated: true},
			"helper-unavailable: the hard link from a to b made something else (links are imitated here); ClaimBy: RenameNoReplace needs none",
			[]error{ErrHelperUnavailable}, []error{syscall.EACCES}},
		{&LinkError{Route: RenameNoReplace, From: "a", To: "b", Errno: syscall.EINVAL},
			"helper-unavailable: the rename without replacing from a to b was refused: " + syscall.EINVAL.Error() + "; this filesystem needs hard links or a v2 store",
			[]error{ErrHelperUnavailable, syscall.EINVAL}, nil},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
		for _, is := range c.is {
			if !errors.Is(fmt.Errorf("outside: %w", c.err), is) {
				t.Errorf("%v is not %v", c.err, is)
			}
		}
		for _, not := range c.not {
			if errors.Is(c.err, not) {
				t.Errorf("%v is %v", c.err, not)
			}
		}
	}
}

// What a system says is a refusal, or not, by route.
func TestRefusal(t *testing.T) {
	wrapped := func(err error) error { return fmt.Errorf("op: %w", err) }
	for route, refusals := range map[Route][]syscall.Errno{HardLink: linkErrnos, RenameNoReplace: renameErrnos} {
		for _, errno := range refusals {
			if err := wantRefusal(refusal(wrapped(errno), route, "a", "b"), route, errno); err != nil {
				t.Error(err)
			}
		}
		for _, errno := range []syscall.Errno{syscall.EIO, syscall.EMFILE, syscall.ENOSPC, syscall.EROFS, syscall.EDQUOT, syscall.EMLINK, syscall.EEXIST, syscall.ENOENT, syscall.EINTR} {
			was := wrapped(errno)
			if got := refusal(was, route, "a", "b"); got != was {
				t.Errorf("%v by %v: got %v", errno, route, got)
			}
		}
		if err := wantRefusal(refusal(wrapped(errors.ErrUnsupported), route, "a", "b"), route, syscall.ENOSYS); err != nil {
			t.Error(err)
		}
		if got := refusal(nil, route, "a", "b"); got != nil {
			t.Errorf("of no error: %v", got)
		}
	}
	// What only one of the routes may say.
	for route, errno := range map[Route]syscall.Errno{HardLink: syscall.EINVAL, RenameNoReplace: syscall.EACCES} {
		if got := refusal(errno, route, "a", "b"); errors.Is(got, ErrHelperUnavailable) {
			t.Errorf("%v by %v: got %v", errno, route, got)
		}
	}
}

// Every sentinel of the package says when it is returned.
func TestSentinelsAreExplained(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, parser.ParseComments)
	unitOK(t, err)
	count := 0
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range gen.Specs {
			value, ok := spec.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(value.Names[0].Name, "Err") {
				continue
			}
			count++
			if name := value.Names[0].Name; !strings.HasPrefix(value.Doc.Text(), name+" is returned ") {
				t.Errorf("%s is documented as %q", name, value.Doc.Text())
			}
		}
	}
	if count < 15 {
		t.Errorf("found only %d sentinels", count)
	}
}
