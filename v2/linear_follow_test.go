//go:build unix

package holdfast

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"example.com/holdfast/internal/history"
	"example.com/holdfast/queue"
)

// follow takes a journal's lines of one track and checks each answer. It gives the
// step that has none, and adds to done how often each step was made.
func follow(t testing.TB, m *history.Model, name string, lines []string, done map[string]int) (answered int, open *history.Step) {
	t.Helper()
	for _, line := range lines {
		word := strings.SplitN(line, " ", 3)
		switch {
		case word[0] != name:
		case word[1] == "begin":
			open = &history.Step{}
			if err := json.Unmarshal([]byte(word[2]), open); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		default:
			var a history.Answer
			if err := json.Unmarshal([]byte(word[2]), &a); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			before := m.Clone()
			if want, ok := m.Apply(*open, &a); !ok {
				t.Fatalf("%s\nanswered %s\nwant %s\nof\n%s", jsonOf(open), word[2], jsonOf(want), before)
			}
			done[open.Op]++
			answered++
			open = nil
		}
	}
	return answered, open
}

// settled compares queues with the model, to which the step without an answer has
// happened or not. It gives the model that is right, and tells which.
func settled(t testing.TB, m *history.Model, s *Store, queues []string, open *history.Step) (is *history.Model, happened bool) {
	t.Helper()
	looks := looksAt(t, s, queues)
	answers := make([]history.Answer, len(looks))
	for i, st := range looks {
		var err error
		if answers[i], err = history.Perform(t.Context(), s, st); err != nil {
			t.Fatal(err)
		}
	}
	explained := func(m *history.Model) bool {
		for i, st := range looks {
			if _, ok := m.Apply(st, &answers[i]); !ok {
				return false
			}
		}
		return true
	}
	if same := m.Clone(); explained(same) {
		return same, false
	}
	if open != nil {
		after := m.Clone()
		after.Apply(*open, nil)
		if explained(after) {
			return after, true
		}
	}
	t.Fatalf("queues %v show\n%s\nand were\n%s\nwith, perhaps, %s", queues, jsonOf(answers), m, jsonOf(open))
	return nil, false
}

// looksAt gives the steps that show everything of queues.
func looksAt(t testing.TB, s *Store, queues []string) []history.Step {
	t.Helper()
	mix := history.Mix{Queues: queues}
	for _, name := range queues {
		page, err := s.List(t.Context(), name, queue.ListOptions{Limit: maxClaim})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Entries {
			mix.IDs = append(mix.IDs, e.ID)
		}
	}
	slices.Sort(mix.IDs)
	mix.IDs = slices.Compact(mix.IDs)
	return mix.Looks()
}
