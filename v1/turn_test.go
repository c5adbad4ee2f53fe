//go:build unix

package holdfast

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"example.com/holdfast/internal/fsguard"
)

func turnKey(id string) key { return key{fsguard.Identity{Dev: 1, Ino: 2}, id} }

// One at a time for a key, others beside it; nothing is kept when all are done.
func TestTurns(t *testing.T) {
	var m keyed
	var wg sync.WaitGroup
	inside := map[string]*int{"a": new(int), "b": new(int)}
	counts := map[string]*int{"a": new(int), "b": new(int)}
	for i := range 64 {
		id := []string{"a", "b"}[i%2]
		wg.Go(func() {
			for range 20 {
				if err := m.take(t.Context(), turnKey(id)); err != nil {
					t.Error(err)
					return
				}
				if *inside[id]++; *inside[id] != 1 { // the race detector would tell too
					t.Errorf("%d have the turn of %s", *inside[id], id)
				}
				*counts[id]++
				*inside[id]--
				m.give(turnKey(id))
			}
		})
	}
	wg.Wait()
	if *counts["a"] != 640 || *counts["b"] != 640 || len(m.held) != 0 {
		t.Errorf("%d and %d turns, %d keys are kept", *counts["a"], *counts["b"], len(m.held))
	}
}

// Another directory, or another ID, is another turn.
func TestTurnKeys(t *testing.T) {
	var m keyed
	keys := []key{turnKey("a"), turnKey("b"), {fsguard.Identity{Dev: 1, Ino: 3}, "a"}, {fsguard.Identity{Dev: 2, Ino: 2}, "a"}}
	for _, k := range keys {
		unitOK(t, m.take(t.Context(), k))
	}
	if len(m.held) != len(keys) {
		t.Errorf("%d keys are held, want %d", len(m.held), len(keys))
	}
	for _, k := range keys {
		m.give(k)
	}
	if len(m.held) != 0 {
		t.Errorf("%d keys are kept", len(m.held))
	}
}

// Who gives up waiting leaves nothing behind, and takes no turn away from those that go on.
func TestTurnCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m keyed
		k := turnKey("a")
		unitOK(t, m.take(t.Context(), k))
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp, went := make(chan error, 3), make(chan error, 1)
		for range 3 {
			go func() { gaveUp <- m.take(ctx, k) }()
		}
		go func() { went <- m.take(t.Context(), k) }()
		synctest.Wait()
		if users := m.held[k].users; users != 5 {
			t.Errorf("%d use the turn, want 5", users)
		}
		cancel()
		for range 3 {
			if err := <-gaveUp; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want %v", err, context.Canceled)
			}
		}
		synctest.Wait()
		if users := m.held[k].users; users != 2 {
			t.Errorf("%d use the turn, want 2", users)
		}
		select {
		case err := <-went:
			t.Errorf("took a turn that is taken: %v", err)
		default:
		}
		m.give(k)
		unitOK(t, <-went)
		m.give(k)
		if len(m.held) != 0 {
			t.Errorf("%d keys are kept", len(m.held))
		}
	})
}

// A store's transition waits for another of the same ID by its turn, never by a pause, and
// lets go of it when its context ends.
func TestTurnOfTransition(t *testing.T) {
	d := newUnitDirs(t)
	w := unitWay{Auto, RenameNoReplace}
	inside, goOn := make(chan bool), make(chan bool)
	hook := func(_, _ string, call func() error) error {
		inside <- true
		<-goOn
		return call()
	}
	slow, s := d.open(t, w, Options{fs: w.refuseFS(t, nil, hook)}), d.open(t, w, Options{})
	unitPut(t, d.at("a.json"), `1`)
	unitPut(t, d.at("b.json"), `2`)
	first := make(chan error)
	go func() { first <- refuseLoad(t.Context(), slow, "a", "1") }()
	<-inside
	unitLoad(t, s, "b", "2") // another ID goes on
	ctx, cancel := context.WithCancel(t.Context())
	second, third := make(chan error), make(chan error)
	go func() { second <- refuseLoad(ctx, s, "a", "1") }()
	go func() { third <- refuseLoad(t.Context(), s, "a", "1") }()
	cancel()
	unitIs(t, "the one that gave up", <-second, context.Canceled)
	close(goOn)
	unitOK(t, <-first, <-third)
}
