//go:build unix

package crashtest

import (
	"math/rand/v2"
	"strings"
)

// Over content that was durable, a disk writes what is new sector by sector in any order.
// The choice for that is m and one digit per piece, oldest write first: 1 if it is new.
// There is such a choice from three pieces on: of two, head and tail are all mixtures.

const (
	sector     = 512 // what a disk writes wholly or not at all
	mostPieces = 64  // of one write; with more, pieces are larger
	fewPieces  = 5   // are tried in every combination; with more, images are sampled
)

// pieces cuts the writes that are not durable at the sectors of the file. There are none
// where nothing was durable, or so few that head and tail are all their mixtures.
func (n *inode) pieces() (list []write) {
	if len(n.base) == 0 {
		return nil
	}
	for _, w := range n.writes {
		if w.fate == settled {
			continue
		}
		size := sector
		for len(w.data) > size*mostPieces {
			size *= 2
		}
		for off, data := w.off, w.data; len(data) > 0; {
			length := min(size-off%size, len(data))
			list = append(list, write{off: off, data: data[:length]})
			off, data = off+length, data[length:]
		}
	}
	if len(list) < 3 {
		return nil
	}
	return list
}

// mixed is the content of n of which the pieces survive that digits says. What was synced
// after one of them lies over it.
func (n *inode) mixed(digits string) []byte {
	out, pieces := n.base, n.pieces()
	for _, w := range n.writes {
		if w.fate == settled {
			out = w.over(out)
			continue
		}
		for left := len(w.data); left > 0; pieces, digits = pieces[1:], digits[1:] {
			if digits[0] == '1' {
				out = pieces[0].over(out)
			}
			left -= len(pieces[0].data)
		}
	}
	return out
}

// mixtures lists those that every sample has: every second piece, and the middle one alone
// and lost alone.
func (n *inode) mixtures() []string {
	count := len(n.pieces())
	if count == 0 {
		return nil
	}
	half := strings.Repeat("01", count/2+1)
	middle := strings.Repeat("0", count/2) + "1" + strings.Repeat("0", count-count/2-1)
	return []string{
		"m" + half[:count], "m" + half[1:count+1], "m" + middle,
		"m" + strings.NewReplacer("0", "1", "1", "0").Replace(middle),
	}
}

// anyMixture draws one.
func anyMixture(r *rand.Rand, count int) string {
	digits := []byte{'m'}
	for range count {
		digits = append(digits, '0'+byte(r.IntN(2)))
	}
	return string(digits)
}
