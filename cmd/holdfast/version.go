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
	Time     string `json:"commit_time,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from a changed checkout
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	Cgo      bool   `json:"cgo"`
	Trimmed  bool   `json:"trimpath"` // names no directory of the machine that built it
}

func (a *app) versionCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Long: `Print the version of this program, the commit that it was built from and whether the
checkout had other changes, the Go release and the system. A report of a bug begins
with it. A program that was built without git, or by "go run", knows no commit.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := versionOf(debug.ReadBuildInfo())
			if a.json {
				a.printJSON(v)
				return nil
			}
			a.printf("%s\n", v)
			return nil
		},
	}
}

// String gives the one line for people.
func (v versionLine) String() string {
	s := "holdfast " + v.Version
	if v.Commit != "" {
		s += " (commit " + v.Commit
		if v.Time != "" {
			s += " of " + v.Time
		}
		if v.Modified {
			s += ", with changes"
		}
		s += ")"
	}
	return s + ", " + v.Go + ", " + v.OS + "/" + v.Arch
}

func versionOf(info *debug.BuildInfo, known bool) versionLine {
	v := versionLine{Version: "unknown", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if !known {
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
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		case "CGO_ENABLED":
			v.Cgo = s.Value == "1"
		case "-trimpath":
			v.Trimmed = s.Value == "true"
		}
	}
	return v
}
