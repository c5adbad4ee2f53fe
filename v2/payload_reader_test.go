//go:build unix

package holdfast

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// reading gives a store with a large message and a small one of a batch, claimed, and a
// reader of each.
func streamed(t *testing.T) (d *crashtest.Disk, s *Store, w *crashtest.Wrapper, held map[string]queue.Delivery) {
	d, s, w = collectScene(t, func(t testing.TB, _ *crashtest.Disk, s *Store) {
		mustEnqueue(t, s, "mail", queue.Message{ID: "big", Payload: bigPayload}, small("a"), small("b"))
	})
	held = map[string]queue.Delivery{}
	for _, d := range mustClaim(t, s, "mail", queue.ClaimOptions{Max: 3}) {
		held[d.Receipt.ID] = d
	}
	return d, s, w, held
}

// A payload is read whole whatever happens to the message around it.
func TestOpenPayload(t *testing.T) {
	for name, around := range map[string]func(s *Store, r queue.Receipt) error{
		"nothing":    func(s *Store, r queue.Receipt) error { return nil },
		"superseded": func(s *Store, r queue.Receipt) error { return s.ReplacePayload(t.Context(), r, []byte(`"newer"`)) },
		"acked":      func(s *Store, r queue.Receipt) error { return s.Ack(t.Context(), r) },
		"released":   func(s *Store, r queue.Receipt) error { return s.Release(t.Context(), r, queue.ReleaseOptions{}) },
	} {
		t.Run(name, func(t *testing.T) {
			_, s, w, held := streamed(t)
			for _, id := range []string{"big", "a", "b"} {
				p, err := s.OpenPayload(t.Context(), held[id].Receipt)
				mustDo(t, err)
				var got bytes.Buffer
				_, err = io.CopyN(&got, p, 3)
				mustDo(t, err)
				mustDo(t, around(s, held[id].Receipt))
				if name == "acked" && id == "b" {
					if r, err := s.Collect(t.Context(), CollectOptions{}); err != nil || r.Objects != 2 {
						t.Errorf("collect: %+v, %v", r, err)
					}
				}
				_, err = io.Copy(&got, p)
				if want := held[id].Payload; err != nil || !bytes.Equal(got.Bytes(), want) || p.Size() != int64(len(want)) {
					t.Errorf("%s: read %d bytes, %v; want %d", id, got.Len(), err, len(want))
				}
				mustDo(t, p.Close(), p.Close())
				if _, err := p.Read(make([]byte, 1)); !errors.Is(err, fs.ErrClosed) {
					t.Errorf("closed: %v", err)
				}
			}
			for _, path := range w.Open() {
				if strings.HasSuffix(path, payloadFile) {
					t.Errorf("%s is still open", path)
				}
			}
		})
	}
}

// A receipt that is no longer good opens nothing; neither does one of another store.
func TestOpenPayloadRefuses(t *testing.T) {
	_, s, _, held := streamed(t)
	mustDo(t, s.Ack(t.Context(), held["a"].Receipt), s.Release(t.Context(), held["b"].Receipt, queue.ReleaseOptions{}))
	other := held["big"].Receipt
	other.Store = token{1}.String()
	for _, c := range []struct {
		r    queue.Receipt
		want error
	}{{held["a"].Receipt, queue.ErrGone}, {held["b"].Receipt, queue.ErrStale}, {other, queue.ErrInvalidReceipt}} {
		if _, err := s.OpenPayload(t.Context(), c.r); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.r, err, c.want)
		}
	}
}

// What is not the payload any more is told at the end at the latest, and never as its end.
func TestOpenPayloadDamaged(t *testing.T) {
	for name, c := range map[string]struct {
		text []byte
		why  string
	}{
		"changed": {bytes.Replace(bigPayload, []byte("x"), []byte("y"), 1), "checksum"},
		"short":   {bigPayload[:100], "ends after 100"},
		"missing": {nil, "missing"},
	} {
		t.Run(name, func(t *testing.T) {
			d, s, _, held := streamed(t)
			shown, err := s.Show(t.Context(), "mail", "big")
			mustDo(t, err)
			file := inCrash(objectsDir + "/" + shown[0].Object + "/" + payloadFile)
			if d.Remove(file); c.text != nil {
				d.WriteRaw(file, c.text)
			}
			p, err := s.OpenPayload(t.Context(), held["big"].Receipt)
			if err == nil {
				_, err = io.Copy(io.Discard, p)
				if _, again := p.Read(make([]byte, 1)); again != err {
					t.Errorf("read again: %v, want %v", again, err)
				}
				mustDo(t, p.Close())
			}
			if !errors.Is(err, queue.ErrDamaged) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%v, want %q", err, c.why)
			}
		})
	}
}

// Trouble of the disk is itself, and says nothing about the payload.
func TestOpenPayloadTrouble(t *testing.T) {
	_, s, w, held := streamed(t)
	p, err := s.OpenPayload(t.Context(), held["big"].Receipt)
	mustDo(t, err)
	defer p.Close()
	on := func(want fsguard.Op) func(op fsguard.Op, path string) bool {
		return func(op fsguard.Op, path string) bool { return op == want && strings.HasSuffix(path, payloadFile) }
	}
	w.Arm(crashtest.FailMatching(on(fsguard.OpRead), unix.EIO, 1))
	if _, err := p.Read(make([]byte, 10)); !errors.Is(err, unix.EIO) || errors.Is(err, queue.ErrDamaged) {
		t.Errorf("read: %v", err)
	}
	w.Arm(crashtest.FailMatching(on(fsguard.OpOpen), unix.EMFILE, 1))
	if _, err := s.OpenPayload(t.Context(), held["a"].Receipt); !errors.Is(err, unix.EMFILE) || errors.Is(err, queue.ErrDamaged) {
		t.Errorf("open: %v", err)
	}
}

// What the same commit brings is not in its place yet: it is read from memory.
func TestOpenPayloadOfTheSameCommit(t *testing.T) {
	_, s, w, held := streamed(t)
	var p *PayloadReader
	mustDo(t, s.submit(t.Context(), &call{writes: true, decide: func(v *view) error {
		if err := v.draft.replacePayload(held["a"].Receipt, []byte(`"newer"`)); err != nil {
			return err
		}
		slot, err := v.draft.held(held["a"].Receipt)
		if err != nil {
			return err
		}
		p, err = v.openPayload("mail/a", &slot.claimed.ref)
		return err
	}}))
	if got, err := io.ReadAll(p); err != nil || string(got) != `"newer"` {
		t.Errorf("%s, %v\n%s", got, err, w.Trace())
	}
	mustDo(t, p.Close())
}
