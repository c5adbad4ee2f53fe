//go:build unix

package holdfast

import (
	"encoding/hex"
	"fmt"
)

// The filter of a run tells which IDs are not in it, so that a caller's own ID is
// looked up without reading the members. It is a Bloom filter: filterBits bits for
// each member, of which an ID sets filterProbes. With 20 and 14 one strange ID in ten
// thousand makes a run be read in vain (Bloom, "Space/time trade-offs in hash coding
// with allowable errors", 1970). An ID asks every run of its queue: with the hundreds
// of a deep one, half as many bits would have it read several in vain each time.
const (
	filterBits   = 20
	filterProbes = 14
)

// filterBytes is the length of the filter of a run of count members.
func filterBytes(count int) int { return (count*filterBits + 7) / 8 }

// newFilter makes the filter of members.
func newFilter(slots []*slot) []byte {
	f := make([]byte, filterBytes(len(slots)))
	for _, s := range slots {
		probe(s.id, len(f), func(at int, bit byte) bool {
			f[at] |= bit
			return true
		})
	}
	return f
}

// mayHold reports whether id may be one of those that the filter was made of.
func mayHold(filter []byte, id string) bool {
	held := true
	probe(id, len(filter), func(at int, bit byte) bool {
		held = filter[at]&bit != 0
		return held
	})
	return held
}

// probe gives the bits of an ID in a filter of so many bytes: from the two halves of
// its hash, the first and then, again and again, the second more, which is made odd.
// The hash is FNV-1a of 64 bits, mixed once more: without that IDs that differ in their
// last character alone, as counted ones do, share most of their bits.
func probe(id string, bytes int, visit func(at int, bit byte) bool) {
	hash := uint64(14695981039346656037)
	for i := range len(id) {
		hash = (hash ^ uint64(id[i])) * 1099511628211
	}
	hash = (hash ^ hash>>32) * 0x9e3779b97f4a7c15
	hash ^= hash >> 32
	at, step := hash&(1<<32-1), hash>>32|1
	for range filterProbes {
		bit := at % uint64(8*bytes)
		if !visit(int(bit/8), 1<<(bit%8)) {
			return
		}
		at += step
	}
}

// parseFilter reads the text of a filter.
func parseFilter(text []byte) ([]byte, error) {
	filter := make([]byte, hex.DecodedLen(len(text)))
	if _, err := hex.Decode(filter, text); err != nil {
		return nil, fmt.Errorf("the filter: %w", err)
	}
	return filter, nil
}
