//go:build unix

package migrate

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	v1 "example.com/holdfast/v1"
	v2 "example.com/holdfast/v2"
)

const (
	markerProtocol = "holdfast-v1-import"
	markerVersion  = 1

	markerOpen   = "open"
	markerClosed = "closed"

	roleFailed = "failed"
)

// A marker is the content of v1.MarkerFile in a v1 directory: where it goes,
// and which files of it. It is written before the first message is brought, so that a
// re-run brings what the first run read or nothing.
type marker struct {
	Protocol string `json:"protocol"`
	Version  int    `json:"version"`
	Role     string `json:"role,omitempty"` // empty: of a queue directory
	Token    string `json:"token"`          // of the import in the v2 store
	Store    string `json:"store"`
	Queue    string `json:"queue"`
	State    string `json:"state"`          // open, or closed: the store has recorded the token as closed
	Failed   string `json:"failed"`         // the failed directory; empty: none
	From     string `json:"from,omitempty"` // in the marker of a failed directory: its queue directory

	// The device numbers of the directories when the files were looked at: see Source.Device.
	Device       uint64 `json:"device,string"`
	FailedDevice uint64 `json:"failed_device,string"`

	Entries []entry `json:"entries"` // the manifest, in the order in which they are brought
}

// An entry is one file of the manifest.
type entry struct {
	ID       string `json:"id"`
	State    string `json:"state"`
	Dev      uint64 `json:"dev,string"`
	Ino      uint64 `json:"ino,string"`
	Size     int64  `json:"size,string"`
	Modified int64  `json:"modified,string"`   // Unix nanoseconds
	SHA256   string `json:"sha256"`            // of the content; empty: skipped
	Skipped  bool   `json:"skipped,omitempty"` // it is not imported, and stays

	file v1.Entry
	sum  [sha256.Size]byte
}

var states = map[string]v1.EntryState{
	v1.EntryPending.String(): v1.EntryPending, v1.EntryClaimed.String(): v1.EntryClaimed, v1.EntryFailed.String(): v1.EntryFailed,
}

func entryOf(file v1.Entry) entry {
	return entry{
		ID: file.ID, State: file.State.String(), Dev: file.Dev, Ino: file.Ino, Size: file.Size, Modified: file.Modified.UnixNano(),
		file: file,
	}
}

// encode gives the text of a marker. Only its own types are in it: they always encode.
func (m *marker) encode() []byte {
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		panic(err)
	}
	return append(text, '\n')
}

// readMarker gives the marker of a directory; nil: there is none.
func readMarker(src *v1.Source) (*marker, error) {
	m, err := markerIn(src.Dir(), src, src.Marker)
	if m != nil && m.Role == roleFailed {
		return nil, m.fault(ErrOtherRole, m.Store, src.Dir(), "it is the failed directory of "+m.From)
	}
	return m, err
}

// markerIn decodes the marker that read gives of the directory dir; nil: there is none.
func markerIn(dir string, src *v1.Source, read func() ([]byte, bool, error)) (*marker, error) {
	text, there, err := read()
	if err != nil || !there {
		return nil, err
	}
	m, err := decodeMarker(text, src)
	if err != nil {
		return nil, fmt.Errorf("%s/%s: %w: %w", dir, v1.MarkerFile, ErrMarker, err)
	}
	return m, nil
}

func decodeMarker(text []byte, src *v1.Source) (*marker, error) {
	m := new(marker)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("it goes on after its end")
	}
	switch {
	case m.Protocol != markerProtocol || m.Version != markerVersion:
		return nil, fmt.Errorf("protocol %q version %d: this program knows %s version %d", m.Protocol, m.Version, markerProtocol, markerVersion)
	case m.Role != "" && m.Role != roleFailed:
		return nil, fmt.Errorf("role %q", m.Role)
	case m.State != markerOpen && m.State != markerClosed && m.Role != roleFailed:
		return nil, fmt.Errorf("state %q", m.State)
	}
	if _, err := m.token(); err != nil {
		return nil, err
	}
	for i := range m.Entries {
		if err := m.Entries[i].decode(m, src); err != nil {
			return nil, fmt.Errorf("entry %d: %w", i, err)
		}
	}
	return m, nil
}

// decode fills in what the other fields mean now.
func (e *entry) decode(m *marker, src *v1.Source) error {
	state, ok := states[e.State]
	if !ok {
		return fmt.Errorf("state %q", e.State)
	}
	sum, err := hex.DecodeString(e.SHA256)
	if err != nil || !e.Skipped && len(sum) != sha256.Size {
		return fmt.Errorf("sha256 %q", e.SHA256)
	}
	copy(e.sum[:], sum)
	e.file = v1.Entry{ID: e.ID, State: state, File: src.File(e.ID, state), Dev: e.Dev, Ino: e.Ino, Size: e.Size, Modified: time.Unix(0, e.Modified)}
	was := m.Device
	if state == v1.EntryFailed {
		was = m.FailedDevice
	}
	if e.Dev == was {
		e.file.Dev = src.Device(state)
	}
	return nil
}

func (m *marker) token() (v2.ImportToken, error) { return v2.ParseImportToken(m.Token) }

// fault is the answer to a store that may not have what the marker marks.
func (m *marker) fault(what error, store, dir, why string) error {
	return &MarkerError{What: what, Dir: dir, Store: m.Store, Queue: m.Queue, Token: m.Token, Elsewhere: m.Store != store, Why: why}
}

// differences compares the manifest with what stands now.
func (m *marker) differences(v v1.Survey) []Problem {
	now := bySide(v.Entries)
	var out []Problem
	for _, e := range m.Entries {
		at := side{e.ID, e.file.State}
		switch is, there := now[at]; {
		case !there:
			out = append(out, Problem{e.file.File, errGone})
		case !is.Same(e.file):
			out = append(out, Problem{is.File, errOther})
		}
		delete(now, at)
	}
	for _, e := range now {
		out = append(out, Problem{e.File, errNew})
	}
	for _, l := range v.Locks {
		out = append(out, Problem{l.File, errNewLock})
	}
	for _, r := range v.Records {
		out = append(out, Problem{r.File, errNewRecord})
	}
	slices.SortFunc(out, func(a, b Problem) int { return cmp.Compare(a.File, b.File) })
	return out
}

var (
	errGone      = fmt.Errorf("is gone since it was read")
	errOther     = fmt.Errorf("is another file than the one that was read")
	errNew       = fmt.Errorf("came after the directory was read")
	errNewLock   = fmt.Errorf("a transition began after the directory was read")
	errNewRecord = fmt.Errorf("a retirement began after the directory was read")
)
