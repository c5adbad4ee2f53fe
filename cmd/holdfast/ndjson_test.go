//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// A tape plays back n lines, made as they are read.
type tape struct {
	n, next int
	line    func(i int) string
	rest    string
}

func (r *tape) Read(p []byte) (int, error) {
	for r.rest == "" {
		if r.next == r.n {
			return 0, io.EOF
		}
		r.rest = r.line(r.next)
		r.next++
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func TestStreamGoesInBoundedChunks(t *testing.T) {
	for _, try := range []struct {
		name string
		n    int
		line func(i int) string
	}{
		{"small", 50_000, func(i int) string { return fmt.Sprintf("{\"n\":%d}\n", i) }},
		{"large", 300, func(i int) string { return `"` + strings.Repeat("x", 40_000) + "\"\n" }},
		{"huge", 6, func(i int) string { return `"` + strings.Repeat("x", 3<<20) + "\"\n" }},
	} {
		t.Run(try.name, func(t *testing.T) {
			f := &fakeStore{}
			s := &session{t: t, dir: "/fake", engine: with(f)}
			got := s.feedFrom(t.Context(), &tape{n: try.n, line: try.line}, "enqueue", "chat", "--ndjson")
			if got.code != 0 || f.accepted() != try.n {
				t.Fatalf("exit %d, %d of %d accepted: %s", got.code, f.accepted(), try.n, got.err)
			}
			if want := fmt.Sprintf("enqueued %d messages in chat\n", try.n); got.out != want {
				t.Errorf("got %q, want %q", got.out, want)
			}
			most := 0
			for _, b := range f.batches {
				most = max(most, b)
			}
			if most > chunkMessages || f.mostBytes > max(chunkBytes, len(try.line(0))) {
				t.Errorf("a chunk of %d messages, one of %d bytes", most, f.mostBytes)
			}
			if try.name == "small" && len(f.batches) > 2*try.n/chunkMessages {
				t.Errorf("%d commits for %d messages", len(f.batches), try.n)
			}
		})
	}
}

func TestLineReaderSkipsWhatIsTooLong(t *testing.T) {
	in := "1\n\n" + strings.Repeat("x", 11) + "\n" + strings.Repeat("y", 10) + "\r\n" + strings.Repeat("z", 1<<20) + "\nlast"
	ch := make(chan line)
	go readLines(t.Context(), strings.NewReader(in), 10, ch)
	var got []string
	for l := range ch {
		if cap(l.text) > 64 {
			t.Errorf("line %d: %d bytes are held", l.number, cap(l.text))
		}
		got = append(got, fmt.Sprintf("%d %s %v", l.number, l.text, l.tooLong))
	}
	want := []string{"1 1 false", "2  false", "3  true", "4 yyyyyyyyyy false", "5  true", "6 last false"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBadLinesAreReportedAndTheRestGoesOn(t *testing.T) {
	s := newStore(t)
	long := `"` + strings.Repeat("x", maxPayload) + `"`
	got := s.feed("1\n\n{\"a\":\n  \t\n2\n"+long+"\n\xff\n3", "enqueue", "chat", "--ndjson", "--json")
	if got.code != exitUsage || len(lines(got.out)) != 3 {
		t.Fatalf("exit %d, out %q, err %q", got.code, got.out, got.err)
	}
	want := map[int]string{3: "invalid_payload", 6: "too_large", 7: "invalid_payload"}
	for _, text := range lines(got.err) {
		l := decode[errorLine](t, text)
		if want[l.Line] != l.Code {
			t.Errorf("line %d: %s", l.Line, text)
		}
		delete(want, l.Line)
	}
	if len(want) != 0 {
		t.Errorf("not reported: %v", want)
	}
	if st := decode[statusLine](t, s.must("status", "--json")); st.Queues["chat"].Pending != 3 {
		t.Errorf("pending: %+v", st.Queues["chat"])
	}
	if got := s.feed("1\nx\n", "enqueue", "chat", "--ndjson"); got.out != "enqueued 1 message in chat; 1 line refused\n" {
		t.Errorf("for people: %q", got.out)
	}
}

func TestAFullStoreEndsTheStream(t *testing.T) {
	f := &fakeStore{}
	f.batch = func(ms []queue.Message) error {
		if len(f.batches) < 2 {
			return nil
		}
		return &queue.BatchError{Refused: []queue.Refusal{{Index: 7, Err: queue.ErrFull}}}
	}
	s := &session{t: t, dir: "/fake", engine: with(f)}
	got := s.feedFrom(t.Context(), &tape{n: 5000, line: func(int) string { return "1\n" }}, "enqueue", "chat", "--ndjson", "--json")
	l := decode[errorLine](t, got.err)
	if got.code != exitRefused || l.Code != "full" || l.Accepted == nil || *l.Accepted != int64(f.accepted()) || len(lines(got.err)) != 1 {
		t.Errorf("exit %d, %s", got.code, got.err)
	}
}

func TestAnUncertainChunkIsResolved(t *testing.T) {
	for _, try := range []struct {
		name      string
		committed bool
		resolve   error
		exit      int
		code      string
		accepted  int64
	}{
		{"happened", true, nil, exitDone, "resolved", 5},
		{"did not", false, nil, exitIO, "io", 2},
		{"cannot tell", false, errors.New("the lock is taken"), exitOperator, "uncertain", 2},
	} {
		t.Run(try.name, func(t *testing.T) {
			f := &fakeStore{resolve: func() (bool, error) { return try.committed, try.resolve }}
			f.batch = func(ms []queue.Message) error {
				if string(ms[0].Payload) == "3" {
					return &queue.UncertainError{Revision: 2, Err: syscall.EIO}
				}
				return nil
			}
			big := `"` + strings.Repeat("x", chunkBytes) + `"` // goes alone, and so parts the chunks
			s := &session{t: t, dir: "/fake", engine: with(f)}
			got := s.feed("1\n"+big+"\n3\n4\n5\n", "enqueue", "chat", "--ndjson", "--json")
			note := decode[map[string]any](t, got.err)
			if got.code != try.exit || note["code"] != try.code || int64(len(lines(got.out))) != try.accepted {
				t.Errorf("exit %d, %d lines, %s", got.code, len(lines(got.out)), got.err)
			}
			if try.exit != exitDone && note["accepted"] != float64(try.accepted) {
				t.Errorf("it says that %v were accepted, want %d", note["accepted"], try.accepted)
			}
		})
	}
}

func TestInterruptedStreamSaysWhatWasAccepted(t *testing.T) {
	s := newStore(t)
	ctx, interrupt := context.WithCancel(t.Context())
	in, feed := io.Pipe()
	defer feed.Close()
	got := make(chan answer)
	go func() { got <- s.feedFrom(ctx, in, "enqueue", "chat", "--ndjson", "--json") }()
	fmt.Fprint(feed, "1\n2\n\n3\n") // no end of input: the command waits for more
	pending := func() uint64 {
		return decode[statusLine](t, s.must("status", "chat", "--json")).Queues["chat"].Pending
	}
	for deadline := time.Now().Add(10 * time.Second); pending() < 3 && time.Now().Before(deadline); {
		// a pause in the input commits what is there
	}
	interrupt()
	a := <-got
	l := decode[errorLine](t, a.err)
	if a.code != exitIO || l.Code != "cancelled" || l.Accepted == nil || *l.Accepted != 3 || len(lines(a.out)) != 3 {
		t.Errorf("%+v", a)
	}
	if !strings.Contains(l.Error, "3 messages accepted, up to line 4") {
		t.Errorf("%q", l.Error)
	}
}

// A stream that never pauses does not hold its first message back: once the chunk has
// lingered, it is committed before the next line is taken.
func TestSteadyStreamIsCommitted(t *testing.T) {
	lines := make(chan line, 1)
	lines <- line{number: 2, text: []byte("2")}
	lingered := make(chan time.Time, 1)
	lingered <- time.Time{}
	f := &feed{chunk: []queue.Message{{Payload: []byte("1")}}, linger: lingered}
	if _, _, idle := f.nextLine(t.Context(), lines); !idle {
		t.Error("the next line was taken although the chunk had lingered")
	}
	f.empty()
	if l, more, idle := f.nextLine(t.Context(), lines); idle || !more || l.number != 2 {
		t.Errorf("an empty chunk: %v, %v, %v", l, more, idle)
	}
}
