//go:build unix

package main

import (
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

// A topKey is a key with what it does, and on which page; -1: on all.
type topKey struct {
	key, does, long string
	page            int
}

// topKeys are in the order in which the last line has room for them.
var topKeys = []topKey{
	{"?", "keys", "show or hide these keys", -1},
	{"q", "quit", "quit", -1},
	{"p", "pause", "pause the queue, or resume it", onQueues},
	{"x", "release", "end the claim, whatever its deadline, and return its message", onClaims},
	{"r", "reprocess", "return the failed message to its queue", onFailed},
	{"d", "purge", "remove the failed message for good", onFailed},
	{"tab", "page", "next page; 1, 2 and 3 choose one", -1},
	{"enter", "more", "show the row in full", -1},
	{"/", "filter", "show only rows with a text; esc shows all again", -1},
	{"j k", "move", "down and up, as the arrows; pgup, pgdn, home, end", -1},
}

// press takes a key. What waits for an answer has it first: anything but y is a no.
func (m *topModel) press(msg tea.KeyPressMsg) tea.Cmd {
	key := msg.String()
	switch {
	case key == "ctrl+c":
		return m.quit()
	case m.ask != nil:
		d := *m.ask
		m.ask = nil
		if key == "y" || key == "Y" {
			return m.begin(d)
		}
		m.said, m.saidBad = "not done: "+d.verb, false
		return nil
	case m.typing:
		m.edit(key, msg.Text)
		return nil
	}
	return m.command(key)
}

func (m *topModel) command(key string) tea.Cmd {
	m.said = ""
	switch key {
	case "q":
		return m.quit()
	case "esc":
		m.escape()
	case "?":
		m.help, m.detail = !m.help, false
	case "tab", "right", "l":
		m.turn((m.page + 1) % pages)
	case "shift+tab", "left", "h":
		m.turn((m.page + pages - 1) % pages)
	case "1", "2", "3":
		m.turn(int(key[0] - '1'))
	case "/":
		m.typing, m.help, m.detail = true, false, false
	case "enter":
		m.help = false
		if rows := m.rows(); m.detail || len(rows) == 0 {
			m.detail = false
		} else {
			m.detail, m.chosen[m.page] = true, rows[m.at(rows)].key
		}
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup":
		m.move(-m.room())
	case "pgdown":
		m.move(m.room())
	case "home", "g":
		m.move(-1 << 30)
	case "end", "G":
		m.move(1 << 30)
	case "p", "x", "r", "d":
		m.wish(key)
	}
	return nil
}

// quit ends the view; what is being done is withdrawn while it waits for the lock, and
// waited for otherwise.
func (m *topModel) quit() tea.Cmd {
	if m.doing == nil {
		return tea.Quit
	}
	m.quitting, m.said = true, ""
	m.stop()
	return nil
}

// escape leaves the innermost thing that is open. A change that waits is withdrawn.
func (m *topModel) escape() {
	switch {
	case m.doing != nil:
		m.stop()
	case m.help || m.detail:
		m.help, m.detail = false, false
	default:
		m.filter = ""
	}
}

func (m *topModel) turn(page int) { m.page, m.help, m.detail = page, false, false }

// move moves the cursor by so many rows.
func (m *topModel) move(by int) {
	if rows := m.rows(); len(rows) > 0 {
		m.chosen[m.page] = rows[min(max(m.at(rows)+by, 0), len(rows)-1)].key
	}
}

// maxFilter is the most characters of a filter.
const maxFilter = 60

// edit takes a key for the filter.
func (m *topModel) edit(key, text string) {
	switch key {
	case "enter":
		m.typing = false
	case "esc":
		m.typing, m.filter = false, ""
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(m.filter)
		m.filter = m.filter[:len(m.filter)-n]
	case "ctrl+u":
		m.filter = ""
	default:
		if utf8.RuneCountInString(m.filter+text) <= maxFilter {
			m.filter += text
		}
	}
}

// wish asks to confirm the change that a key stands for, to the row that the cursor is on
// as it is shown now.
func (m *topModel) wish(key string) {
	rows := m.rows()
	verb := map[string]string{"p": "pause", "x": "release", "r": "reprocess", "d": "purge"}[key]
	page := map[string]int{"p": onQueues, "x": onClaims, "r": onFailed, "d": onFailed}[key]
	switch {
	case page != m.page:
		m.said = verb + " is on page " + itoa(page+1)
	case m.doing != nil:
		m.said = "wait: " + m.doing.verb + " is being done; esc withdraws it"
	case len(rows) == 0:
		m.said = "nothing to " + verb
	default:
		r := rows[m.at(rows)]
		if verb == "pause" && m.now.status.Queues[r.queue].Paused {
			verb = "resume"
		}
		m.chosen[m.page] = r.key // it stays on that row
		m.ask = &deed{verb: verb, queue: r.queue, entry: r.entry}
	}
}
