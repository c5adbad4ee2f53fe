//go:build unix

package holdfast

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// What is not exactly an object or a temporary file of the store's stays, untouched and
// counted by its reason. All else goes all the same.
func TestCollectKeeps(t *testing.T) {
	tok := token{7}.String()
	for _, c := range []struct {
		name   string
		plant  func(d *crashtest.Disk, objects string)
		reason string
		entry  string // relative to objects/; what is planted, untouched
		fails  error
	}{
		{"name", func(d *crashtest.Disk, in string) { d.WriteRaw(in+"/notes.txt", nil) }, KeptName, "notes.txt", nil},
		{"upper-case name", func(d *crashtest.Disk, in string) { d.MkdirAll(in + "/" + strings.ToUpper(tok)) }, KeptName, strings.ToUpper(tok), nil},
		{"a file", func(d *crashtest.Disk, in string) { d.WriteRaw(in+"/"+tok, nil) }, KeptKind, tok, nil},
		{"a symlink", func(d *crashtest.Disk, in string) {
			d.MkdirAll("/data/other")
			d.WriteRaw("/data/other/"+payloadFile, []byte("precious"))
			d.Symlink("/data/other", in+"/"+tok)
		}, KeptKind, tok, nil},
		{"a payload that is a symlink", func(d *crashtest.Disk, in string) {
			d.MkdirAll(in + "/" + tok)
			d.Symlink("/data/other", in+"/"+tok+"/"+payloadFile)
		}, KeptKind, tok + "/" + payloadFile, nil},
		{"a payload that is a directory", func(d *crashtest.Disk, in string) { d.MkdirAll(in + "/" + tok + "/" + payloadFile) }, KeptKind, tok + "/" + payloadFile, nil},
		{"a payload with a second link", func(d *crashtest.Disk, in string) {
			d.MkdirAll(in + "/" + tok)
			d.WriteRaw(in+"/"+tok+"/"+payloadFile, []byte("1"))
			d.HardLink(in+"/"+tok+"/"+payloadFile, "/data/backup")
		}, KeptKind, tok + "/" + payloadFile, nil},
		{"more than an object", func(d *crashtest.Disk, in string) {
			d.MkdirAll(in + "/" + tok)
			d.WriteRaw(in+"/"+tok+"/"+payloadFile, []byte("1"))
			d.WriteRaw(in+"/"+tok+"/payload.json~", []byte("1"))
		}, KeptKind, tok + "/payload.json~", nil},
		{"unreadable", func(d *crashtest.Disk, in string) {
			d.MkdirAll(in + "/" + tok)
			d.Chmod(in+"/"+tok, 0)
		}, KeptUnreadable, tok, unix.EACCES},
		{"unremovable", func(d *crashtest.Disk, in string) {
			d.MkdirAll(in + "/" + tok)
			d.WriteRaw(in+"/"+tok+"/"+payloadFile, []byte("1"))
			d.Chmod(in+"/"+tok, 0o500)
		}, KeptRefused, tok, unix.EACCES},
		{"a temp that is a symlink", func(d *crashtest.Disk, in string) { d.Symlink(in, in+"/../"+stateTemp(token{5})) }, KeptTemp, "../" + stateTemp(token{5}), nil},
		{"a temp that is a directory", func(d *crashtest.Disk, in string) { d.MkdirAll(inCrash(reserveTemp(token{5}))) }, KeptTemp, "../" + reserveTemp(token{5}), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, s, _ := collectScene(t, withGarbage)
			c.plant(d, inCrash(objectsDir))
			r, err := s.Collect(t.Context(), CollectOptions{StepEntries: 3})
			if !errors.Is(err, c.fails) || !r.Done || r.Objects != garbage || r.Temps != 1 {
				t.Errorf("collect: %+v, %v; want the others gone, and %v", r, err, c.fails)
			}
			if len(r.Kept) != 1 || r.kept(c.reason) != 1 || !strings.Contains(objectsDir+"/"+c.entry+" "+strings.TrimPrefix(c.entry, "../"), r.Kept[0].First) || (r.Kept[0].Error != "") != (c.fails != nil) {
				t.Errorf("kept %+v, want one %q", r.Kept, c.reason)
			}
			d.Chmod(inCrash(objectsDir), 0o700)
			if !d.Exists(inCrash(objectsDir + "/" + c.entry)) {
				t.Error("it is gone")
			}
			if c.name == "a symlink" && string(d.ReadRaw("/data/other/"+payloadFile)) != "precious" {
				t.Error("what it points to was touched")
			}
		})
	}
}

// An error that every entry would meet ends the collection; so do many of single ones.
func TestCollectGivesUp(t *testing.T) {
	for _, c := range []struct {
		errno unix.Errno
		meets int
	}{{unix.EROFS, 1}, {unix.EMFILE, 1}, {unix.EIO, garbage}} {
		_, s, w := collectScene(t, withGarbage)
		w.Arm(crashtest.FailMatching(func(op fsguard.Op, path string) bool { return op == fsguard.OpRemoveDir }, c.errno, 0))
		r, err := s.Collect(t.Context(), CollectOptions{})
		if n := r.kept(KeptRefused); !errors.Is(err, c.errno) || n != int64(c.meets) || r.Done != (c.meets > 1) {
			t.Errorf("%v: %+v, %v; want it met %d times", c.errno, r, err, c.meets)
		}
		w.Arm(crashtest.Plan{})
		if r, err := s.Collect(t.Context(), CollectOptions{}); err != nil || r.Objects != garbage {
			t.Errorf("after %v: %+v, %v", c.errno, r, err)
		}
		mustBeClean(t, s, 0, 0)
	}
}

// What this handle has made ahead stays, and is used. What another has made goes: it finds
// so under the lock, and makes anew what it needs.
func TestCollectPrepared(t *testing.T) {
	s, w, d := producing(t)
	r, err := s.Collect(t.Context(), CollectOptions{})
	if err != nil || r.Objects != 0 || r.kept(KeptAhead) != 1 {
		t.Errorf("its own: %+v, %v", r, err)
	}
	ahead := s.pool.ready.name.String()
	mustEnqueue(t, s, "mail", small("c"))
	if shown, err := s.Show(t.Context(), "mail", "c"); err != nil || shown[0].Object != ahead {
		t.Errorf("in object %s, want that made ahead: %v", shown[0].Object, err)
	}
	other := beside(t, d)
	for _, named := range []bool{true, false} {
		if !named {
			for _, x := range mustClaim(t, s, "mail", queue.ClaimOptions{Max: 9}) {
				mustDo(t, s.Ack(t.Context(), x.Receipt))
			}
		}
		r, err = other.Collect(t.Context(), CollectOptions{})
		if err != nil || r.Objects != map[bool]int64{true: 0, false: 3}[named] || len(r.Kept) > 0 {
			t.Errorf("another's, named %v: %+v, %v", named, r, err)
		}
	}
	if s.pool.ready.name.String() != ahead {
		t.Fatal("what was made ahead is not at hand any more")
	}
	mustEnqueue(t, s, "mail", small("d"))
	var ids []string
	for _, x := range mustClaim(t, s, "mail", queue.ClaimOptions{Max: 9}) {
		ids = append(ids, x.Receipt.ID)
		if string(x.Payload) != string(small(x.Receipt.ID).Payload) {
			t.Errorf("%s: %s", x.Receipt.ID, x.Payload)
		}
	}
	if !slices.Equal(ids, []string{"d"}) {
		t.Errorf("claimed %q\n%s", ids, w.Trace())
	}
}
