//go:build unix

package holdfast

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"
)

// likeness are families of IDs as programs make them: alike but for a few characters, and
// with nothing in common.
var likeness = map[string]func(i int) string{
	"counted":           func(i int) string { return fmt.Sprintf("m%d", i) },
	"counted, padded":   func(i int) string { return fmt.Sprintf("m%06d", i) },
	"counted, then all": func(i int) string { return fmt.Sprintf("order-%010d-x", i) },
	"hexadecimal":       func(i int) string { return fmt.Sprintf("%x", i) },
	"random":            randomID,
}

// randomID is a UUID that is the same in every run.
func randomID(i int) string {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(i))
	id, err := uuid.NewRandomFromReader(rand.NewChaCha8(seed))
	if err != nil {
		panic(err)
	}
	return id.String()
}

// A filter says yes to each of its members, and to so few others that an ID which is in
// none of a thousand runs has one of them read now and then.
func TestRunFilter(t *testing.T) {
	for name, id := range likeness {
		for _, members := range []int{1, leastBlock, 163, 1024, maxRun} {
			var slots []*slot
			for i := range members {
				slots = append(slots, &slot{id: id(i)})
			}
			filter := newFilter(slots)
			if len(filter) != filterBytes(members) {
				t.Errorf("%s: a filter of %d bytes for %d members", name, len(filter), members)
			}
			for i := range members {
				if !mayHold(filter, id(i)) {
					t.Fatalf("%s: the filter of %d members has not %q", name, members, id(i))
				}
			}
			const strangers = 20_000
			yes := 0
			for i := range strangers {
				if mayHold(filter, id(members+i)) {
					yes++
				}
			}
			if members >= leastBlock && yes > strangers/2000 {
				t.Errorf("%s: a filter of %d members says yes to %d of %d strangers", name, members, yes, strangers)
			}
		}
	}
}
