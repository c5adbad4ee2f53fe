//go:build unix

package fsguard

import (
	"math"
	"testing"
)

func TestSpace(t *testing.T) { each(t, testSpace) }

func testSpace(t *testing.T, fsys FS) {
	d, _ := tempDir(t, fsys)
	space := must(d.Space())(t)
	if space.Type == "" {
		t.Error("no type")
	}
	if space.Network {
		t.Errorf("temporary files are on a network filesystem: %+v", space)
	}
	if space.Free < 1<<20 || space.Free == math.MaxUint64 {
		t.Errorf("got %d bytes free", space.Free)
	}
}

func TestFreeBytes(t *testing.T) {
	tests := []struct{ blocks, size, want uint64 }{
		{0, 4096, 0},
		{10, 4096, 40960},
		{1 << 51, 4096, 1 << 63},
		{1 << 52, 4096, math.MaxUint64},
		{math.MaxUint64, math.MaxUint64, math.MaxUint64},
	}
	for _, tt := range tests {
		if got := freeBytes(tt.blocks, tt.size); got != tt.want {
			t.Errorf("freeBytes(%d, %d): got %d, want %d", tt.blocks, tt.size, got, tt.want)
		}
	}
}
