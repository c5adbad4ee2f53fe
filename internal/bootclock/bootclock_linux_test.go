package bootclock

import "testing"

func TestClockGoesOn(t *testing.T) {
	first, ok := Now()
	if !ok || first <= 0 {
		t.Fatalf("the time since boot: %v, %v", first, ok)
	}
	if second, ok := Now(); !ok || second < first {
		t.Errorf("after %v: %v, %v", first, second, ok)
	}
}

func TestIDStays(t *testing.T) {
	if id := ID(); len(id) != 36 || ID() != id {
		t.Errorf("boot ids %q and %q", id, ID())
	}
}
