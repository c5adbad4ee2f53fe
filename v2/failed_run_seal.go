//go:build unix

package holdfast

import (
	"cmp"
	"slices"
	"strings"
)

// When failed messages are sealed: by the commit of an enqueue, as pending ones are, so
// that settling costs what it costs at any depth. Inline stay the newest ones, between
// one and three blocks of about the square root of what has failed, and so is the number
// of runs.

// failedWithin is of how many parts of the state's bound a block of failed messages
// takes one at most: their last errors may be long.
const failedWithin = 12

// A failedSealing is a run of failed messages in the making.
type failedSealing struct {
	run  *failedRun
	all  []*failedEntry
	text []byte
}

// sealFailed seals what is ripe, and gives the objects.
func (s *Store) sealFailed(d *draft, newToken func() (token, error)) ([]object, error) {
	made, err := d.sealFailed(newToken, d.ripeFailed)
	var objects []object
	for _, x := range made {
		s.runs.keepEvidence(x.run, x.all)
		objects = append(objects, object{name: x.run.name, file: runFile, data: x.text})
	}
	return objects, err
}

// halfFull reports whether the state takes half its bound. Then a claim seals evidence too:
// where nobody enqueues, what fails would fill the state, and shut what lies in runs.
func (d *draft) halfFull() bool { return d.limit > 0 && d.bytes > d.limit/2 }

// sealFailed seals what choose gives of each namespace. Their payloads have their
// objects: it is called last, right before the state is encoded.
func (d *draft) sealFailed(newToken func() (token, error), choose func(f *failedSpace) []*failedEntry) ([]failedSealing, error) {
	var made []failedSealing
	for _, published := range slices.Clone(d.st.failed) {
		cold := choose(published)
		if len(cold) == 0 {
			continue
		}
		f := d.space(published.name)
		for _, part := range partsOfRuns(cold) {
			name, err := newToken()
			if err != nil {
				return nil, err
			}
			slices.SortFunc(part, compareFailed)
			r, text := encodeFailedRun(part)
			r.name = name
			f.setRun(name, r)
			made = append(made, failedSealing{r, part, text})
		}
		left := map[*failedEntry]bool{}
		for _, e := range cold {
			left[e] = true
		}
		f.entries = slices.DeleteFunc(f.entries, func(e *failedEntry) bool { return left[e] })
	}
	return made, nil
}

// partsOfRuns cuts evidence into pieces that fit a run each. No piece shares memory with
// another.
func partsOfRuns(cold []*failedEntry) [][]*failedEntry {
	var parts [][]*failedEntry
	var part []*failedEntry
	size := 0
	for _, e := range cold {
		takes := len(e.text()) + 1 + (2*filterBits+7)/8
		if len(part) == maxRun || len(part) > 0 && size+takes > maxRunBytes-runFrame {
			parts = append(parts, part)
			part, size = nil, 0
		}
		part = append(part, e)
		size += takes
	}
	return append(parts, part)
}

// ripeFailed gives what is to be sealed of a namespace, the oldest first.
func (d *draft) ripeFailed(f *failedSpace) []*failedEntry {
	block := d.blockOf(f.live())
	if block < 0 || len(f.entries) == 0 {
		return nil
	}
	if d.block == 0 && d.limit > 0 {
		var bytes int64
		for _, e := range f.entries {
			bytes += int64(len(e.text()))
		}
		block = min(block, int(max(1, d.limit/failedWithin*int64(len(f.entries))/max(bytes, 1))))
	}
	if len(f.entries) <= 3*block {
		return nil
	}
	cold := f.cold()
	return cold[:max(0, len(cold)-block)]
}

// cold gives the failed messages that may leave the state, the oldest first.
func (f *failedSpace) cold() []*failedEntry {
	cold := slices.DeleteFunc(slices.Clone(f.entries), func(e *failedEntry) bool { return !e.ref.mark.zero() })
	slices.SortFunc(cold, func(a, b *failedEntry) int {
		return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.name, b.name))
	})
	return cold
}
