//go:build unix

package crashtest

import (
	"errors"
	"slices"
	"testing"
)

func TestJournal(t *testing.T) {
	var j Journal
	bad := errors.New("bad")
	j.Begin("a", 1)
	j.Ack("a", 1)
	j.Begin("b", 2)
	c := j.copy()
	j.Fail("b", bad)
	j.close()
	j.Ack("b", 2) // a dead process says nothing
	c.Ack("c", 3)

	if got, want := j.String(), "begun a 1\nacked a 1\nbegun b 2\nfailed b bad\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got, want := c.String(), "begun a 1\nacked a 1\nbegun b 2\nacked c 3\n"; got != want {
		t.Errorf("the copy: got\n%swant\n%s", got, want)
	}
	if got := j.Keys(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("keys: %v", got)
	}
	if e, found := j.Last("b"); !found || e.State != Failed || e.Value != bad {
		t.Errorf("last of b: %v, %v", e, found)
	}
	if e, found := j.Last("b", Begun, Acked); !found || e.State != Begun {
		t.Errorf("last begun or acked of b: %v, %v", e, found)
	}
	if e, found := j.Last("b", Acked); found {
		t.Errorf("b was acked: %v", e)
	}
}
