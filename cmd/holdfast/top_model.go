//go:build unix

package main

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"example.com/holdfast/queue"
)

// A topStore is what the view needs of a store. Both wait for a bounded time.
type topStore interface {
	look(ctx context.Context) (*survey, error)
	do(ctx context.Context, d deed) (said string, err error)
}

// The pages of the view.
const (
	onQueues = iota
	onClaims
	onFailed
	pages
)

// A topModel is the whole view: what was seen, and what the keys have asked for. It is
// changed by Update and by nothing else; what waits is done by commands.
type topModel struct {
	ctx   context.Context
	store topStore
	dir   string
	style style
	tick  tea.Cmd // gives a tickMsg when it is time to look again

	width, height int

	before, now *survey
	seen        map[queue.Receipt]time.Time // since when each claim has been in view
	looking     bool
	again       bool  // look again as soon as this look has ended
	lookErr     error // of the last look; now is then of an earlier one

	page     int
	chosen   [pages]string // the key of the row that the cursor is on
	place    [pages]int    // where that row stood last
	top      [pages]int    // the first row in view
	filter   string
	typing   bool // keys go to the filter
	detail   bool // of the row that the cursor is on
	help     bool
	ask      *deed // waits for y
	doing    *deed
	stop     context.CancelFunc // of doing
	said     string
	saidBad  bool
	quitting bool // once what is being done has ended
}

// What commands answer with.
type (
	tickMsg   struct{}
	lookedMsg struct {
		v   *survey
		err error
	}
	didMsg struct {
		said string
		err  error
	}
)

func newTop(ctx context.Context, store topStore, dir string, st style, tick tea.Cmd) *topModel {
	return &topModel{ctx: ctx, store: store, dir: dir, style: st, tick: tick, width: 80, height: 24, seen: map[queue.Receipt]time.Time{}}
}

// Init looks at once.
func (m *topModel) Init() tea.Cmd { return m.look() }

func (m *topModel) look() tea.Cmd {
	m.looking, m.again = true, false
	return func() tea.Msg {
		v, err := m.store.look(m.ctx)
		return lookedMsg{v, err}
	}
}

// Update takes a key, the size of the window, or the end of something that was waited for.
func (m *topModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		if msg.Width > 0 && msg.Height > 0 {
			m.width, m.height = msg.Width, msg.Height
		}
	case tickMsg:
		if !m.looking {
			return m, m.look()
		}
	case lookedMsg:
		return m, m.looked(msg)
	case didMsg:
		return m, m.did(msg)
	case tea.KeyPressMsg:
		return m, m.press(msg)
	}
	return m, nil
}

// looked takes what a look found. One that failed leaves what was seen before it.
func (m *topModel) looked(msg lookedMsg) tea.Cmd {
	m.looking, m.lookErr = false, msg.err
	if msg.err == nil {
		m.before, m.now = m.now, msg.v
		seen := map[queue.Receipt]time.Time{}
		for _, e := range msg.v.claims {
			since, ok := m.seen[e.Receipt]
			if !ok {
				since = msg.v.at
			}
			seen[e.Receipt] = since
		}
		m.seen = seen
		if m.detail && !slices.ContainsFunc(m.rows(), m.isChosen) {
			m.detail, m.said, m.saidBad = false, "what was shown here is gone", false
		}
	}
	if m.again {
		return m.look()
	}
	return m.tick
}

// did takes the end of a change, and looks at what it made.
func (m *topModel) did(msg didMsg) tea.Cmd {
	m.doing, m.stop = nil, nil
	m.said, m.saidBad = msg.said, msg.err != nil
	if msg.err != nil {
		m.said = msg.err.Error()
	}
	switch {
	case m.quitting:
		return tea.Quit
	case m.looking:
		m.again = true
		return nil
	}
	return m.look()
}

// begin starts the change that was confirmed.
func (m *topModel) begin(d deed) tea.Cmd {
	ctx, cancel := context.WithCancel(m.ctx)
	m.doing, m.stop, m.said = &d, cancel, ""
	return func() tea.Msg {
		defer cancel()
		said, err := m.store.do(ctx, d)
		return didMsg{said, err}
	}
}

// A topRow is a row of a page: what it shows, and what a key would act on.
type topRow struct {
	key   string // the same for as long as it is the same thing
	queue string
	entry queue.Entry
	cells []string
}

// rows gives those of the page in view that the filter lets through.
func (m *topModel) rows() []topRow {
	if m.now == nil {
		return nil
	}
	var rows []topRow
	switch m.page {
	case onQueues:
		for _, name := range m.now.names() {
			rows = append(rows, topRow{key: name, queue: name, cells: queueRow(m.now, name, flowOf(m.before, m.now, name))})
		}
	case onClaims:
		for _, e := range m.now.claims {
			rows = append(rows, topRow{e.Receipt.String(), e.Queue, e, m.claimRow(e)})
		}
	case onFailed:
		for _, e := range m.now.failed {
			rows = append(rows, topRow{e.Namespace + "/" + e.FailedName + "/" + e.Generation, e.Queue, e, m.failedRow(e)})
		}
	}
	if m.filter == "" {
		return rows
	}
	return slices.DeleteFunc(rows, func(r topRow) bool { return !r.matches(m.filter) })
}

// matches looks for the text in whatever names the row, capitals and small letters alike.
func (r topRow) matches(text string) bool {
	text = strings.ToLower(text)
	for _, in := range []string{r.queue, r.entry.ID, r.entry.FailedName, r.entry.Label, r.entry.Key, r.entry.LastError} {
		if strings.Contains(strings.ToLower(in), text) {
			return true
		}
	}
	return false
}

// at gives the place of the cursor: on the row that was chosen for as long as it is
// there, then where it stood.
func (m *topModel) at(rows []topRow) int {
	if i := slices.IndexFunc(rows, m.isChosen); i >= 0 {
		m.place[m.page] = i
		return i
	}
	return max(0, min(m.place[m.page], len(rows)-1))
}

func (m *topModel) isChosen(r topRow) bool { return r.key == m.chosen[m.page] }
