//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// T06, refused: typed, nothing changed, and a later retry works. First where every call is
// refused, then where the probe's alone is not.
func TestTrial06Refused(t *testing.T) {
	eachUnitWay(t, func(t *testing.T, w unitWay) {
		for _, scene := range refuseScenes {
			for _, errno := range w.refusals() {
				for name, hook := range map[string]refuseHook{"": always(errno), " of entries alone": onEntries(always(errno))} {
					if name != "" && (w.route == RenameNoReplace || errno != syscall.EACCES) {
						continue
					}
					t.Run(fmt.Sprintf("%s, %v%s", scene.name, errno, name), func(t *testing.T) {
						d := newUnitDirs(t)
						scene.build(t, d)
						before := d.tree(t)
						refusing := d.open(t, w, Options{fs: w.hooked(t, hook)})
						for range 2 {
							if err := wantRefusal(scene.do(t.Context(), refusing), w.route, errno); err != nil {
								t.Error(err)
							}
							unitUnchanged(t, before, d.tree(t))
						}
						if errno == w.refusals()[0] {
							unitOK(t, scene.do(t.Context(), d.open(t, w, Options{})))
							d.wantNames(t, scene.queue, scene.failed)
						}
					})
				}
			}
		}
	})
}

// T06, failed: what is no refusal is passed on as it is, and changes as little.
func TestTrial06Failed(t *testing.T) {
	eachUnitWay(t, func(t *testing.T, w unitWay) {
		for _, scene := range refuseScenes {
			for _, errno := range []syscall.Errno{syscall.EIO, syscall.EMFILE, syscall.ENOSPC} {
				t.Run(fmt.Sprintf("%s, %v", scene.name, errno), func(t *testing.T) {
					d := newUnitDirs(t)
					scene.build(t, d)
					before := d.tree(t)
					for _, hook := range []refuseHook{always(errno), onEntries(always(errno))} {
						err := scene.do(t.Context(), d.open(t, w, Options{fs: w.hooked(t, hook)}))
						if !errors.Is(err, errno) || errors.Is(err, ErrHelperUnavailable) {
							t.Errorf("got %v, want %v itself", err, errno)
						}
						unitUnchanged(t, before, d.tree(t))
					}
					if errno == syscall.EIO {
						unitOK(t, scene.do(t.Context(), d.open(t, w, Options{})))
						d.wantNames(t, scene.queue, scene.failed)
					}
				})
			}
		}
	})
}

// T06, raced by a consumer that takes no lock: its claim is the claim, and an entry that
// it took away is none.
func TestTrial06Rival(t *testing.T) {
	eachUnitWay(t, func(t *testing.T, w unitWay) {
		for _, batch := range []bool{false, true} {
			load := func(s *Store) (*Claim, error) {
				if !batch {
					return s.Load(t.Context(), "a", nil)
				}
				b, err := s.LoadPending(t.Context(), nil)
				if len(b.Claims) == 0 {
					return nil, errors.Join(err, &Error{File: "a.json", What: ErrNotFound})
				}
				return b.Claims[0], err
			}
			t.Run(fmt.Sprintf("claims it, batch %t", batch), func(t *testing.T) {
				d := newUnitDirs(t)
				rival := onEntries(func(old, new string, call func() error) error {
					unitPut(t, new, `"the rival's"`)
					return call()
				})
				s := d.open(t, w, Options{fs: w.hooked(t, rival)})
				unitEnqueue(t, s, "a", `1`)
				before := unitTree(t, d.at("a.json"))
				c, err := load(s)
				if err != nil || string(c.Payload) != `"the rival's"` {
					t.Fatalf("loaded %+v, %v", c, err)
				}
				unitUnchanged(t, before, unitTree(t, d.at("a.json")))
				unitOK(t, s.Ack(t.Context(), c))
				d.wantNames(t, "a.json 1", "")
			})
			t.Run(fmt.Sprintf("takes it, batch %t", batch), func(t *testing.T) {
				d := newUnitDirs(t)
				rival := onEntries(func(old, new string, call func() error) error {
					unitOK(t, os.Remove(old))
					return call()
				})
				s := d.open(t, w, Options{fs: w.hooked(t, rival)})
				unitEnqueue(t, s, "a", `1`)
				_, err := load(s)
				unitIs(t, "load", err, ErrNotFound)
				d.wantNames(t, "", "")
			})
			t.Run(fmt.Sprintf("puts a directory there, batch %t", batch), func(t *testing.T) {
				d := newUnitDirs(t)
				rival := onEntries(func(old, new string, call func() error) error {
					unitOK(t, os.Mkdir(new, 0o700))
					return call()
				})
				s := d.open(t, w, Options{fs: w.hooked(t, rival)})
				unitEnqueue(t, s, "a", `1`)
				if batch {
					b, err := s.LoadPending(t.Context(), nil)
					if err != nil || len(b.Claims) != 0 || len(b.Skipped) != 1 || !errors.Is(b.Skipped[0].Err, ErrNotFile) {
						t.Errorf("batch %+v, %v", b, err)
					}
				} else {
					_, err := s.Load(t.Context(), "a", nil)
					unitIs(t, "load", err, ErrNotFile, "a.processing")
				}
				d.wantNames(t, "a.json 1, a.processing", "")
			})
		}
		t.Run("sets other evidence aside", func(t *testing.T) {
			d := newUnitDirs(t)
			rival := onEntries(func(old, new string, call func() error) error {
				unitPut(t, new, `"other"`)
				return call()
			})
			s := d.open(t, w, Options{fs: w.hooked(t, rival)})
			refuseClaimed(t, d, "a", `1`)
			before := d.tree(t)
			c := unitLoad(t, s, "a", "1")
			unitIs(t, "fail", s.Fail(t.Context(), c), ErrAlreadyExists, "failed/a.json")
			unitOK(t, c.Close())
			d.wantNames(t, "a.processing 1", `a.json "other"`)
			unitOK(t, os.Remove(filepath.Join(d.failed, "a.json")))
			unitUnchanged(t, before, d.tree(t))
		})
	})
}

// What another's death left half made is finished without the refused call, or waits.
func TestRefusedRecovery(t *testing.T) {
	eachUnitWay(t, func(t *testing.T, w unitWay) {
		for _, scene := range halfMade {
			t.Run(scene.name, func(t *testing.T) {
				d := newUnitDirs(t)
				scene.build(t, d)
				none := func(old, new string, call func() error) error {
					t.Errorf("a call was made from %s to %s", old, new)
					return call()
				}
				s := d.open(t, w, Options{fs: w.refuseFS(t, none, none)})
				unitOK(t, scene.do(t.Context(), s))
				d.wantNames(t, scene.queue, scene.failed)
			})
		}
	})
}

// A failed directory on another filesystem cannot be reached by either route.
func TestFailedDirElsewhere(t *testing.T) {
	other, err := os.MkdirTemp("/dev/shm", "holdfast-")
	if err != nil {
		skip(t, "no second filesystem: "+err.Error())
	}
	t.Cleanup(func() { os.RemoveAll(other) })
	var here, there syscall.Stat_t
	unitOK(t, syscall.Stat(t.TempDir(), &here), syscall.Stat(other, &there))
	if here.Dev == there.Dev {
		skip(t, "/dev/shm is no other filesystem here")
	}
	for _, w := range unitWays {
		t.Run(w.String(), func(t *testing.T) {
			d := newUnitDirs(t)
			s := d.open(t, w, Options{FailedDir: other})
			d.failed = other
			unitEnqueue(t, s, "a", `1`)
			c := unitLoad(t, s, "a", `1`)
			before := d.tree(t)
			for range 2 {
				if err := wantRefusal(s.Fail(t.Context(), c), w.route, syscall.EXDEV); err != nil {
					t.Error(err)
				}
				if err := wantRefusal(s.FailID(t.Context(), "a"), w.route, syscall.EXDEV); err != nil {
					t.Error(err)
				}
				unitUnchanged(t, before, d.tree(t))
			}
			unitOK(t, s.Ack(t.Context(), c))
			d.wantNames(t, "", "")
		})
	}
}
