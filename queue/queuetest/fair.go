package queuetest

import (
	"time"

	"example.com/holdfast/queue"
)

var fairTrials = []trial{
	{"a turn for each key", fairTurns},
	{"begins at the smallest key and goes on where it was", fairGoesOn},
	{"the ones without a key share a turn", fairKeyless},
	{"one claim goes round", fairOneClaim},
	{"the oldest of a key", fairOldest},
	{"who cannot be claimed is passed over", fairPassedOver},
	{"a new key joins at its place", fairNewKey},
	{"a plain claim does not move the turn", fairPlain},
	{"each queue has its own turn", fairPerQueue},
	{"without keys it is first in, first out", fairNoKeys},
}

// fairly claims by turns and checks which come, in order.
func (s *scene) fairly(name string, max int, want string) []queue.Delivery {
	s.Helper()
	ds := s.claim(name, queue.ClaimOptions{Max: max, Fair: true})
	equal(s, "claimed by turns", ids(ds), want)
	return ds
}

// fairAck claims one by turns and acks it.
func (s *scene) fairAck(name, want string) {
	s.Helper()
	s.ack(s.fairly(name, 1, want)[0].Receipt)
}

func fairTurns(s *scene) {
	s.putKeyed(mail, "c", "c1", "c2", "c3")
	s.putKeyed(mail, "a", "a1", "a2")
	s.putKeyed(mail, "b", "b1")
	for _, want := range []string{"a1", "b1", "c1", "a2", "c2", "c3"} {
		s.fairAck(mail, want)
	}
	s.fairly(mail, 1, "")
}

func fairGoesOn(s *scene) {
	s.putKeyed(mail, "m", "m1", "m2")
	s.putKeyed(mail, "B", "B1", "B2") // in the order of bytes
	s.putKeyed(mail, "é", "e1")
	s.fairAck(mail, "B1")
	s.fairAck(mail, "m1")
	s.put(mail, "k1", key("k")) // its turn has passed
	s.fairAck(mail, "e1")
	s.fairAck(mail, "B2")
	s.fairAck(mail, "k1")
	s.fairAck(mail, "m2")
}

func fairKeyless(s *scene) {
	s.puts(mail, "x", "y", "z")
	s.putKeyed(mail, "a", "a1", "a2")
	s.putKeyed(mail, "b", "b1", "b2")
	for _, want := range []string{"a1", "b1", "x", "a2", "b2", "y", "z"} {
		s.fairAck(mail, want)
	}
}

func fairOneClaim(s *scene) {
	s.puts(mail, "x", "y", "z")
	s.putKeyed(mail, "b", "b1", "b2")
	s.putKeyed(mail, "a", "a1", "a2")
	ds := s.fairly(mail, 4, "a1 b1 x y") // a key gives one at a time, the keyless turn comes round
	for _, d := range ds {
		s.ack(d.Receipt)
	}
	s.putKeyed(mail, "c", "c1")
	s.fairly(mail, 10, "a2 b2 c1 z")
	s.fairly(mail, 10, "")
}

func fairOldest(s *scene) {
	s.puts(mail, "y", "x")
	s.put(mail, "b3", key("b"), s.after(minute))
	s.putKeyed(mail, "b", "b2", "b1")
	d := s.fairly(mail, 1, "b2")[0]
	s.release(d.Receipt, 0)
	d = s.fairly(mail, 1, "y")[0]
	s.release(d.Receipt, 0)
	s.Advance(minute)
	s.fairly(mail, 2, "b3 y")
}

func fairPassedOver(s *scene) {
	s.putKeyed(mail, "a", "a1", "a2")
	s.putKeyed(mail, "b", "b1")
	s.put(mail, "c1", key("c"), s.after(time.Hour))
	s.putKeyed(mail, "d", "d1", "d2")
	s.release(s.load(mail, "b1").Receipt, time.Hour)
	s.take(mail, "a1")
	s.fairAck(mail, "d1")
	s.fairAck(mail, "d2")
	s.fairly(mail, 1, "")
	s.Advance(time.Hour)
	s.fairAck(mail, "b1")
	s.fairAck(mail, "c1")
	s.fairly(mail, 1, "") // a1 is overdue, and holds its key
}

func fairNewKey(s *scene) {
	s.putKeyed(mail, "a", "a1", "a2", "a3")
	s.fairAck(mail, "a1")
	s.fairAck(mail, "a2")
	s.putKeyed(mail, "b", "b1")
	s.put(mail, "x")
	s.fairAck(mail, "b1")
	s.fairAck(mail, "x")
	s.fairAck(mail, "a3")
}

func fairPlain(s *scene) {
	for _, k := range []string{"a", "c", "e", "b", "d", "f"} {
		s.put(mail, k+"1", key(k))
	}
	s.fairAck(mail, "a1")
	s.ack(s.take(mail, "c1").Receipt)
	s.ack(s.load(mail, "e1").Receipt)
	s.fairAck(mail, "b1") // next after a
	s.fairAck(mail, "d1")
	s.fairAck(mail, "f1")
}

func fairPerQueue(s *scene) {
	for _, name := range []string{mail, spool} {
		s.putKeyed(name, "a", "a1", "a2")
		s.putKeyed(name, "b", "b1")
	}
	s.fairAck(mail, "a1")
	s.fairAck(spool, "a1")
	s.fairAck(mail, "b1")
	s.fairAck(mail, "a2")
	s.fairAck(spool, "b1")
}

func fairNoKeys(s *scene) {
	s.puts(mail, "c", "a", "b")
	s.put(mail, "a", how(queue.Replace))
	d := s.fairly(mail, 1, "c")[0]
	s.release(d.Receipt, 0)
	s.fairly(mail, 5, "c b a")
}
