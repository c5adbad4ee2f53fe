//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

func init() { roles["short of descriptors"] = shortOfDescriptors }

// A process whose descriptors run out in the middle of a call, at the first that it would
// open, at the second, and so on until there are enough: each time the call says EMFILE and
// for which file, nothing is changed or left open, and the same call with descriptors works.
// The limit is a process's, so each call has one of its own.
func TestDescriptorsRunOut(t *testing.T) {
	t.Parallel()
	for _, act := range scarceActs {
		t.Run(act.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			lines, err := start(t, "short of descriptors", act.name, dir).Rest()
			if err != nil {
				t.Fatalf("%v %q", err, lines)
			}
			if len(lines) < act.least {
				t.Errorf("it was short %d times, want %d at least: %q", len(lines), act.least, lines)
			}
			for _, line := range lines {
				if !strings.Contains(line, "too many open files") {
					t.Errorf("%q", line)
				}
			}
			stores, err := filepath.Glob(dir + "/*")
			mustDo(t, err)
			for _, store := range stores {
				mustVerify(t, store)
			}
		})
	}
}

// A scarceAct is a call that opens files.
type scarceAct struct {
	name  string
	least int // descriptors that it opens, one while another is; settling needs none
	do    func(ctx context.Context, dir string, s *Store, held queue.Receipt) error
}

var scarceActs = []scarceAct{
	{"create", 4, func(ctx context.Context, dir string, _ *Store, _ queue.Receipt) error {
		s, err := Create(ctx, dir+"-new", nil)
		switch { // the try before had begun, or come to its end
		case errors.Is(err, ErrInterruptedInit):
			s, err = ResumeCreate(ctx, dir+"-new", nil)
		case errors.Is(err, ErrExists):
			s, err = Open(ctx, dir+"-new", nil)
		}
		return closing(s, err)
	}},
	{"open", 5, func(ctx context.Context, dir string, _ *Store, _ queue.Receipt) error {
		return closing(Open(ctx, dir, nil))
	}},
	{"open to look", 5, func(ctx context.Context, dir string, _ *Store, _ queue.Receipt) error {
		return closing(OpenReadOnly(ctx, dir, nil))
	}},
	{"verify", 6, func(ctx context.Context, dir string, _ *Store, _ queue.Receipt) error {
		return second(VerifyDir(ctx, dir, nil, VerifyOptions{}))
	}},
	{"enqueue", 3, func(ctx context.Context, _ string, s *Store, _ queue.Receipt) error {
		return second(s.Enqueue(ctx, "mail", small("new")))
	}},
	{"claim", 3, func(ctx context.Context, _ string, s *Store, _ queue.Receipt) error {
		c, err := s.Claim(ctx, "mail", queue.ClaimOptions{Max: 5})
		if err == nil && (len(c.Damaged) > 0 || len(c.Deliveries) != 2) {
			err = fmt.Errorf("claimed %+v, want b and c", c)
		}
		return err
	}},
	{"ack", 0, func(ctx context.Context, _ string, s *Store, held queue.Receipt) error { return s.Ack(ctx, held) }},
	{"fail", 0, func(ctx context.Context, _ string, s *Store, held queue.Receipt) error {
		return second(s.Fail(ctx, held, queue.FailOptions{Cause: "no"}))
	}},
	{"status", 1, func(ctx context.Context, _ string, s *Store, _ queue.Receipt) error {
		return second(s.Status(ctx, queue.StatusOptions{Orphans: true}))
	}},
	{"show", 2, func(ctx context.Context, _ string, s *Store, _ queue.Receipt) error {
		return second(s.Show(ctx, "mail", "b"))
	}},
	{"recover", 2, func(ctx context.Context, dir string, s *Store, _ queue.Receipt) error {
		return second(s.Recover(ctx))
	}},
}

// shortOfDescriptors takes the name of an act and a directory. It prints each refusal.
func shortOfDescriptors(args []string) error {
	ctx := context.Background()
	if r, w, err := os.Pipe(); err != nil { // the runtime's own descriptors are open from here on
		return err
	} else if err := errors.Join(r.Close(), w.Close()); err != nil {
		return err
	}
	for _, act := range scarceActs {
		if act.name != args[0] {
			continue
		}
		for n := 0; ; n++ {
			open := countOpen()
			enough, err := act.short(ctx, filepath.Join(args[1], fmt.Sprint("store", n)), n)
			if now := countOpen(); err == nil && now > open {
				err = fmt.Errorf("with %d descriptors: %d are left open, %d were before", n, now, open)
			}
			if enough || err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("no act %q", args[0])
}

// short does the act with so many descriptors to open, and reports whether they were enough.
func (act scarceAct) short(ctx context.Context, dir string, n int) (enough bool, err error) {
	o := &Options{holders: &holderSet{}}
	s, err := Create(ctx, dir, o)
	if err != nil {
		return false, err
	}
	defer o.holders.die()
	defer s.Close()
	if _, err := s.EnqueueBatch(ctx, "mail", []queue.Message{small("a"), small("b"), small("c")}); err != nil {
		return false, err
	}
	held, err := s.Load(ctx, "mail", "a", queue.LoadOptions{WithoutHolder: true})
	if err != nil {
		return false, err
	}
	before, err := look(s)
	if err != nil {
		return false, err
	}
	if act.name == "recover" {
		if err := leaveDeadOwner(dir); err != nil {
			return false, err
		}
	}
	restore, err := allow(n)
	if err != nil {
		return false, err
	}
	err = act.do(ctx, dir, s, held.Receipt)
	if e := restore(); e != nil {
		return false, e
	}
	if err == nil {
		return true, nil
	}
	var named *fsguard.Error
	if !errors.Is(err, unix.EMFILE) || !errors.As(err, &named) || named.Name == "" {
		return false, fmt.Errorf("with %d descriptors: %w, want EMFILE and a name", n, err)
	}
	fmt.Println(err)
	if act.name != "recover" {
		if after, err := look(s); err != nil || after != before {
			return false, fmt.Errorf("with %d descriptors: %v, found\n%swas\n%s", n, err, after, before)
		}
	}
	if err := act.do(ctx, dir, s, held.Receipt); err != nil {
		return false, fmt.Errorf("again, after a try with %d descriptors: %w", n, err)
	}
	return false, nil
}

// maxDescriptor is above every descriptor that these processes have.
const maxDescriptor = 256

func isOpen(fd int) bool {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil
}

func countOpen() (count int) {
	for fd := range maxDescriptor {
		if isOpen(fd) {
			count++
		}
	}
	return count
}

// allow sets the limit so that n more descriptors can be opened: a new one is the lowest
// that is free, and below the limit.
func allow(n int) (restore func() error, err error) {
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		return nil, err
	}
	limit := 0
	for free := -1; limit < maxDescriptor; limit++ {
		if isOpen(limit) {
			continue
		}
		if free++; free == n {
			break
		}
	}
	now := was
	setCur(&now.Cur, limit)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
		return nil, err
	}
	return func() error { return unix.Setrlimit(unix.RLIMIT_NOFILE, &was) }, nil
}

// setCur sets the soft limit, which is signed on some systems.
func setCur[T int64 | uint64](cur *T, limit int) { *cur = T(limit) }
