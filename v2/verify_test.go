//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// verifyStore makes a store of three objects: a batch of a, b and c, of which c has
// failed; big; and one that nothing refers to.
func verifyStore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir() + "/verified"
	s, err := Create(t.Context(), dir, nil)
	mustDo(t, err)
	mustEnqueue(t, s, "mail", small("a"), small("b"), small("c"))
	mustEnqueue(t, s, "mail", queue.Message{ID: "big", Payload: []byte(`"` + strings.Repeat("x", 2*smallPayload) + `"`)})
	mustEnqueue(t, s, "mail", small("gone"))
	for id, settle := range map[string]func(r queue.Receipt) error{
		"c":    func(r queue.Receipt) error { return second(s.Fail(t.Context(), r, queue.FailOptions{})) },
		"gone": func(r queue.Receipt) error { return s.Ack(t.Context(), r) },
	} {
		d, err := s.Load(t.Context(), "mail", id, queue.LoadOptions{})
		mustDo(t, err, settle(d.Receipt))
	}
	mustDo(t, s.Close())
	return dir
}

// objectOf gives the object in which a message's payload lies.
func objectOf(t *testing.T, dir, id string) string {
	t.Helper()
	s, err := OpenReadOnly(t.Context(), dir, nil)
	mustDo(t, err)
	defer s.Close()
	shown, err := s.Show(t.Context(), "mail", id)
	mustDo(t, err)
	return shown[0].Object
}

// restate replaces state.json by what change makes of it.
func restate(t *testing.T, at func(...string) string, change func(st *state)) {
	t.Helper()
	store, err := decodeFormat(mustRead(t, at(formatFile)), formatFile)
	mustDo(t, err)
	st, err := decodeState(mustRead(t, at(stateFile)), stateFile, store)
	mustDo(t, err)
	change(st)
	mustDo(t, os.WriteFile(at(stateFile), encodeState(nil, st), 0o600))
}

// Each kind of damage is found for what it is; what is harmless is counted. Verify
// itself changes nothing.
func TestVerify(t *testing.T) {
	t.Parallel()
	store := verifyStore(t)
	batch, big := objectOf(t, store, "a"), objectOf(t, store, "big")
	payload := func(object string) string { return objectsDir + "/" + object + "/" + payloadFile }
	edit := func(object string, change func(text []byte) []byte) func(t *testing.T, at func(...string) string) {
		return func(t *testing.T, at func(...string) string) {
			path := at(objectsDir, object, payloadFile)
			mustDo(t, os.WriteFile(path, change(mustRead(t, path)), 0o600))
		}
	}
	fault := func(code, file, id, reason string) Fault {
		f := Fault{Code: code, File: file, ID: id, Reason: reason}
		if id != "" {
			f.Queue = "mail"
		}
		return f
	}
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, at func(...string) string)
		want  []Fault // by code, file, queue and ID; the reason has Reason in it
		check func(r Report) bool
	}{
		{name: "nothing", spoil: func(*testing.T, func(...string) string) {}, check: func(r Report) bool {
			return r.Messages == 3 && r.Failed == 1 && r.Objects == 2 && r.Orphans == 1 && r.OrphanBytes == 13 && r.PayloadBytes == 3*10+2*smallPayload+2
		}},
		{name: "a byte flipped", spoil: edit(batch, func(text []byte) []byte {
			text[len(text)/2] ^= 1
			return text
		}), want: []Fault{fault("payload", payload(batch), "b", "checksum")}},
		{name: "a payload that is no JSON, with its checksum", spoil: func(t *testing.T, at func(...string) string) {
			text := mustRead(t, at(objectsDir, batch, payloadFile))
			copy(text[1:], "nonsense--")
			mustDo(t, os.WriteFile(at(objectsDir, batch, payloadFile), text, 0o600))
			restate(t, at, func(st *state) {
				s := st.queues[0].slots[0]
				s.pending.sum, s.enc = checksum(text[1:11]), nil
			})
		}, want: []Fault{fault("payload", payload(batch), "a", "invalid payload")}},
		{name: "an object cut short", spoil: edit(batch, func(text []byte) []byte { return text[:len(text)-5] }),
			want: []Fault{fault("payload", payload(batch), "c", "ends after")}},
		{name: "an object emptied", spoil: edit(big, func([]byte) []byte { return nil }),
			want: []Fault{fault("payload", payload(big), "big", "ends after 0")}},
		{name: "an object longer than need be", spoil: edit(big, func(text []byte) []byte { return append(text, "  "...) })},
		{name: "an object gone", spoil: func(t *testing.T, at func(...string) string) { mustDo(t, os.RemoveAll(at(objectsDir, batch))) },
			want: []Fault{fault("payload", payload(batch), "a", "missing"), fault("payload", payload(batch), "b", "missing"), fault("payload", payload(batch), "c", "missing")}},
		{name: "a payload's file gone", spoil: func(t *testing.T, at func(...string) string) {
			mustDo(t, os.Remove(at(objectsDir, big, payloadFile)))
		}, want: []Fault{fault("payload", payload(big), "big", "missing")}},
		{name: "a symlink as a payload", spoil: func(t *testing.T, at func(...string) string) {
			instead(objectsDir+"/"+big+"/"+payloadFile, symlinkTo)(t, at)
		}, want: []Fault{fault("payload", payload(big), "big", "symbolic link")}},
		{name: "a FIFO as a payload", spoil: func(t *testing.T, at func(...string) string) {
			instead(objectsDir+"/"+big+"/"+payloadFile, fifoInstead)(t, at)
		}, want: []Fault{fault("payload", payload(big), "big", "expected type")}},
		{name: "a symlink as an object", spoil: func(t *testing.T, at func(...string) string) { instead(objectsDir+"/"+big, symlinkTo)(t, at) },
			want: []Fault{fault("payload", payload(big), "big", "symbolic link")}},
		{name: "counters of live messages", spoil: func(t *testing.T, at func(...string) string) {
			restate(t, at, func(st *state) { st.queues[0].counters.Enqueued++ })
		}, want: []Fault{{Code: "counters", File: stateFile, Queue: "mail", Reason: "say 4 live messages, there are 3"}}},
		{name: "counters of failed messages", spoil: func(t *testing.T, at func(...string) string) {
			restate(t, at, func(st *state) { st.queues[0].counters.Purged++ })
		}, want: []Fault{{Code: "counters", File: stateFile, Queue: "mail", Reason: "say 0 failed messages, there are 1"}}},
		{name: "strays in the namespace", spoil: func(t *testing.T, at func(...string) string) {
			mustDo(t, os.WriteFile(at("notes.txt"), nil, 0o600), os.Mkdir(at("old"), 0o700), unix.Mkfifo(at(".state-x.tmp"), 0o600))
		}, want: []Fault{fault("file", ".state-x.tmp", "", "not the store's"), fault("file", "notes.txt", "", "not the store's"), fault("file", "old", "", "not the store's")}},
		{name: "other types of file", spoil: func(t *testing.T, at func(...string) string) {
			instead(reserveFile, fifoInstead)(t, at)
			mustDo(t, os.RemoveAll(at(holdersDir)), os.WriteFile(at(holdersDir), nil, 0o600))
		}, want: []Fault{fault("file", holdersDir, "", "not a directory"), fault("file", reserveFile, "", "not a plain file")}},
		{name: "a lock too short", spoil: func(t *testing.T, at func(...string) string) { mustDo(t, os.Truncate(at(lockFile), 100)) },
			want:  []Fault{fault("lock", lockFile, "", "512 bytes")},
			check: func(r Report) bool { return !r.Settled && r.Owner != nil && r.Owner.Token == "" }},
		{name: "a lock too long", spoil: func(t *testing.T, at func(...string) string) {
			mustDo(t, os.WriteFile(at(lockFile), []byte(blankRecord+" "), 0o600))
		}, want: []Fault{fault("lock", lockFile, "", "512 bytes")}, check: func(r Report) bool { return !r.Settled }},
		{name: "a dead owner's record", spoil: func(t *testing.T, at func(...string) string) {
			mustDo(t, os.WriteFile(at(lockFile), encodeRecord(queue.Owner{Token: namedToken("dead").String()}), 0o600))
		}, check: func(r Report) bool {
			return !r.Settled && r.Owner != nil && r.Owner.Token == namedToken("dead").String()
		}},
		{name: "orphans", spoil: func(t *testing.T, at func(...string) string) {
			for _, name := range []string{namedToken("empty").String(), namedToken("full").String(), "foreign"} {
				mustDo(t, os.Mkdir(at(objectsDir, name), 0o700))
			}
			mustDo(t, os.WriteFile(at(objectsDir, namedToken("full").String(), payloadFile), make([]byte, 1000), 0o600), os.WriteFile(at(objectsDir, "file"), nil, 0o600))
		}, check: func(r Report) bool { return r.Orphans == 5 && r.OrphanBytes == 1013 }},
		{name: "temps", spoil: func(t *testing.T, at func(...string) string) {
			for _, name := range []string{stateTemp(namedToken("x")), reserveTemp(namedToken("y")), ".format.json123"} {
				mustDo(t, os.WriteFile(at(name), []byte("cut o"), 0o600))
			}
		}, check: func(r Report) bool { return r.Temps == 3 }},
		{name: "no reserve", spoil: func(t *testing.T, at func(...string) string) { mustDo(t, os.Remove(at(reserveFile))) }},
		{name: "no holders", spoil: func(t *testing.T, at func(...string) string) { mustDo(t, os.RemoveAll(at(holdersDir))) },
			want: []Fault{fault("file", holdersDir, "", "missing")}},
		{name: "strays in holders/", spoil: func(t *testing.T, at func(...string) string) {
			mustDo(t, os.WriteFile(at(holdersDir, "notes.txt"), nil, 0o600), os.Mkdir(at(holdersDir, namedToken("x").String()), 0o700))
		}, want: []Fault{fault("file", holdersDir+"/"+namedToken("x").String(), "", "not a plain file"), fault("file", holdersDir+"/notes.txt", "", "not the store's")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, at := copyOf(t, store)
			c.spoil(t, at)
			verified(t, dir, c.want, c.check)
		})
	}
}

// verified checks what Verify finds, by a handle that was open and by VerifyDir.
func verified(t *testing.T, dir string, want []Fault, check func(Report) bool) {
	t.Helper()
	before := treeOf(t, dir)
	o, w := watched(t)
	var done, total int64
	r, err := VerifyDir(t.Context(), dir, o, VerifyOptions{Progress: func(d, of int64) {
		if d < done {
			t.Errorf("progress went back from %d to %d", done, d)
		}
		done, total = d, of
	}})
	mustDo(t, err)
	if done != total || done != r.PayloadBytes {
		t.Errorf("progress ended at %d of %d", done, total)
	}
	if r.OK != (len(want) == 0) || len(r.Faults) != len(want) || check != nil && !check(r) {
		t.Errorf("report: %+v, want %+v", r, want)
	}
	for i := range min(len(want), len(r.Faults)) {
		got := r.Faults[i]
		reason := got.Reason
		if got.Reason = want[i].Reason; got != want[i] || !strings.Contains(reason, want[i].Reason) {
			t.Errorf("fault %+v (%s), want %+v", r.Faults[i], reason, want[i])
		}
	}
	s, err := Open(t.Context(), dir, nil)
	mustDo(t, err)
	again, err := s.Verify(t.Context(), VerifyOptions{})
	mustDo(t, err, s.Close())
	if fmt.Sprint(again.Faults, again.Messages, again.Orphans) != fmt.Sprint(r.Faults, r.Messages, r.Orphans) {
		t.Errorf("an open handle reports %+v\nVerifyDir %+v", again, r)
	}
	unchanged(t, dir, before)
	if n := w.Count(append(changing, fsguard.OpSync, fsguard.OpSyncDir)...); n != 0 {
		t.Errorf("%d operations that change something:\n%s", n, w.Trace())
	}
}

// A payload with a second link could be changed by its other name. (This makes hard
// links, which some sandboxes kill for: kept apart by its name.)
func TestVerifyHardLink(t *testing.T) {
	dir, at := copyOf(t, verifyStore(t))
	big := objectOf(t, dir, "big")
	mustDo(t, os.Link(at(objectsDir, big, payloadFile), dir+"-link"), os.Link(at(reserveFile), dir+"-reserve"))
	verified(t, dir, []Fault{
		{Code: "payload", File: objectsDir + "/" + big + "/" + payloadFile, Queue: "mail", ID: "big", Reason: "hard link"},
		{Code: "file", File: reserveFile, Reason: "one link"},
	}, nil)
}

// Damage is in the report; that the looking failed is an error, and no damage.
func TestVerifyThatCannotRead(t *testing.T) {
	for _, errno := range []error{syscall.EIO, syscall.EMFILE, syscall.EACCES} {
		for _, op := range []fsguard.Op{fsguard.OpRead, fsguard.OpOpen, fsguard.OpOpenDir} {
			d, s := simStore(t, nil)
			mustEnqueue(t, s, "mail", small("a"))
			w := crashtest.Wrap(d.Process(), crashtest.FailMatching(func(o fsguard.Op, path string) bool {
				return o == op && strings.Contains(path, objectsDir+"/")
			}, errno, 0))
			r, err := VerifyDir(t.Context(), simDir, &Options{fs: w}, VerifyOptions{})
			if !errors.Is(err, errno) || r.OK || len(r.Faults) > 0 {
				t.Errorf("%v at %s: %+v, %v", errno, op, r, err)
			}
			if open := w.Open(); len(open) > 0 {
				t.Errorf("left open: %q", open)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := VerifyDir(ctx, t.TempDir(), nil, VerifyOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is over: %v", err)
	}
}
