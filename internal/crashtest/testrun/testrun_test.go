package testrun

import "testing"

func TestSkip(t *testing.T) {
	for all, want := range map[string]string{
		"":  "skipped: no disk\n",
		"0": "skipped: no disk\n",
		"1": "failed: may not be skipped here: no disk\nskipped: no disk\n", // a real one ends at the first
	} {
		t.Run("HOLDFAST_REQUIRE_ALL="+all, func(t *testing.T) {
			t.Setenv("HOLDFAST_REQUIRE_ALL", all)
			var got Told
			Skip(&got, "no disk")
			if got.Said != want {
				t.Errorf("got %q, want %q", got.Said, want)
			}
		})
	}
}
