//go:build unix

package crashtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// A schedule says who goes on at which step where that is not the usual one (see
// usually), and what happens to the clients. As text, which is how a finding prints it
// and CRASHTEST_REPLAY gives it back, after the name of the interleaving:
//
//	12:b 40:a kill-b-before-57 off-at-60 image=4:011
//
// Step 12 is b's, step 40 a's (40:a1: not the first of its operations that wait, the
// next); b is killed before step 57, or with kill-b-after-57 when its operation, step
// 57, is done; the power goes before step 60, or with off-at-end when all are done. An
// undisturbed run without a preemption is "usual".
type schedule struct {
	switches []switchAt
	kill     *killAt
	like     []step // as these the run must begin
	off      int    // one more than the step before which the power goes; 0: nowhere
	image    string
}

type switchAt struct {
	step int
	choice
}

type killAt struct {
	step, client int
	after        bool
}

// offAtEnd is the end of a run.
const offAtEnd = maxSteps + 2

func (s schedule) String() string {
	var out []string
	for _, x := range s.switches {
		which := ""
		if x.which > 0 {
			which = strconv.Itoa(x.which)
		}
		out = append(out, fmt.Sprintf("%d:%c%s", x.step, 'a'+x.client, which))
	}
	if k := s.kill; k != nil {
		side := "before"
		if k.after {
			side = "after"
		}
		out = append(out, fmt.Sprintf("kill-%c-%s-%d", 'a'+k.client, side, k.step))
	}
	switch s.off {
	case 0:
	case offAtEnd:
		out = append(out, "off-at-end", "image="+s.image)
	default:
		out = append(out, fmt.Sprint("off-at-", s.off-1), "image="+s.image)
	}
	if out == nil {
		return "usual"
	}
	return strings.Join(out, " ")
}

// parseSchedule reads what String writes.
func parseSchedule(text string) (s schedule, err error) {
	for _, word := range strings.Fields(text) {
		var c rune
		var side string
		var n, which int
		step, whose, isSwitch := strings.Cut(word, ":")
		image, isImage := strings.CutPrefix(word, "image=")
		switch {
		case word == "usual":
		case isImage:
			s.image = image
		case word == "off-at-end":
			s.off = offAtEnd
		case strings.HasPrefix(word, "off-at-"):
			n, err = strconv.Atoi(word[len("off-at-"):])
			s.off = n + 1
		case strings.HasPrefix(word, "kill-"):
			_, err = fmt.Sscanf(strings.ReplaceAll(word, "-", " "), "kill %c %s %d", &c, &side, &n)
			s.kill = &killAt{n, int(c - 'a'), side == "after"}
			if err == nil && side != "after" && side != "before" {
				err = strconv.ErrSyntax
			}
		case isSwitch && whose != "":
			n, err = strconv.Atoi(step)
			if err == nil && len(whose) > 1 {
				which, err = strconv.Atoi(whose[1:])
			}
			s.switches = append(s.switches, switchAt{n, choice{int(whose[0] - 'a'), which}})
		default:
			err = strconv.ErrSyntax
		}
		if err != nil {
			return s, fmt.Errorf("crashtest: bad step %q: %w", word, err)
		}
	}
	return s, nil
}

// A chooser says who makes step n. It is not ok when it wants one that cannot go on.
type chooser func(n int, options []choice, usual choice, free bool) (next choice, ok bool)

// choose follows the schedule.
func (s schedule) choose(n int, options []choice, usual choice, _ bool) (choice, bool) {
	for _, x := range s.switches {
		if x.step == n {
			return x.choice, slices.Contains(options, x.choice)
		}
	}
	return usual, true
}

// with gives s with one more switch, after the first steps of a run.
func (s schedule) with(first []step, c choice) schedule {
	s.switches = append(slices.Clip(s.switches), switchAt{len(first), c})
	s.like = first
	return s
}

// wander gives a chooser that preempts so many times, at random among the first steps,
// and takes any where the usual one cannot go on. It notes in s what it did.
func (s *schedule) wander(draw *rand.Rand, preemptions, steps int) chooser {
	at := map[int]bool{}
	for range preemptions {
		at[draw.IntN(steps)] = true
	}
	late := false // the one who is to stand still was alone: the next time
	return func(n int, options []choice, usual choice, free bool) (choice, bool) {
		late = late || at[n]
		if !free && !late {
			return usual, true
		}
		others := slices.DeleteFunc(slices.Clone(options), func(o choice) bool { return !free && o == usual })
		if len(others) == 0 {
			return usual, true
		}
		next := others[draw.IntN(len(others))]
		if !free {
			late = false
		}
		if next != usual {
			s.switches = append(s.switches, switchAt{n, next})
		}
		return next, true
	}
}

// last is the step of the last switch; -1: there is none.
func (s schedule) last() int {
	if len(s.switches) == 0 {
		return -1
	}
	return s.switches[len(s.switches)-1].step
}
