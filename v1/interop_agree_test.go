//go:build unix

package holdfast

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func (d interopDirs) pendingFile() string { return filepath.Join(d.Queue, interopID+pendingSuffix) }
func (d interopDirs) claimFile() string   { return filepath.Join(d.Queue, interopID+processingSuffix) }
func (d interopDirs) markFile() string    { return filepath.Join(d.Queue, interopID+deliveredSuffix) }
func (d interopDirs) failedFile() string  { return filepath.Join(d.Failed, interopID+pendingSuffix) }
func (d interopDirs) recordDir() string {
	return filepath.Join(d.Queue, retirementsDir, interopID+pendingSuffix)
}

// interopPut writes an entry's file.
func interopPut(path, gen string) error { return os.WriteFile(path, interopGen(gen), 0o600) }

// The same directory and the same call: JavaScript, Go by links and Go by renames answer
// with the same code and leave the same files.
func TestInteropAgree(t *testing.T) {
	t.Parallel()
	p := newInteropPeer(t)
	for _, c := range []struct {
		name   string
		before func(d interopDirs) error
		call   string // load, ack, fail, enqueue
		want   string // the generation that is loaded, or a code
	}{
		{"load a pending one", func(d interopDirs) error { return interopPut(d.pendingFile(), "G1") }, "load", "G1"},
		{"load a claimed one", func(d interopDirs) error { return interopPut(d.claimFile(), "G1") }, "load", "G1"},
		{"load a claimed one before a newer one", func(d interopDirs) error {
			return errors.Join(interopPut(d.claimFile(), "G1"), interopPut(d.pendingFile(), "G2"))
		}, "load", "G1"},
		{"load nothing", func(interopDirs) error { return nil }, "load", ""},
		{"load a directory", func(d interopDirs) error { return os.Mkdir(d.pendingFile(), 0o700) }, "load", ""},
		{"load a symlink", func(d interopDirs) error {
			return errors.Join(interopPut(d.Queue+"/x", "G1"), os.Symlink("x", d.pendingFile()))
		}, "load", ""},
		{"load one that has another name", func(d interopDirs) error {
			return errors.Join(interopPut(d.pendingFile(), "G1"), os.Link(d.pendingFile(), d.Failed+"/x"))
		}, "load", "path-mismatch"},
		{"load a claim cut off after its link", func(d interopDirs) error {
			return errors.Join(interopPut(d.pendingFile(), "G1"), os.Link(d.pendingFile(), d.claimFile()))
		}, "load", "G1"},
		{"load with an empty record", func(d interopDirs) error {
			return errors.Join(os.MkdirAll(d.recordDir(), 0o700), interopPut(d.pendingFile(), "G1"))
		}, "load", "G1"},
		{"load with a newer one in the record", func(d interopDirs) error {
			return errors.Join(os.MkdirAll(d.recordDir(), 0o700), interopPut(d.claimFile(), "G1"), interopPut(d.recordDir()+"/entry", "G2"))
		}, "load", "G1"},
		{"load with a newer one in the record and a still newer one", func(d interopDirs) error {
			return errors.Join(os.MkdirAll(d.recordDir(), 0o700), interopPut(d.claimFile(), "G1"), interopPut(d.recordDir()+"/entry", "G2"), interopPut(d.pendingFile(), "G3"))
		}, "load", "G1"},
		{"load with a restored one", func(d interopDirs) error {
			return errors.Join(os.MkdirAll(d.recordDir(), 0o700), interopPut(d.claimFile(), "G1"), interopPut(d.recordDir()+"/entry", "G2"),
				os.Link(d.recordDir()+"/entry", d.pendingFile()))
		}, "load", "G1"},
		{"load with a newer one of several names", func(d interopDirs) error {
			return errors.Join(os.MkdirAll(d.recordDir(), 0o700), interopPut(d.claimFile(), "G1"), interopPut(d.recordDir()+"/entry", "G2"),
				interopPut(d.pendingFile(), "G3"), os.Link(d.pendingFile(), d.Failed+"/x"))
		}, "load", "path-mismatch"},
		{"load with a record beside no claim", func(d interopDirs) error {
			return errors.Join(os.MkdirAll(d.recordDir(), 0o700), interopPut(d.recordDir()+"/entry", "G1"))
		}, "load", "path-mismatch"},
		{"load with a record of something else", func(d interopDirs) error {
			return errors.Join(os.MkdirAll(d.recordDir(), 0o700), interopPut(d.recordDir()+"/other", "G1"))
		}, "load", "path-mismatch"},
		{"load with a record that is a file", func(d interopDirs) error {
			return errors.Join(os.Mkdir(filepath.Dir(d.recordDir()), 0o700), interopPut(d.recordDir(), "G1"))
		}, "load", "path-mismatch"},
		{"load with records that are a symlink", func(d interopDirs) error {
			return errors.Join(os.Symlink(d.Failed, filepath.Dir(d.recordDir())), interopPut(d.pendingFile(), "G1"))
		}, "load", "path-mismatch"},

		{"ack a claim", func(d interopDirs) error { return interopPut(d.claimFile(), "G1") }, "ack", ""},
		{"ack a claim before a newer one", func(d interopDirs) error {
			return errors.Join(interopPut(d.claimFile(), "G1"), interopPut(d.pendingFile(), "G2"))
		}, "ack", ""},
		{"ack over a marker", func(d interopDirs) error {
			return errors.Join(interopPut(d.claimFile(), "G1"), interopPut(d.markFile(), "G0"))
		}, "ack", ""},
		{"ack a marker", func(d interopDirs) error { return interopPut(d.markFile(), "G0") }, "ack", ""},
		{"ack nothing", func(interopDirs) error { return nil }, "ack", ""},
		{"ack a pending one", func(d interopDirs) error { return interopPut(d.pendingFile(), "G1") }, "ack", "path-mismatch"},
		{"ack a marker before a newer one", func(d interopDirs) error {
			return errors.Join(interopPut(d.markFile(), "G0"), interopPut(d.pendingFile(), "G1"))
		}, "ack", "path-mismatch"},

		{"fail a claim", func(d interopDirs) error { return interopPut(d.claimFile(), "G1") }, "fail", ""},
		{"fail a pending one", func(d interopDirs) error { return interopPut(d.pendingFile(), "G1") }, "fail", ""},
		{"fail nothing", func(interopDirs) error { return nil }, "fail", "ENOENT"},
		{"fail what has failed", func(d interopDirs) error { return interopPut(d.failedFile(), "G1") }, "fail", ""},
		{"fail a claim cut off between its names", func(d interopDirs) error {
			return errors.Join(interopPut(d.claimFile(), "G1"), os.Link(d.claimFile(), d.failedFile()))
		}, "fail", ""},
		{"fail beside other evidence", func(d interopDirs) error {
			return errors.Join(interopPut(d.claimFile(), "G1"), interopPut(d.failedFile(), "G1"))
		}, "fail", "already-exists"},
		{"fail a pending one beside other evidence", func(d interopDirs) error {
			return errors.Join(interopPut(d.pendingFile(), "G1"), interopPut(d.failedFile(), "G1"))
		}, "fail", "already-exists"},

		{"enqueue", func(interopDirs) error { return nil }, "enqueue", ""},
		{"enqueue over a pending one", func(d interopDirs) error { return interopPut(d.pendingFile(), "G0") }, "enqueue", ""},
		{"enqueue behind a claim", func(d interopDirs) error { return interopPut(d.claimFile(), "G0") }, "enqueue", ""},
		{"enqueue over one of several names", func(d interopDirs) error {
			return errors.Join(interopPut(d.pendingFile(), "G0"), os.Link(d.pendingFile(), d.Failed+"/x"))
		}, "enqueue", ""},
		{"enqueue over a symlink", func(d interopDirs) error { return os.Symlink("x", d.pendingFile()) }, "enqueue", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var want string
			for i, who := range []string{"javascript", HardLink.String(), RenameNoReplace.String()} {
				d := newInteropDirs(t)
				interopOK(t, c.before(d))
				var side interopSide
				switch i {
				case 0:
					side = newInteropJSSide(t, p, d)
				default:
					side = newInteropGoSide(t, d, Route(i-1))
				}
				got, code := "", ""
				switch c.call {
				case "load":
					got, code = side.load(t)
				case "ack":
					code = side.ack(t)
				case "fail":
					code = side.fail(t)
				case "enqueue":
					code = side.enqueue(t, "G9")
				}
				if got+code != c.want {
					t.Errorf("%s: %q, want %q", who, got+code, c.want)
				}
				// JSON in two layouts, and the directory of records that a route needs, are no difference.
				picture := strings.NewReplacer("\\n", "", "  ", "", ": ", ":").Replace(d.withoutRecords(t).picture(t))
				if i == 0 {
					want = picture
				} else if picture != want {
					t.Errorf("%s left\n%sjavascript left\n%s", who, picture, want)
				}
			}
		})
	}
}

// While one side's callback runs, outside the lock, the other settles the claim and claims
// a newer entry: the migration is refused, on both sides, and the newer one untouched.
func TestInteropStaleMigration(t *testing.T) {
	t.Parallel()
	p, helper := newInteropPeer(t), newInteropPeer(t)
	again := func(t *testing.T, side interopSide) {
		gen, code := "", side.ack(t)+side.enqueue(t, "G2")
		if code == "" {
			gen, code = side.load(t)
		}
		if gen != "G2" || code != "" {
			t.Errorf("%s meanwhile: %s %s", side.name(), gen, code)
		}
	}
	stays := func(t *testing.T, d interopDirs) {
		if gen, code := newInteropGoSide(t, d, HardLink).load(t); gen != "G2" || code != "" {
			t.Errorf("then: %s %s, want G2", gen, code)
		}
		if names := d.withoutRecords(t).names(t); len(names) != 1 {
			t.Errorf("left: %q", names)
		}
	}
	for _, r := range []Route{HardLink, RenameNoReplace} {
		t.Run("javascript migrates, "+r.String(), func(t *testing.T) {
			d := newInteropDirs(t)
			interopOK(t, interopPut(d.pendingFile(), "G1"))
			p.whilePaused(func(string) { again(t, newInteropGoSide(t, d, r)) })
			a := p.call(t, "load", interopArgs{"queue": d.Queue, "id": interopID, "gate": true, "migrate": map[string]string{"gen": "M1"}})
			if a.Code != string(ErrPathMismatch) {
				t.Errorf("javascript: %v, want a path mismatch", a)
			}
			stays(t, d)
		})
		t.Run("go migrates, "+r.String(), func(t *testing.T) {
			d := newInteropDirs(t)
			interopOK(t, interopPut(d.pendingFile(), "G1"))
			s := interopStore(t, d, Options{ClaimBy: r})
			_, err := s.Load(context.Background(), interopID, &LoadOptions{Migrate: func(context.Context, string, []byte) ([]byte, error) {
				again(t, newInteropJSSide(t, helper, d))
				return interopGen("M1"), nil
			}})
			if !errors.Is(err, ErrPathMismatch) {
				t.Errorf("go: %v, want a path mismatch", err)
			}
			stays(t, d)
		})
	}
}

// withoutRecords removes the directory of retirement records if it is empty.
func (d interopDirs) withoutRecords(t testing.TB) interopDirs {
	t.Helper()
	records := filepath.Join(d.Queue, retirementsDir)
	if list, err := os.ReadDir(records); err == nil && len(list) == 0 {
		info, err := os.Lstat(records)
		interopOK(t, err)
		if info.IsDir() {
			interopOK(t, os.Remove(records))
		}
	}
	return d
}

// Every file that either side makes is its owner's alone.
func TestInteropModes(t *testing.T) {
	t.Parallel()
	p := newInteropPeer(t)
	d := newInteropDirs(t)
	for _, side := range []interopSide{newInteropJSSide(t, p, d), newInteropGoSide(t, d, HardLink), newInteropGoSide(t, d, RenameNoReplace)} {
		if code := side.enqueue(t, "G1"); code != "" {
			t.Fatal(code)
		}
		info, err := os.Stat(d.pendingFile())
		interopOK(t, err)
		if info.Mode() != 0o600 {
			t.Errorf("%s: mode %v, want 0600", side.name(), info.Mode())
		}
	}
}
