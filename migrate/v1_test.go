//go:build unix

package migrate

import (
	"context"
	"os"
	"strings"
	"testing"

	v1 "example.com/holdfast/v1"
)

// What v1 programs made arrives, whichever route they claim by; and a directory that was
// taken back is theirs again.
func TestImportOfWhatV1Made(t *testing.T) {
	ctx := context.Background()
	for _, route := range []v1.Route{v1.HardLink, v1.RenameNoReplace} {
		t.Run(route.String(), func(t *testing.T) {
			s := newWayScene(t, t.TempDir())
			old, err := v1.Open(s.from, &v1.Options{FailedDir: s.fails, ClaimBy: route})
			wayOK(t, err)
			for _, id := range []string{"p", "c", "f", "gone"} {
				_, err := old.Enqueue(ctx, id, []byte(`{"id":"`+id+`","n":1e400}`))
				wayOK(t, err)
			}
			for _, id := range []string{"c", "f", "gone"} {
				c, err := old.Load(ctx, id, nil)
				wayOK(t, err)
				switch id {
				case "f":
					wayOK(t, old.Fail(ctx, c))
				case "gone":
					wayOK(t, old.Ack(ctx, c))
				default:
					wayOK(t, c.Close())
				}
			}
			_, err = old.Enqueue(ctx, "c", []byte(`"newer"`))
			wayOK(t, err, old.Close())
			for _, side := range []struct {
				state v1.EntryState
				id    string
			}{{v1.EntryPending, "p"}, {v1.EntryPending, "c"}, {v1.EntryClaimed, "c"}, {v1.EntryFailed, "f"}} {
				text, err := os.ReadFile(s.path(side.state, side.id))
				wayOK(t, err)
				s.want[side.state.String()+"/"+side.id] = string(text)
			}

			st := s.open()
			o := s.options()
			part, cut := context.WithCancel(ctx)
			o.step = func(step string) {
				if step == "added" {
					cut()
				}
			}
			before := s.tree()
			if _, err := Import(part, st, o); err == nil {
				t.Fatal("it was not cut off")
			}
			if _, err := v1.Open(s.from, nil); err == nil {
				t.Error("v1 opened a directory that is being handed over")
			}
			_, err = Abandon(ctx, st, o)
			wayOK(t, err)
			if after := s.tree(); after != before {
				t.Errorf("taken back, and not as it was:\n%s\nbut\n%s", before, after)
			}
			again, err := v1.Open(s.from, nil)
			wayOK(t, err, again.Close())

			o.step = nil
			_, err = Import(ctx, st, o)
			wayOK(t, err)
			if diff := wayDiffer(s.holds(st), s.want); diff != "" {
				t.Error(diff)
			}
			_, err = RemoveSource(ctx, st, o)
			wayOK(t, err)
			left := strings.TrimPrefix(s.names(s.from), ".fs-safe-retirements ")
			if left != ".holdfast-import" || s.names(s.fails) != ".holdfast-import" {
				t.Errorf("left %q, and %q that failed", left, s.names(s.fails))
			}
		})
	}
}
