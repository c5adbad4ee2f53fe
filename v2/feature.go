//go:build unix

package holdfast

// A feature is something in a state that not every reader of version 2 knows. A state
// names those that it uses, sorted; one that is not known here is refused by its name,
// so that what a later program wrote is never taken for corruption.
type feature uint8

const (
	importFeature feature = 1 << iota // the state remembers an import
	runsFeature                       // messages lie in runs
	sparesFeature                     // spares take turns with state.json, which may end in spaces
)

// knownFeatures are those of this program, in the order of their names.
var knownFeatures = []struct {
	feature
	name string
}{
	{importFeature, "import"},
	{runsFeature, "runs"},
	{sparesFeature, "spares"},
}

// uses gives the features that st makes use of.
func (st *state) uses() feature {
	var f feature
	if len(st.imports) > 0 {
		f |= importFeature
	}
	if st.exchange {
		f |= sparesFeature
	}
	for _, q := range st.queues {
		if len(q.runs) > 0 {
			f |= runsFeature
		}
	}
	for _, s := range st.failed {
		if len(s.runs) > 0 {
			f |= runsFeature
		}
	}
	return f
}

func appendFeatures(b []byte, uses feature) []byte {
	b = append(b, '[')
	n := 0
	for _, known := range knownFeatures {
		if uses&known.feature != 0 {
			b = appendString(appendComma(b, n), known.name)
			n++
		}
	}
	return append(b, ']')
}

// features reads the list. The first name that is not known decides, whatever else is
// wrong with it.
func (d *decoder) features() (uses feature) {
	type fault struct {
		at            int
		name, problem string
	}
	var list *fault
	before := ""
	d.lit("[")
	for first := true; d.more(first); first = false {
		at := d.i
		name := string(d.string("feature", maxWord))
		if d.err != nil {
			break
		}
		var is feature
		for _, known := range knownFeatures {
			if name == known.name {
				is = known.feature
			}
		}
		switch {
		case is == 0:
			d.final(at, ErrVersion, "feature %q: this program does not know it", name)
		case list != nil:
		case uses&is != 0:
			list = &fault{at, name, "twice"}
		case name < before:
			list = &fault{at, name, "not sorted"}
		}
		uses |= is
		before = name
	}
	if list != nil {
		d.fail(list.at, "feature %q %s", list.name, list.problem)
	}
	return uses
}
