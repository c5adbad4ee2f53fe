//go:build unix

package crashtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"example.com/holdfast/internal/fsguard"
)

// sectors shows of each sector whether it is all old (o), all new (n) or torn (t).
func sectors(data []byte) (out string) {
	for part := range slices.Chunk(data, sector) {
		switch text := string(part); {
		case text == strings.Repeat("o", len(part)):
			out += "o"
		case text == strings.Repeat("n", len(part)):
			out += "n"
		default:
			out += "t"
		}
	}
	return out
}

// overwritten gives the disk on which a durable file of so many sectors was written over.
func overwritten(t *testing.T, count int, write func(f fsguard.File)) *Disk {
	t.Helper()
	d, _, dir := store(t)
	d.WriteRaw("/store/state", []byte(strings.Repeat("o", count*sector)))
	write(must(dir.OpenWrite("state"))(t))
	return d
}

// An overwrite of few sectors leaves every mixture; one of many leaves, besides the old,
// the new, a head and a tail, what only a mixture is, and more with each image.
func TestOverwritesAreMixed(t *testing.T) {
	for _, count := range []int{1, 2, 3, 5, 9, 100} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			text := []byte(strings.Repeat("n", count*sector))
			d := overwritten(t, count, func(f fsguard.File) { must(f.WriteAt(text, 0))(t) })
			seen := map[string]bool{}
			for img := range d.Images(90, 1) {
				seen[sectors(img.ReadRaw("/store/state"))] = true
				if again := must(d.Image(img.Desc()))(t); again.Tree() != img.Tree() || img.Story() == "" {
					t.Errorf("image %s comes back as another", img.Desc())
				}
			}
			want := []string{strings.Repeat("o", count), strings.Repeat("n", count)}
			if count > 1 {
				want = append(want, "t"+strings.Repeat("o", count-1), "t"+strings.Repeat("n", count-1))
			}
			for bits := range 1 << count {
				if 3 <= count && count <= fewPieces {
					want = append(want, strings.NewReplacer("0", "o", "1", "n").Replace(fmt.Sprintf("%0*b", count, bits)))
				}
			}
			for _, w := range want {
				if !seen[w] {
					t.Errorf("no image is %s", w)
				}
			}
			mixed := 0
			for s := range seen {
				if strings.Count(s, "on")+strings.Count(s, "no") > 1 {
					mixed++
				}
			}
			if count > fewPieces && mixed < 30 || count < 3 && mixed > 0 {
				t.Errorf("%d mixtures among %d images", mixed, len(seen))
			}
		})
	}
}

// Writes are pieces each for itself, what was synced stays, and a file that had nothing
// durable is only torn.
func TestMixturesOfWrites(t *testing.T) {
	at := func(t *testing.T, f fsguard.File, i int) { must(f.WriteAt([]byte("n"), int64(i)))(t) }
	d := overwritten(t, 1, func(f fsguard.File) {
		at(t, f, 0)
		ok(t, f.SyncData())
		for i := 1; i < 4; i++ {
			at(t, f, i)
		}
	})
	seen := map[string]bool{}
	for img := range d.Images(1000, 0) {
		seen[string(img.ReadRaw("/store/state")[:4])] = true
	}
	if len(seen) != 8 || !seen["nono"] || !seen["nnon"] {
		t.Errorf("got %v, want all eight of n???", seen)
	}
	d, _, dir := store(t)
	must(must(dir.Create("new"))(t).WriteAt(make([]byte, 9*sector), 0))(t)
	for img := range d.Images(1000, 0) {
		if strings.Contains(img.Desc(), ":m") {
			t.Errorf("image %s is mixed", img.Desc())
		}
	}
}
