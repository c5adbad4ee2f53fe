//go:build unix

package fsguard

import (
	"math"
	"math/bits"
)

// Space is fstatfs of the pinned directory.
func (d *pinned) Space() (space Space, err error) {
	err = d.control(func(fd int) error {
		space, err = fstatfs(fd)
		return err
	})
	return space, wrap(OpSpace, d.name, err)
}

// freeBytes multiplies without overflow: FUSE servers make numbers up.
func freeBytes(blocks, size uint64) uint64 {
	high, low := bits.Mul64(blocks, size)
	if high != 0 {
		return math.MaxUint64
	}
	return low
}
