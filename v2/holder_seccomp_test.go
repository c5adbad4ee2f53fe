//go:build linux

package holdfast

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"example.com/holdfast/internal/crashtest/sandbox"
)

func init() { roles["prove under a filter"] = proveUnderFilter }

// A process under a filter that kills it at the first call of a kind holds, hands out
// its descriptor, proves deaths and sweeps.
func TestHolderMakesNoForbiddenCalls(t *testing.T) {
	t.Parallel()
	sandbox.Need(t)
	calls := slices.Concat(sandbox.Links, sandbox.Android, []string{"kill", "tkill", "ptrace", "process_vm_readv"})
	b := osHolding(t)
	gone, dead := startHolder(t, "hold", b.dir)
	gone.Kill(t)
	_, living := startHolder(t, "hold", b.dir)
	lines, err := start(t, "prove under a filter", b.dir, strings.Join(sandbox.Known(calls), ","), dead.String(), living.String()).Rest()
	if err != nil || len(lines) != 1 {
		t.Fatalf("under the filter: %v (signal %v) %q", err, killedBy(err), lines)
	}
	ours, ok := parseToken(lines[0])
	if !ok {
		t.Fatal(lines[0])
	}
	b.wantFiles(t, living, ours) // of the dead, its own is left
	sweepHolders(t, b.process(t).Store)
	b.wantFiles(t, living)
}

// proveUnderFilter takes a directory, the calls that kill, a dead and a living holder.
func proveUnderFilter(args []string) error {
	if err := sandbox.Kill(strings.Split(args[1], ",")); err != nil {
		return err
	}
	ctx := context.Background()
	s, err := Open(ctx, args[0], nil)
	if err != nil {
		return err
	}
	file, err := s.Holder(ctx)
	if err != nil {
		return err
	}
	ours, err := holdNow(s)
	if err != nil {
		return err
	}
	for i, text := range []string{args[2], args[3], ours.String()} {
		h, _ := parseToken(text)
		if dead, err := holderDead(s, h); dead != (i == 0) || err != nil {
			return fmt.Errorf("%s is dead: %v, %v", text, dead, err)
		}
	}
	err = proveUnderLock(s, func(v *prover) error {
		v.sweep(func(token) bool { return false })
		return nil
	})
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	fmt.Println(ours)
	return s.Close()
}
