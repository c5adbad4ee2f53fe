package queuetest

import (
	"fmt"
	"strings"

	"example.com/holdfast/queue"
)

var payloadTrials = []trial{
	{"T01 the same bytes at every stage", payloadsEveryStage},
	{"odd ones", payloadsOdd},
	{"big ones", payloadsBig},
	{"the largest", payloadsLargest},
	{"the deepest", payloadsDeepest},
	{"refused ones", payloadsRefused},
}

// trial01 is the payload of the trial.
const trial01 = `{ "b":9007199254740993, "a":1.0, "z":-0, "e":1e400, "s":"<a&b>` + "\u2028" + `" }`

// blank is a payload of so many bytes.
func blank(bytes int) string { return `"` + strings.Repeat("x", bytes-2) + `"` }

// nested is a payload nested so deeply.
func nested(depth int) string {
	return strings.Repeat(`[{"a":`, depth/2) + strings.Repeat("[", depth%2) +
		strings.Repeat("]", depth%2) + strings.Repeat("0", 1-depth%2) + strings.Repeat("}]", depth/2)
}

func payloadsEveryStage(s *scene) {
	stays := func(what string, got []byte) {
		s.Helper()
		equal(s, what, string(got), trial01)
	}
	s.put(mail, "a", holding(trial01))
	stays("shown", s.entry(mail, "a").Payload)
	stays("peeked", s.peek(mail, 1)[0].Payload)
	d := s.take(mail, "a")
	stays("claimed", d.Payload)
	s.retry(d.Receipt, queue.RetryOptions{Cause: trial01})
	stays("shown after retry", s.entry(mail, "a").Payload)
	d = s.load(mail, "a")
	stays("loaded", d.Payload)
	equal(s, "last error", d.LastError, trial01)
	s.Advance(minute)
	s.reapOne()
	stays("shown after reap", s.entry(mail, "a").Payload)
	s.release(d.Receipt, 0)
	d = s.take(mail, "a")
	s.fail(d.Receipt, "no")
	stays("failed", s.evidence("a").Payload)
	s.reprocess("a")
	stays("shown after reprocess", s.entry(mail, "a").Payload)
	stays("claimed after reprocess", s.take(mail, "a").Payload)

	s.enqueueBatch(mail, message("x", holding(trial01)), message("y", holding(trial01+"\n")))
	out := s.update(queue.EnqueueChange{Queue: mail, Message: message("z", holding(trial01))},
		queue.ClaimChange{Queue: mail, Options: queue.ClaimOptions{Max: 3, Lease: minute}})
	ds := out[1].Claimed.Deliveries
	equal(s, "claimed", ids(ds), "x y z")
	stays("of a batch", ds[0].Payload)
	equal(s, "of a batch", string(ds[1].Payload), trial01+"\n")
	stays("of an update", ds[2].Payload)
	s.must(s.Store.ReplacePayload(s.ctx, ds[1].Receipt, []byte(trial01)))
	stays("replaced", s.entry(mail, "y").Payload)
}

func payloadsOdd(s *scene) {
	odd := []string{
		`null`, `0`, `""`, `[]`, `{}`, `-0`, `-0.0e-0`, `1E400`, strings.Repeat("9", 400),
		` 1`, "\t[ 1 , 2 ]\r\n", "\n\n{}\n\n", `{"a":1,"a":2,"A":3}`, `{"":{"":""}}`,
		`"\ud800"`, `"\udc00\ud83d"`, `"\u0000\u001f\u007f"`, "\"\u2028\u2029\ufeff\ufffd\U0010ffff\"", `"<script>&amp;'` + "`" + `"`,
		`"é" `, `"e` + "\u0301" + `"`, `"\/\u002F"`, `"]\",\"["`, `[[[[]],{}],"]"]`, `{"payload":"}{"}`,
	}
	var ms []queue.Message
	for i, p := range odd {
		ms = append(ms, message(fmt.Sprint("m", i), holding(p)))
	}
	s.enqueueBatch(mail, ms...)
	for i, d := range s.claim(mail, queue.ClaimOptions{Max: len(odd)}) {
		equal(s, "claimed", string(d.Payload), odd[i])
		equal(s, "shown", string(s.entry(mail, d.Receipt.ID).Payload), odd[i])
		equal(s, "bytes", s.entry(mail, d.Receipt.ID).PayloadBytes, int64(len(odd[i])))
		s.replacePayload(d.Receipt, odd[len(odd)-1-i])
		s.fail(d.Receipt, "no")
		equal(s, "replaced and failed", string(s.evidence(d.Receipt.ID).Payload), odd[len(odd)-1-i])
		s.must(s.Store.Purge(s.ctx, d.Receipt.ID, queue.PurgeOptions{}))
	}
}

func payloadsBig(s *scene) {
	var b strings.Builder
	b.WriteString("[\n")
	for i := range 100_000 {
		fmt.Fprintf(&b, "  {\"n\": %d.0, \"s\": \"<é>\\u2028\"},\n", i)
	}
	b.WriteString("  {} ]\n")
	big := b.String()
	edge := []int{64<<10 - 1, 64 << 10, 64<<10 + 1, 1<<20 - 2, 1 << 20, 5 << 20}
	var ms []queue.Message
	for _, n := range edge {
		ms = append(ms, message(fmt.Sprint("m", n), holding(blank(min(n, s.MaxPayloadBytes)))))
	}
	if len(big) <= s.MaxPayloadBytes {
		ms = append(ms, message("lines", holding(big)))
	}
	s.enqueueBatch(mail, ms...)
	s.put(spool, "small")
	for i, d := range s.claim(mail, queue.ClaimOptions{Max: len(ms)}) {
		if string(d.Payload) != string(ms[i].Payload) {
			s.Fatalf("%s: %d bytes came back as other %d bytes", ms[i].ID, len(ms[i].Payload), len(d.Payload))
		}
		s.retry(d.Receipt, queue.RetryOptions{MaxFailures: 1})
	}
	for _, m := range ms {
		s.reprocess(m.ID)
		if got := s.entry(mail, m.ID).Payload; string(got) != string(m.Payload) {
			s.Fatalf("%s: %d bytes show as other %d bytes", m.ID, len(m.Payload), len(got))
		}
	}
	equal(s, "beside big ones", string(s.take(spool, "small").Payload), string(payloadOf("small")))
}

func payloadsLargest(s *scene) {
	s.refuses(queue.ErrTooLarge, func() error {
		_, err := s.Store.Enqueue(s.ctx, mail, message("a", holding(blank(s.MaxPayloadBytes+1))))
		return err
	})
	s.put(mail, "a", holding(blank(s.MaxPayloadBytes)))
	d := s.take(mail, "a")
	equal(s, "bytes", len(d.Payload), s.MaxPayloadBytes)
	s.ack(d.Receipt)
	s.refusedAt(0, queue.ErrTooLarge, queue.EnqueueChange{Queue: mail, Message: message("a", holding(blank(s.MaxPayloadBytes+1)))})
	s.batchRefused([]queue.Message{message("a"), message("b", holding(blank(s.MaxPayloadBytes+1)))}, map[int]error{1: queue.ErrTooLarge})
}

func payloadsDeepest(s *scene) {
	s.refuses(queue.ErrInvalidPayload, func() error {
		_, err := s.Store.Enqueue(s.ctx, mail, message("a", holding(nested(s.MaxPayloadDepth+1))))
		return err
	})
	s.put(mail, "a", holding(nested(s.MaxPayloadDepth)))
	s.put(mail, "b", holding(nested(s.MaxPayloadDepth-1)))
	ds := s.takes(mail, 2, "a b")
	equal(s, "deepest", string(ds[0].Payload), nested(s.MaxPayloadDepth))
}

func payloadsRefused(s *scene) {
	s.put(mail, "live")
	for _, p := range []string{
		"", " ", "{", "}", "1 2", "[1,]", `{"a":1,}`, "'a'", "NaN", "01", "1.", "\"\n\"", "\"\xff\"", "\"\xed\xa0\x80\"", "\ufeff{}", "{}\x00", `"\u12"`,
	} {
		s.refuses(queue.ErrInvalidPayload, func() error {
			_, err := s.Store.Enqueue(s.ctx, mail, message("a", holding(p)))
			return err
		})
	}
}
