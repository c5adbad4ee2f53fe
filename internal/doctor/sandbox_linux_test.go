package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"example.com/holdfast/internal/crashtest/reexec"
	"example.com/holdfast/internal/crashtest/sandbox"
)

func init() {
	roles["confined"] = func(args []string) error {
		calls, m := sandbox.Android, System()
		m.Trial = func(context.Context, string) error { return nil } // the store has its own such test
		if args[1] == "links" {
			calls = slices.Concat(calls, sandbox.Links)
			m.Skip = map[string]string{"hard_link": "it would kill"}
		}
		if err := sandbox.Kill(sandbox.Known(calls)); err != nil {
			return err
		}
		r, err := m.Examine(context.Background(), args[0])
		if err != nil {
			return err
		}
		told, err := json.Marshal(r)
		fmt.Println(string(told))
		return err
	}
}

// Every check is made under a filter that kills at a call that an Android app may not
// make; all but the one of links under one that kills at links too.
func TestTheChecksUnderTheAndroidFilter(t *testing.T) {
	sandbox.Need(t)
	for filter, want := range map[string]Outcome{"android": Works, "links": NotTried} {
		lines, err := reexec.Start(t, "confined", t.TempDir(), filter).Rest()
		if err != nil || len(lines) != 1 {
			t.Fatalf("%s: %v (signal %v) %q", filter, err, reexec.KilledBy(err), lines)
		}
		var r Report
		if err := json.Unmarshal([]byte(lines[0]), &r); err != nil {
			t.Fatal(err)
		}
		if link, _ := r.Check("hard_link"); link.Outcome != want {
			t.Errorf("%s: %+v", filter, link)
		}
		if len(r.Checks) != len(Names())+1 || len(r.Weighing(Unfit)) > 0 {
			t.Errorf("%s: %d checks, unfit for %s", filter, len(r.Checks), weights(r, Unfit))
		}
	}
}
