package queuetest

import (
	"strings"

	"example.com/holdfast/queue"
)

var cursorTrials = []trial{
	{"none is set at first", cursorNone},
	{"with the batch that it belongs to", cursorWithBatch},
	{"any text", cursorTexts},
	{"each queue has its own", cursorPerQueue},
	{"it outlives the messages", cursorOutlives},
}

func (s *scene) setCursor(name, text string) {
	s.Helper()
	s.update(queue.CursorChange{Queue: name, Cursor: text})
}

func (s *scene) cursorIs(name, want string) {
	s.Helper()
	got, err := s.Store.Cursor(s.ctx, name)
	s.must(err)
	equal(s, "cursor of "+name, got, want)
}

func cursorNone(s *scene) {
	s.cursorIs("unknown", "")
	s.put(mail, "a")
	s.cursorIs(mail, "")
	_, err := s.Store.Cursor(s.ctx, "mail/ack")
	s.is(err, queue.ErrInvalidName)
}

func cursorWithBatch(s *scene) {
	offset := func(m string) []queue.Change {
		return []queue.Change{
			queue.EnqueueChange{Queue: mail, Message: message("a" + m)},
			queue.EnqueueChange{Queue: mail, Message: message("b" + m)},
			queue.CursorChange{Queue: mail, Cursor: "offset " + m},
		}
	}
	s.update(offset("1")...)
	s.cursorIs(mail, "offset 1")
	s.refusedAt(0, queue.ErrDuplicate, offset("1")...) // the intake that did not hear the answer
	s.update(offset("2")...)
	s.cursorIs(mail, "offset 2")
	s.counted(mail, queue.Counters{Enqueued: 4})
}

func cursorTexts(s *scene) {
	for _, text := range []string{
		"{\"at\": 9007199254740993}", "<a&b>\u2028\n\t\x00\x1b\"\\", strings.Repeat("é", queue.MaxCursorBytes/2), " ", "",
	} {
		s.setCursor(mail, text)
		s.cursorIs(mail, text)
	}
	s.refusedAt(0, queue.ErrTooLarge, queue.CursorChange{Queue: mail, Cursor: strings.Repeat("c", queue.MaxCursorBytes+1)})
	s.refusedAt(0, queue.ErrInvalid, queue.CursorChange{Queue: mail, Cursor: "\xff"})
	s.refusedAt(0, queue.ErrInvalidName, queue.CursorChange{Queue: "", Cursor: "c"})
}

func cursorPerQueue(s *scene) {
	s.setCursor(mail, "1")
	s.setCursor(spool, "2")
	s.cursorIs(mail, "1")
	s.cursorIs(spool, "2")
	s.cursorIs("mail/in", "")
}

func cursorOutlives(s *scene) {
	s.put(mail, "a")
	s.setCursor(mail, "1")
	s.clear(mail, true, 1)
	s.cursorIs(mail, "1")
	s.put(mail, "a")
	s.ack(s.take(mail, "a").Receipt)
	s.cursorIs(mail, "1")
	equal(s, "complete", s.status(mail).Complete(), true)
}
