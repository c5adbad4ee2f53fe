//go:build unix

package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionLine is what the Go tool recorded when it built this program.
type versionLine struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from a changed checkout
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func (a *app) versionCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := buildVersion()
			if a.json {
				a.printJSON(v)
				return nil
			}
			a.printf("holdfast %s", v.Version)
			if v.Commit != "" {
				a.printf(" (commit %s)", v.Commit)
			}
			a.printf(", %s, %s/%s\n", v.Go, v.OS, v.Arch)
			return nil
		},
	}
}

func buildVersion() versionLine {
	v := versionLine{Version: "unknown", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Version = info.Main.Version
	if v.Version == "" {
		v.Version = "(devel)"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
