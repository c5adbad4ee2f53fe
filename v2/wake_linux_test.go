package holdfast

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/holdfast/internal/crashtest/sandbox"
)

func init() { roles["wake under a filter"] = wakeUnderFilter }

// Waking by event makes no call that an Android app may not make, and no link.
func TestWakeMakesNoForbiddenCalls(t *testing.T) {
	sandbox.Need(t)
	calls := strings.Join(sandbox.Known(slices.Concat(sandbox.Links, sandbox.Android)), ",")
	lines, err := start(t, "wake under a filter", filepath.Join(t.TempDir(), "store"), calls).Rest()
	if err != nil || !slices.Equal(lines, []string{"woken"}) {
		t.Fatalf("under the filter: %v (signal %v) %q", err, killedBy(err), lines)
	}
}

// wakeUnderFilter takes a directory for a store and the calls that kill.
func wakeUnderFilter(args []string) error {
	ctx := context.Background()
	if err := sandbox.Kill(strings.Split(args[1], ",")); err != nil {
		return err
	}
	one, err := Create(ctx, args[0], nil)
	if err != nil {
		return err
	}
	defer one.Close()
	two, err := Open(ctx, args[0], &Options{pollOff: true})
	if err != nil {
		return err
	}
	defer two.Close()
	wait := wakeGo(func() error { return two.WaitDue(ctx, "mail") })
	looked(two, 1)
	if _, err := one.Enqueue(ctx, "mail", small("a")); err != nil {
		return err
	}
	if err := <-wait; err != nil {
		return err
	}
	fmt.Println("woken")
	return nil
}
