package worker

import (
	"testing"
	"time"
)

func TestLongestDelay(t *testing.T) {
	p, err := RetryPolicy{}.checked()
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[uint64]time.Duration{
		0: 2 * time.Second, 1: 4 * time.Second, 2: 8 * time.Second, 10: 2048 * time.Second,
		11: time.Hour, 62: time.Hour, 1 << 63: time.Hour,
	} {
		if got := p.longest(n); got != want {
			t.Errorf("after %d failures: got %s, want %s", n, got, want)
		}
	}
	huge := RetryPolicy{Base: 1 << 61, Max: 1<<63 - 1}
	if got := huge.longest(5); got != 1<<63-1 {
		t.Errorf("huge delays: got %s, want the maximum", got)
	}
}

// The delay is uniform over the whole of its range, both ends included.
func TestFullJitter(t *testing.T) {
	s := seams{}.checked()
	v := verdict{least: 0, most: 3}
	seen := map[time.Duration]int{}
	for range 4000 {
		seen[v.delay(s)]++
	}
	for d := range time.Duration(4) {
		if n := seen[d]; n < 700 || n > 1300 {
			t.Errorf("delay %d drawn %d times of 4000, want about 1000", d, n)
		}
	}
	if len(seen) != 4 {
		t.Errorf("drawn: %v, want 0 to 3", seen)
	}
}

func TestPatience(t *testing.T) {
	var p patience
	now := time.Unix(0, 0)
	most := seams{draw: func(time.Duration) time.Duration { return 0 }}
	var got []time.Duration
	for range 11 {
		pause := p.fail(now, most)
		if !p.after.Equal(now.Add(pause)) {
			t.Errorf("pause %s until %s", pause, p.after)
		}
		got = append(got, pause)
	}
	ms := time.Millisecond
	want(t, "longest pauses", got, []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 12800 * ms, 25600 * ms, 30000 * ms, 30000 * ms})
	least := seams{draw: func(most time.Duration) time.Duration { return most }}
	p.reset()
	if got := p.fail(now, least); got != 50*ms {
		t.Errorf("shortest pause: got %s, want half of 100ms", got)
	}
}
