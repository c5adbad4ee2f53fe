//go:build unix

package main

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	system := runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH
	settings := func(pairs ...string) []debug.BuildSetting {
		var all []debug.BuildSetting
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, debug.BuildSetting{Key: pairs[i], Value: pairs[i+1]})
		}
		return all
	}
	for _, c := range []struct {
		name, version string
		settings      []debug.BuildSetting
		known         bool
		want          string
		trimmed, cgo  bool
	}{
		{name: "no build info", want: "holdfast unknown, " + system},
		{name: "go run", known: true, want: "holdfast (devel), " + system},
		{name: "a release", version: "v1.2.3", known: true, trimmed: true,
			settings: settings("vcs.revision", "c0ffee", "vcs.time", "2026-11-30T16:00:00Z", "vcs.modified", "false", "CGO_ENABLED", "0", "-trimpath", "true"),
			want:     "holdfast v1.2.3 (commit c0ffee of 2026-11-30T16:00:00Z), " + system},
		{name: "a changed checkout", version: "v0.0.0-1+dirty", known: true, cgo: true,
			settings: settings("vcs.revision", "c0ffee", "vcs.modified", "true", "CGO_ENABLED", "1"),
			want:     "holdfast v0.0.0-1+dirty (commit c0ffee, with changes), " + system},
	} {
		t.Run(c.name, func(t *testing.T) {
			info := &debug.BuildInfo{Main: debug.Module{Version: c.version}, Settings: c.settings}
			v := versionOf(info, c.known)
			if got := v.String(); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if v.Trimmed != c.trimmed || v.Cgo != c.cgo {
				t.Errorf("trimpath %v, cgo %v; want %v, %v", v.Trimmed, v.Cgo, c.trimmed, c.cgo)
			}
		})
	}
}
