//go:build unix

package main

import (
	"errors"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

func TestTopScreens(t *testing.T) {
	for _, try := range []struct {
		name, keys string
		width      int
		height     int
	}{
		{"queues", "", 80, 24},
		{"claims", "2", 80, 24},
		{"failed", "3 down", 80, 24},
		{"failed-detail", "3 down enter", 80, 24},
		{"claim-detail", "2 down enter", 80, 24},
		{"keys", "?", 80, 24},
		{"phone-queues", "", 40, 20},
		{"phone-claims", "2 down", 40, 20},
		{"phone-failed", "3", 40, 20},
		{"phone-purge", "3 down d", 40, 20},
		{"phone-release", "2 down x", 40, 20},
		{"phone-queue-detail", "enter", 40, 20},
	} {
		t.Run(try.name, func(t *testing.T) {
			b := newTopBench(t, &topFake{view: topSurvey()}, try.width, try.height)
			b.press(try.keys)
			cliGolden(t, "top-"+try.name+".txt", strings.Join(b.screen(), "\n")+"\n")
		})
	}
}

// Whatever the window, whatever is open.
func TestTopFitsEveryWindow(t *testing.T) {
	for _, keys := range []string{"", "2", "3 end", "2 down x", "3 down d", "? tab", "enter", "2 down enter", "/ ö ö", "3 down r y"} {
		b := newTopBench(t, &topFake{view: topSurvey(), doErr: errors.New("no " + evil + strings.Repeat("so long a story ", 60))}, 80, 24)
		b.press(keys)
		for width := 12; width < 130; width += 3 {
			b.send(tea.WindowSizeMsg{Width: width, Height: 6 + width%20}) // check looks at each
		}
	}
}

// On a phone a question about long names is whole, where the window has lines for it.
func TestTopAsksWhole(t *testing.T) {
	v := topSurvey()
	id := strings.Repeat("x", 125) + "end"
	v.claims[0].ID, v.claims[0].Label = id, strings.Repeat("l", 128)
	b := newTopBench(t, &topFake{view: v}, 40, 20)
	b.press("2 x")
	b.has("xxend")
	b.has("it. [y/N]")
}
