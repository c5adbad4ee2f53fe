package testrun

import (
	"fmt"
	"testing"
)

// told keeps what a test was told, and goes on.
type told struct {
	testing.TB
	said string
}

func (*told) Helper()                        {}
func (t *told) Fatalf(f string, args ...any) { t.said += "failed: " + fmt.Sprintf(f, args...) + "\n" }
func (t *told) Skip(args ...any)             { t.said += "skipped: " + fmt.Sprint(args...) + "\n" }

func TestSkip(t *testing.T) {
	for all, want := range map[string]string{
		"":  "skipped: no disk\n",
		"0": "skipped: no disk\n",
		"1": "failed: may not be skipped here: no disk\nskipped: no disk\n", // a real one ends at the first
	} {
		t.Run("HOLDFAST_REQUIRE_ALL="+all, func(t *testing.T) {
			t.Setenv("HOLDFAST_REQUIRE_ALL", all)
			var got told
			Skip(&got, "no disk")
			if got.said != want {
				t.Errorf("got %q, want %q", got.said, want)
			}
		})
	}
}
