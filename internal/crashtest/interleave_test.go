//go:build unix

package crashtest

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"example.com/holdfast/internal/fsguard"
)

// The right toy passes, and everything that can happen to it was tried.
func TestInterleaveRightToyPasses(t *testing.T) {
	two := Interleave(t, toyInterleaving("", 2, 1), InterleaveOptions{MaxSchedules: 40, Random: 10, Kills: 1, Losses: 1})
	if len(two.Schedules) != 2 || two.Schedules[0] != 2 || two.Schedules[1] != 40 || two.Possible[1] <= 40 || two.Random != 10 {
		t.Errorf("schedules: %v", two)
	}
	if two.Kills < 150 || two.Losses < two.Kills+70 || two.Images < two.Losses || two.Checks != 52+two.Kills+two.Images {
		t.Errorf("too little was explored: %v", two)
	}
	three := Interleave(t, toyInterleaving("", 3, 1), InterleaveOptions{Preemptions: -1, Random: -1, Kills: -1, Losses: -1})
	if len(three.Schedules) != 1 || three.Schedules[0] < 6 || three.Possible[0] != three.Schedules[0] {
		t.Errorf("three clients that wait for one another go on in every order: %v", three)
	}
}

// Each planted bug is found, and its line repeats it.
func TestInterleaveFindsBugs(t *testing.T) {
	none := InterleaveOptions{Random: -1, Kills: -1, Losses: -1}
	random, kills, losses := none, none, none
	random.Preemptions, random.Random = -1, 50
	kills.Preemptions, kills.Kills, kills.AfterKill = -1, 1, -1
	losses.Preemptions, losses.Losses = -1, 1
	after := kills
	after.AfterKill = 4
	for _, c := range []struct {
		bug  string
		o    InterleaveOptions
		want string // a pattern of the finding
	}{
		{"no lock", none, `toy: \d+:[ab].*(answered twice|want both|no such file)`},
		{"no lock", random, `toy: \d+:[ab].*(answered twice|want both|no such file)`},
		{"locks in another order", none, `nobody can go on: a waits in lock lock; b waits in lock turn`},
		{"lock kept", none, `toy: usual: nobody can go on: b waits in lock turn`},
		{"no recovery", kills, `kill-[ab]-(before|after)-\d+: left \d, right \d, want both`},
		{"no last sync", losses, `off-at-(\d+|end) image=.*want both from`},
		{"no last sync", after, `kill-[ab]-(before|after)-\d+ off-at-end image=.*want both from`},
	} {
		t.Run(c.bug, func(t *testing.T) {
			s := toyInterleaving(c.bug, 2, 1)
			_, err := interleave(t, s, c.o)
			if err == nil {
				t.Fatal("nothing was found")
			}
			found := err.Error()
			first, _, _ := strings.Cut(found, "\n")
			if !regexp.MustCompile(c.want).MatchString(first) {
				t.Fatalf("found %q, want %s", first, c.want)
			}
			for _, part := range []string{"\nreplay:\n", "\nseed: ", "\nthe steps:\n", "\noperations of b:\n", "\nthe disk in the end"} {
				if !strings.Contains(found, part) {
					t.Errorf("the finding does not say %q:\n%s", part, found)
				}
			}
			path := regexp.MustCompile(`CRASHTEST_REPLAY='(.*)' go test`).FindStringSubmatch(found)
			if path == nil {
				t.Fatalf("no replay line in:\n%s", found)
			}
			t.Setenv("CRASHTEST_REPLAY", path[1])
			if _, again := interleave(t, s, c.o); again == nil || again.Error() != found {
				t.Errorf("the replay says\n%v\nthe exploration said\n%s", again, found)
			}
			if _, err := interleave(t, toyInterleaving("", 2, 1), c.o); err != nil && !errors.Is(err, errMisfit) {
				t.Errorf("the right one, replayed: %v", err)
			}
		})
	}
}

// What only some orders, only a death, or only a loss of power brings to light is not
// found without.
func TestInterleaveBugsHide(t *testing.T) {
	usual := InterleaveOptions{Preemptions: -1, Random: -1, Kills: -1, Losses: -1}
	for _, bug := range []string{"no lock", "locks in another order", "no recovery", "no last sync"} {
		if _, err := interleave(t, toyInterleaving(bug, 2, 1), usual); err != nil {
			t.Errorf("%s: %v", bug, err)
		}
	}
	for _, bug := range []string{"no recovery", "no last sync"} {
		o := usual
		o.Preemptions, o.MaxSchedules = 1, 40
		if _, err := interleave(t, toyInterleaving(bug, 2, 1), o); err != nil {
			t.Errorf("%s: %v", bug, err)
		}
	}
}

// A schedule prints as what reads back as it.
func TestInterleaveScheduleText(t *testing.T) {
	for _, text := range []string{
		"usual", "12:b", "12:b 40:a1", "kill-b-before-57", "3:b kill-a-after-0",
		"off-at-0 image=-", "12:b off-at-60 image=4:011,7:h12", "kill-b-after-5 off-at-end image=4:0",
	} {
		s, err := parseSchedule(text)
		if err != nil || s.String() != text {
			t.Errorf("%q reads back as %q, %v", text, s, err)
		}
	}
	for _, text := range []string{"12", "12:", "x:b", "1:bx", "kill-b-5", "kill-b-beside-5", "off-at-x", "sideways"} {
		if s, err := parseSchedule(text); err == nil {
			t.Errorf("%q reads as %q", text, s)
		}
	}
}

// A program that panics, fails or does not do the same again is a finding.
func TestInterleaveBadPrograms(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(c *Client, times int) error
		want string
	}{
		{"panics", func(*Client, int) error { panic("ouch") }, "client a: panic: ouch"},
		{"fails", func(c *Client, _ int) error { _, err := c.FS.OpenRoot("/nowhere"); return err }, "client a: openroot /nowhere"},
		{"never ends", func(c *Client, _ int) error {
			for {
				if err := c.Pause("again"); err != nil {
					return nil
				}
			}
		}, "no end after"},
		{"differs", func(c *Client, times int) error {
			for range max(1, 4-times) {
				if err := c.Pause("again"); err != nil {
					return err
				}
			}
			return nil
		}, errMisfit.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			times := 0
			s := Interleaving{Name: c.name, Clients: 2, Setup: func(testing.TB, *Disk) {}, Begin: func() Play {
				times++
				return &program{c.run, times}
			}}
			if _, err := interleave(t, s, InterleaveOptions{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("found %v, want %q", err, c.want)
			}
		})
	}
}

// A program is a play that only runs.
type program struct {
	run   func(c *Client, times int) error
	times int
}

func (p *program) Open(*Client) error          { return nil }
func (p *program) Run(c *Client) error         { return p.run(c, p.times) }
func (p *program) Kill(_ *Client, kill func()) { kill() }
func (p *program) Cut() func(testing.TB, fsguard.FS, bool) error {
	return func(testing.TB, fsguard.FS, bool) error { return nil }
}
