//go:build unix

package doctor

import (
	"errors"
	"slices"
	"testing"
)

func TestMountOf(t *testing.T) {
	const list = `21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
30 21 259:9 / /data rw,nosuid - f2fs /dev/block/dm-9 rw,fsync_mode=nobarrier,rw
31 30 0:40 / /data/media/0\040x rw - fuse /dev/fuse rw,user_id=0
32 30 0:41 / /data/one rw - tmpfs none rw
33 30 0:42 / /data/one ro - ext4 /dev/over rw
34 x bad line
35 21 0:43 / /opt rw master:1 propagate_from:2 - overlay overlay rw,volatile
`
	for path, want := range map[string]Mount{
		"/":                   {"/", "ext4", "/dev/sda1", []string{"rw", "relatime", "errors=remount-ro"}},
		"/database":           {"/", "ext4", "/dev/sda1", []string{"rw", "relatime", "errors=remount-ro"}},
		"/data":               {"/data", "f2fs", "/dev/block/dm-9", []string{"rw", "nosuid", "fsync_mode=nobarrier"}},
		"/data/data/x/files":  {"/data", "f2fs", "/dev/block/dm-9", []string{"rw", "nosuid", "fsync_mode=nobarrier"}},
		"/data/media/0 x/y":   {"/data/media/0 x", "fuse", "/dev/fuse", []string{"rw", "user_id=0"}},
		"/data/one/z":         {"/data/one", "ext4", "/dev/over", []string{"ro", "rw"}}, // the later hides the earlier
		"/opt/holdfast/store": {"/opt", "overlay", "overlay", []string{"rw", "volatile"}},
	} {
		got, err := mountOf(list, path)
		if err != nil || got.Point != want.Point || got.Type != want.Type || got.Source != want.Source || !slices.Equal(got.Options, want.Options) {
			t.Errorf("%s: %+v, %v; want %+v", path, got, err, want)
		}
	}
	for _, none := range []string{"", "garbage\n", "30 21 259:9 / /data rw - f2fs x rw\n"} {
		if got, err := mountOf(none, "/home"); !errors.Is(err, errNoMount) {
			t.Errorf("%q: %+v, %v", none, got, err)
		}
	}
	for in, want := range map[string]string{`a\040b`: "a b", `a\134b`: `a\b`, `a\04`: `a\04`, `\999`: `\999`, "": ""} {
		if got := unescape(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
