//go:build unix

package main

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"example.com/holdfast/queue"
)

var claimColumns = []column{
	{head: "QUEUE", least: 6, rank: 1},
	{head: "ID", least: 10},
	{head: "HELD BY", least: 8},
	{head: "SEEN", right: true, rank: 2},
	{head: "DEADLINE", right: true},
	{head: "CLAIMS", right: true, rank: 4},
	{head: "LAST ERROR", least: 10, rank: 3},
}

func (m *topModel) claimRow(e queue.Entry) []string {
	return []string{e.Queue, e.ID, pick(e.Label, "-"), shortAge(m.now.at.Sub(m.seen[e.Receipt])), m.deadline(e), utoa(e.Attempts), e.LastError}
}

// deadline tells how long a claim has, or how long ago it should have ended.
func (m *topModel) deadline(e queue.Entry) string {
	switch left := e.Deadline.Sub(m.now.at); {
	case e.Deadline.IsZero():
		return "none"
	case e.Overdue || left < 0:
		return shortAge(-left) + " over"
	default:
		return shortAge(left)
	}
}

var failedColumns = []column{
	{head: "NAME", least: 10},
	{head: "QUEUE", least: 6, rank: 1},
	{head: "AGO", right: true},
	{head: "CLAIMS", right: true, rank: 2},
	{head: "LAST ERROR", least: 12},
}

func (m *topModel) failedRow(e queue.Entry) []string {
	return []string{e.FailedName, e.Queue, shortAge(m.now.at.Sub(e.FailedAt)), utoa(e.Attempts), pick(e.LastError, "-")}
}

// View draws the whole screen. Everything from the store passes printable on its way: in
// layOut, or in text.
func (m *topModel) View() tea.View {
	v := tea.NewView(strings.Join(m.screen(), "\n"))
	v.AltScreen = true
	return v
}

// headLines are above the table's rows: three and the table's heading.
const headLines = 4

// room is how many rows of a table are in view.
func (m *topModel) room() int { return max(1, m.height-headLines-len(m.foot())) }

func (m *topModel) screen() []string {
	foot := m.foot()
	lines := m.head()
	switch {
	case m.help:
		lines = append(lines, m.keyLines()...)
	case m.detail:
		lines = append(lines, m.detailLines()...)
	default:
		lines = append(lines, m.table()...)
	}
	body := max(0, m.height-len(foot))
	for len(lines) < body {
		lines = append(lines, "")
	}
	return append(lines[:body:body], foot...)
}

// text makes a line of what may be anything: safe, and as wide as the window at most.
func (m *topModel) text(format string, args ...any) string {
	return cutCells(printable(fmt.Sprintf(format, args...)), m.width)
}

// head gives the three lines above every page: what is looked at and when, what is to be
// known of it, and the pages.
func (m *topModel) head() []string {
	title, second := m.text("holdfast top %s", m.dir), ""
	if m.now != nil {
		at := m.now.at.Local().Format("15:04:05")
		title = pad(m.text("holdfast top %s", m.dir), max(0, m.width-len(at)-1), false) + " " + at
	}
	switch {
	case m.lookErr != nil && outOfTime(m.lookErr):
		second = m.style.warn(m.text("no look within %s: the disk or the store does not answer", surveyWithin))
	case m.lookErr != nil:
		second = m.style.warn(m.text("no look: %v", m.lookErr))
	case m.now == nil:
		second = "looking…"
	case !m.now.status.Settled:
		second = m.style.warn(m.text("%s", m.now.busy(m.dir)))
	default:
		second = m.text("%s", m.totals())
	}
	return []string{m.style.bold(title), second, m.tabs()}
}

func (m *topModel) totals() string {
	var sum queue.QueueStatus
	for _, q := range m.now.status.Queues {
		sum.Ready += q.Ready
		sum.Processing += q.Processing
		sum.Failed += q.Failed
	}
	line := fmt.Sprintf("%d ready, %d processing, %d failed", sum.Ready, sum.Processing, sum.Failed)
	if full := fmt.Sprintf("%s; revision %d", line, m.now.status.Revision); len(full) <= m.width {
		return full
	}
	return line
}

func (m *topModel) tabs() string {
	names := []string{"1:queues", "2:claims", "3:failed"}
	names[m.page] = "[" + names[m.page] + "]"
	line := strings.Join(names, "  ")
	if m.filter != "" || m.typing {
		line += "  /" + m.filter
	}
	if m.typing {
		line += "_"
	}
	return m.text("%s", line)
}

// table gives the rows of the page, the cursor's in view and reversed.
func (m *topModel) table() []string {
	rows := m.rows()
	if len(rows) == 0 {
		return []string{m.empty()}
	}
	columns := [pages][]column{queueColumns, claimColumns, failedColumns}[m.page]
	cells := make([][]string, len(rows))
	for i, r := range rows {
		cells[i] = r.cells
	}
	const mark = 2 // the cursor is seen without reversed text too
	lines := layOut(columns, cells, max(1, m.width-mark))
	at, room := m.at(rows), m.room()
	first := min(m.top[m.page], max(0, len(rows)-room))
	first = min(max(first, at-room+1), at)
	m.top[m.page] = first
	out := []string{m.style.bold("  " + lines[0])}
	for i := first; i < min(first+room, len(rows)); i++ {
		if i == at {
			out = append(out, m.style.reverse(pad("> "+lines[i+1], m.width, false)))
			continue
		}
		out = append(out, "  "+lines[i+1])
	}
	return out
}

func (m *topModel) empty() string {
	switch {
	case m.now == nil:
		return ""
	case m.filter != "":
		return m.text("nothing here has %q; esc shows all", m.filter)
	}
	return [pages]string{"no queues", "no claims: nothing is in the hands of a worker", "no failed messages"}[m.page]
}

// keyLines are the help.
func (m *topModel) keyLines() []string {
	var lines []string
	for _, k := range topKeys {
		if k.page < 0 || k.page == m.page {
			lines = append(lines, cutCells(pad(k.key, 6, false)+k.long, m.width))
		}
	}
	return lines
}

// detailLines show the row that the cursor is on in full, the last error at the end.
func (m *topModel) detailLines() []string {
	rows := m.rows()
	if len(rows) == 0 {
		return []string{m.empty()}
	}
	r := rows[m.at(rows)]
	fields := [][2]string{{"queue", r.queue}}
	e := r.entry
	switch m.page {
	case onQueues:
		q := m.now.status.Queues[r.queue]
		c := q.Counters
		fields = append(fields, [][2]string{
			{"state", pick(queueNote(q), "-")}, {"oldest", m.now.age(r.queue)},
			{"failed in", pick(q.FailedNamespace, "the common namespace")},
			{"came", fmt.Sprintf("%d enqueued, %d reprocessed", c.Enqueued, c.Reprocessed)},
			{"left", fmt.Sprintf("%d completed, %d failed, %d superseded, %d cleared", c.Completed, c.Failed, c.Superseded, c.Cleared)},
			{"came back", fmt.Sprintf("%d retried, %d released, %d reaped", c.Retried, c.Released, c.Reaped)},
		}...)
	case onClaims:
		fields = append(fields, [][2]string{{"id", e.ID}, {"state", stateText(e)}, {"held by", pick(e.Label, "- (the claim has no label)")},
			{"seen for", shortAge(m.now.at.Sub(m.seen[e.Receipt]))}, {"receipt", e.Receipt.String()}}...)
	case onFailed:
		fields = append(fields, [][2]string{{"name", e.FailedName}, {"id", e.ID}, {"namespace", e.Namespace}, {"failed", when(e.FailedAt)}}...)
	}
	if m.page != onQueues {
		fields = append(fields, [][2]string{{"key", e.Key}, {"enqueued", when(e.EnqueuedAt)}, {"attempts", attemptsText(e)},
			{"payload", fmt.Sprintf("%d bytes", e.PayloadBytes)}, {"last error", e.LastError}}...)
	}
	var lines []string
	for _, f := range fields {
		if f[1] != "" {
			lines = append(lines, m.wrapped(pad(f[0], 11, false)+printable(f[1]))...)
		}
	}
	return lines
}

// wrapped breaks printable text into lines of the window's width.
func (m *topModel) wrapped(text string) []string {
	return strings.Split(ansi.Wrap(text, m.width, ""), "\n")
}

// footLines is the most lines that an answer may take, and a question where the window has
// no more.
const footLines = 4

// foot gives what is asked or was said, and the keys. A question is cut only where the
// window has no room for it: in a narrow one it takes more lines.
func (m *topModel) foot() []string {
	var lines []string
	switch {
	case m.ask != nil:
		question := printable(m.ask.question())
		room := max(footLines, m.height-headLines) - 1 // one to spare, for lines break between words
		lines = m.wrapped(cutCells(question, room*m.width-len(" [y/N]")) + " [y/N]")
		for i := range lines {
			lines[i] = m.style.warn(lines[i])
		}
		return lines
	case m.doing != nil && m.said == "":
		what := m.doing.verb + " " + pick(m.doing.entry.ID, m.doing.queue) + " …"
		if m.quitting {
			what += " then quit"
		}
		lines = []string{m.text("%s", what)}
	case m.said != "":
		lines = m.wrapped(printable(m.said))
		lines = lines[:min(len(lines), footLines)]
		if m.saidBad {
			for i := range lines {
				lines[i] = m.style.warn(lines[i])
			}
		}
	case m.now != nil && m.now.more:
		lines = []string{m.text("there are more claims or failed messages than are listed; holdfast ls and failed ls have all")}
	}
	return append(lines, m.keyLine())
}

// keyLine has as many keys as there is room for.
func (m *topModel) keyLine() string {
	if m.typing {
		return cutCells("enter keeps the filter, esc drops it", m.width)
	}
	line := ""
	for _, k := range topKeys {
		if k.page >= 0 && k.page != m.page {
			continue
		}
		next := strings.TrimPrefix(line+"  "+k.key+" "+k.does, "  ")
		if ansi.StringWidth(next) > m.width {
			break
		}
		line = next
	}
	return line
}
