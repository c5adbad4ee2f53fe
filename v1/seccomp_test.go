//go:build linux

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/holdfast/internal/crashtest/sandbox"
)

func init() {
	roles["scenes under a filter"] = scenesUnderFilter
	roles["life under a filter"] = lifeUnderFilter
	roles["refusal under a filter"] = refusalUnderFilter
	roles["call under a filter"] = callUnderFilter
}

// Hard links are made by these; a rename that replaces nothing by that one alone.
const (
	linkCalls   = "link,linkat"
	renameCalls = "renameat2"
)

// seccompFilters puts the process under filters, written as "13:link,linkat;kill:renameat2",
// or "relative:1".
func seccompFilters(text string) error {
	for _, filter := range strings.Split(text, ";") {
		what, names, _ := strings.Cut(filter, ":")
		if what == "relative" {
			errno, err := strconv.Atoi(names)
			if err != nil {
				return err
			}
			return sandbox.RefuseRelative(relativeCalls, syscall.Errno(errno))
		}
		calls := sandbox.Known(strings.Split(names, ","))
		if what == "kill" {
			if err := sandbox.Kill(calls); err != nil {
				return err
			}
			continue
		}
		errno, err := strconv.Atoi(what)
		if err != nil {
			return err
		}
		if err := sandbox.Refuse(calls, syscall.Errno(errno)); err != nil {
			return err
		}
	}
	return nil
}

func refusing(calls string, errno syscall.Errno) string {
	return fmt.Sprintf("%d:%s", int(errno), calls)
}

// under runs a role under filters in another process, which must end well.
func (w unitWay) under(t *testing.T, role, filters string, args ...string) {
	t.Helper()
	args = append([]string{filters, string(w.mechanism), strconv.Itoa(int(w.route))}, args...)
	lines, err := start(t, role, args...).Rest()
	if err != nil || !slices.Equal(lines, []string{"done"}) {
		t.Errorf("%v under %s: %v (signal %v) %q", w, filters, err, killedBy(err), lines)
	}
}

// The way that under handed on, in a process under the filters.
func seccompWay(args []string) (unitWay, []string, error) {
	route, err := strconv.Atoi(args[2])
	if err != nil {
		return unitWay{}, nil, err
	}
	return unitWay{Mechanism(args[1]), Route(route)}, args[3:], seccompFilters(args[0])
}

// scenesUnderFilter takes filters, a way, the errno that every scene that needs the
// refused call must be refused by (0: it must succeed), and a directory for each scene, or for the first ones.
func scenesUnderFilter(args []string) error {
	w, args, err := seccompWay(args)
	if err != nil {
		return err
	}
	errno, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	var all sync.WaitGroup // at once: most of the time goes into syncs
	bases := args[1:]
	errs := make([]error, len(bases))
	for i, scene := range slices.Concat(refuseScenes, halfMade)[:len(bases)] {
		all.Go(func() {
			if err := sceneUnderFilter(w, scene, bases[i], i < len(refuseScenes), syscall.Errno(errno)); err != nil {
				errs[i] = fmt.Errorf("%s: %w", scene.name, err)
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Println("done")
	return nil
}

func sceneUnderFilter(w unitWay, scene refuseScene, base string, refused bool, errno syscall.Errno) error {
	s, err := Open(filepath.Join(base, "queue"), &Options{FailedDir: filepath.Join(base, "failed"), ClaimBy: w.route, Mechanism: w.mechanism})
	if err != nil {
		return err
	}
	defer s.Close()
	if !refused || errno == 0 {
		return scene.do(context.Background(), s)
	}
	for range 2 {
		if err := wantRefusal(scene.do(context.Background(), s), w.route, errno); err != nil {
			return err
		}
	}
	return nil
}

// seccompScenes makes a directory for each scene and gives what is in them.
func seccompScenes(t *testing.T, scenes []refuseScene) (dirs []unitDirs, bases []string, trees []string) {
	t.Helper()
	for _, scene := range scenes {
		d := newUnitDirs(t)
		scene.build(t, d)
		dirs, bases, trees = append(dirs, d), append(bases, filepath.Dir(d.queue)), append(trees, d.tree(t))
	}
	return dirs, bases, trees
}

// A kernel that refuses the call of a route: each scene is refused with the kernel's errno
// and changes nothing; what needs no such call goes on; and without the filter all does.
// The other route's call is death: nothing is tried in its stead.
func TestRefusedByKernel(t *testing.T) {
	sandbox.Need(t)
	eachUnitWay(t, func(t *testing.T, w unitWay) {
		calls, other := linkCalls, renameCalls
		if w.route == RenameNoReplace {
			calls, other = other, calls
		}
		for _, errno := range w.refusals() {
			t.Run(errno.Error(), func(t *testing.T) {
				scenes := refuseScenes
				if errno == w.refusals()[0] {
					scenes = slices.Concat(refuseScenes, halfMade)
				}
				dirs, bases, trees := seccompScenes(t, scenes)
				w.under(t, "scenes under a filter", refusing(calls, errno)+";kill:"+other, append([]string{strconv.Itoa(int(errno))}, bases...)...)
				for i, scene := range scenes {
					if i < len(refuseScenes) {
						unitUnchanged(t, trees[i], dirs[i].tree(t))
						if errno != w.refusals()[0] {
							continue
						}
						unitOK(t, scene.do(t.Context(), dirs[i].open(t, w, Options{})))
					}
					dirs[i].wantNames(t, scene.queue, scene.failed)
				}
			})
		}
	})
}

// The no-replace route does everything where links are refused, whatever the errno.
func TestNoReplaceWithoutLinks(t *testing.T) {
	sandbox.Need(t)
	t.Parallel()
	for _, w := range unitWays[3:] {
		filters := []string{"kill:" + linkCalls}
		for _, errno := range slices.Compact(slices.Clone(linkErrnos)) {
			filters = append(filters, refusing(linkCalls, errno))
		}
		t.Run(w.String(), func(t *testing.T) {
			var lives sync.WaitGroup // at once: most of their time goes into syncs
			for _, filter := range filters {
				base := t.TempDir()
				lives.Go(func() { w.under(t, "life under a filter", filter, base) })
			}
			for i, filter := range filters {
				if i > 0 && w.mechanism != Auto {
					break
				}
				scenes := slices.Concat(refuseScenes, halfMade)
				dirs, bases, _ := seccompScenes(t, scenes)
				w.under(t, "scenes under a filter", filter, append([]string{"0"}, bases...)...)
				for i, scene := range scenes {
					dirs[i].wantNames(t, scene.queue, scene.failed)
				}
			}
			lives.Wait()
		})
	}
}

// The link route makes no call of the other, and neither makes one that an Android app may
// not make. Nor does the link route make a symlink.
func TestForbiddenCallsAreNotMade(t *testing.T) {
	sandbox.Need(t)
	eachUnitWay(t, func(t *testing.T, w unitWay) {
		filters := "kill:" + strings.Join(sandbox.Android, ",") + ",symlink,symlinkat"
		if w.route == HardLink {
			filters += "," + renameCalls
		} else {
			filters += "," + linkCalls
		}
		w.under(t, "life under a filter", filters, t.TempDir())
	})
}

// Where no call may be relative to a directory, Off and Auto do everything by paths, and
// Require does nothing at all.
func TestWithoutRelativeCalls(t *testing.T) {
	sandbox.Need(t)
	eachUnitWay(t, func(t *testing.T, w unitWay) {
		role := "life under a filter"
		if w.mechanism == Require {
			role = "refusal under a filter"
		}
		w.under(t, role, fmt.Sprintf("relative:%d", int(syscall.EPERM)), t.TempDir())
	})
}

// refusalUnderFilter takes filters, a way, and an empty directory.
func refusalUnderFilter(args []string) error {
	w, args, err := seccompWay(args)
	if err != nil {
		return err
	}
	for _, open := range []func(string, *Options) (*Store, error){Open, OpenOrCreate} {
		s, err := open(filepath.Join(args[0], "queue"), &Options{ClaimBy: w.route, Mechanism: w.mechanism})
		var link *LinkError
		if s != nil || !errors.Is(err, ErrHelperUnavailable) || !errors.Is(err, syscall.EPERM) || errors.As(err, &link) {
			return fmt.Errorf("got %v, want %v by %v", err, ErrHelperUnavailable, syscall.EPERM)
		}
	}
	if made, err := os.ReadDir(args[0]); err != nil || len(made) > 0 {
		return fmt.Errorf("made %v, %v", made, err)
	}
	fmt.Println("done")
	return nil
}

// relativeCalls name something in a directory by its descriptor.
var relativeCalls = []string{"newfstatat", "fstatat64", "openat", "mkdirat", "unlinkat", "renameat", "renameat2", "linkat", "fchmodat"}

// The filters are real: each call kills, or is refused.
func TestFilters(t *testing.T) {
	sandbox.Need(t)
	for _, call := range []string{"link", "linkat", "renameat2", "statx"} {
		if len(sandbox.Known([]string{call})) == 0 {
			continue // the architecture has no such call
		}
		_, err := start(t, "call under a filter", "kill:"+call, call).Rest()
		if got := killedBy(err); got != syscall.SIGSYS {
			t.Errorf("%s: %v (signal %v), want SIGSYS", call, err, got)
		}
		lines, err := start(t, "call under a filter", refusing(call, syscall.EXDEV), call).Rest()
		if want := call + " returned " + syscall.EXDEV.Error(); err != nil || !slices.Equal(lines, []string{want}) {
			t.Errorf("%s: %v %q, want %q", call, err, lines, want)
		}
	}
}

func callUnderFilter(args []string) error {
	if err := seccompFilters(args[0]); err != nil {
		return err
	}
	fmt.Println(sandbox.Make(args[1]))
	return nil
}

// lifeUnderFilter takes filters, a way, and an empty directory.
func lifeUnderFilter(args []string) error {
	w, args, err := seccompWay(args)
	if err != nil {
		return err
	}
	if err := wholeLife(context.Background(), w, args[0]); err != nil {
		return err
	}
	fmt.Println("done")
	return nil
}

// wholeLife does everything with a store that can be done with one, below base.
func wholeLife(ctx context.Context, w unitWay, base string) error {
	queue, failed := filepath.Join(base, "new", "queue"), filepath.Join(base, "new", "failed")
	var s *Store
	var c *Claim
	var b Batch
	step := func(id, payload string) func() error {
		return func() (err error) {
			if c, err = s.Load(ctx, id, nil); err == nil && string(c.Payload) != payload {
				err = fmt.Errorf("loaded %s", c.Payload)
			}
			return err
		}
	}
	enqueue := func(id, payload string) func() error {
		return func() error { _, err := s.Enqueue(ctx, id, []byte(payload)); return err }
	}
	migrate := func(_ context.Context, _ string, payload []byte) ([]byte, error) {
		return []byte("[" + string(payload) + "]"), nil
	}
	for _, l := range []struct {
		name string
		do   func() error
	}{
		{"create", func() (err error) {
			s, err = OpenOrCreate(queue, &Options{FailedDir: failed, ClaimBy: w.route, Mechanism: w.mechanism})
			return err
		}},
		{"enqueue", enqueue("a", `1`)},
		{"enqueue without an ID", enqueue("", `2`)},
		{"replace", enqueue("a", `3`)},
		{"load", step("a", "3")},
		{"enqueue behind a claim", enqueue("a", `4`)},
		{"ack", func() error { return s.Ack(ctx, c) }},
		{"load the next", step("a", "4")},
		{"fail", func() error { return s.Fail(ctx, c) }},
		{"fail by ID", func() error { return errors.Join(enqueue("b", `5`)(), s.FailID(ctx, "b")) }},
		{"fail beside evidence", func() error {
			if err := errors.Join(enqueue("b", `6`)(), step("b", "6")()); err != nil {
				return err
			}
			if err := s.Fail(ctx, c); !errors.Is(err, ErrAlreadyExists) {
				return fmt.Errorf("got %v, want %v", err, ErrAlreadyExists)
			}
			return s.Ack(ctx, c)
		}},
		{"leave a temporary file", func() error { return os.WriteFile(filepath.Join(queue, "x.tmp"), nil, 0o600) }},
		{"batch", func() (err error) {
			if b, err = s.LoadPending(ctx, &BatchOptions{Migrate: migrate, TempMaxAge: time.Nanosecond}); err == nil && len(b.Claims) != 1 {
				err = fmt.Errorf("%d claims", len(b.Claims))
			}
			return err
		}},
		{"ack by ID", func() error { return errors.Join(s.AckID(ctx, b.Claims[0].ID), b.Claims[0].Close()) }},
		{"status", func() error {
			st, err := s.Status(ctx)
			if st.Retirements = false; err == nil && st != (Status{Failed: 2}) {
				err = fmt.Errorf("status %+v", st)
			}
			return err
		}},
		{"close", func() error { return s.Close() }},
	} {
		if err := l.do(); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	return nil
}
