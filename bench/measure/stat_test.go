//go:build unix

package measure

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSummarize(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   Summary
	}{
		{[]float64{7}, Summary{7, 7, 7}},
		{[]float64{3, 1, 2}, Summary{2, 1, 3}},
		{[]float64{4, 1, 3, 2}, Summary{2.5, 1, 4}},
		{[]float64{100, 1, 1, 1, 1}, Summary{1, 1, 100}},
	} {
		values := slices.Clone(c.values)
		if got := Summarize(values); got != c.want {
			t.Errorf("%v: got %v, want %v", c.values, got, c.want)
		}
		if !slices.Equal(values, c.values) {
			t.Errorf("%v became %v: the rounds are in order", c.values, values)
		}
	}
}

func TestRatios(t *testing.T) {
	if got, want := Ratios([]float64{10, 30}, []float64{5, 10}), []float64{2, 3}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// A round that one has and the other has not is no ratio.
	if got := Ratios([]float64{10, 30}, []float64{5}); len(got) != 1 {
		t.Errorf("got %v, want one", got)
	}
}

func TestSample(t *testing.T) {
	s := Sample{Messages: 50, Elapsed: 2 * time.Second}
	if s.Rate() != 25 || s.PerMessage() != 0.04 {
		t.Errorf("got %v messages a second, %v s each", s.Rate(), s.PerMessage())
	}
}

func TestInterleave(t *testing.T) {
	var order []string
	err := Interleave(3, 3, func(round, i int) error {
		order = append(order, fmt.Sprintf("%d%c", round, 'a'+i))
		return nil
	})
	if want := strings.Fields("0a 0b 0c 1b 1c 1a 2c 2a 2b"); err != nil || !slices.Equal(order, want) {
		t.Errorf("got %q, %v, want %q", order, err, want)
	}
	broken := errors.New("broken")
	calls := 0
	err = Interleave(2, 2, func(int, int) error { calls++; return broken })
	if !errors.Is(err, broken) || calls != 1 {
		t.Errorf("got %v after %d calls, want %v after 1", err, calls, broken)
	}
}
