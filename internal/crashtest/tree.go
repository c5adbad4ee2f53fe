//go:build unix

package crashtest

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Tree prints what processes see, one line per name in order: directories end in
// "/", files show their content, long ones shortened.
func (d *Disk) Tree() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var b strings.Builder
	d.root.print(&b, "")
	return b.String()
}

func (n *inode) print(b *strings.Builder, path string) {
	for _, name := range slices.Sorted(maps.Keys(n.names)) {
		child := n.names[name]
		at := path + "/" + name
		switch {
		case child.mode.IsDir():
			fmt.Fprintln(b, at+"/")
			child.print(b, at)
		case child.mode&fs.ModeSymlink != 0:
			fmt.Fprintln(b, at, "->", child.target)
		case !child.mode.IsRegular():
			fmt.Fprintln(b, at, child.mode)
		case len(child.data) > 200:
			fmt.Fprintf(b, "%s %q… (%d bytes)\n", at, child.data[:200], len(child.data))
		default:
			fmt.Fprintf(b, "%s %q\n", at, child.data)
		}
	}
}
