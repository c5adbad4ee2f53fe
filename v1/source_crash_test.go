//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
)

// Cut off anywhere, the marker is the old one or the new one, and the new one once that
// was acknowledged.
func TestSourceMarkerCrash(t *testing.T) {
	for name, c := range map[string]struct{ old, next string }{
		"the first":    {"", "open"},
		"another":      {"open", "closed"},
		"taken away":   {"open", ""},
		"none to take": {"", ""},
	} {
		for _, dir := range []string{"/data/q", "/data/f"} {
			t.Run(name+" in "+dir, func(t *testing.T) { sourceMarkerCrash(t, dir, c.old, c.next) })
		}
	}
}

// sourceMarkerCrash cuts off the change of the marker of one of the two directories.
func sourceMarkerCrash(t *testing.T, dir, old, next string) {
	open := func(fs fsguard.FS) (*Source, error) {
		return OpenSource("/data/q", &Options{FailedDir: "/data/f", fs: fs})
	}
	set, remove, read := (*Source).SetMarker, (*Source).RemoveMarker, (*Source).Marker
	if dir == "/data/f" {
		set, remove, read = (*Source).SetFailedMarker, (*Source).RemoveFailedMarker, (*Source).FailedMarker
	}
	sc := crashtest.Scenario{
		Name: t.Name(),
		Setup: func(t testing.TB, d *crashtest.Disk) {
			d.MkdirAll("/data/q")
			d.MkdirAll("/data/f")
			if old != "" {
				d.WriteRaw(dir+"/"+markerFile, []byte(old))
			}
		},
		Run: func(fs fsguard.FS, j *crashtest.Journal) {
			x, err := open(fs)
			if err != nil {
				return
			}
			defer x.Close()
			if next == "" {
				err = remove(x)
			} else {
				err = set(x, []byte(next))
			}
			if err == nil {
				j.Ack("marker", next)
			}
		},
		Check: func(t testing.TB, fs fsguard.FS, j *crashtest.Journal) error {
			x, err := open(fs)
			if err != nil {
				return err
			}
			defer x.Close()
			got, there, err := read(x)
			if err != nil {
				return err
			}
			_, acked := j.Last("marker", crashtest.Acked)
			if string(got) != next && (acked || string(got) != old) || there != (len(got) > 0) {
				return fmt.Errorf("the marker is %q (%v), acknowledged %v", got, there, acked)
			}
			return nil
		},
	}
	crashtest.Explore(t, sc, crashtest.Options{})
	crashtest.ExploreErrors(t, sc, crashtest.Options{})
}

// Recovery that is itself cut off leaves what the next one finishes.
func TestSourceRecoverCrash(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(d *crashtest.Disk)
		want string
	}{
		"a newer entry in a record": {func(d *crashtest.Disk) {
			d.MkdirAll("/data/q/" + retirementsDir + "/a.json")
			d.WriteRaw("/data/q/a.processing", []byte("1"))
			d.WriteRaw("/data/q/"+retirementsDir+"/a.json/entry", []byte("2"))
		}, "claimed=1 pending=2"},
		"a claim with two names": {func(d *crashtest.Disk) {
			d.WriteRaw("/data/q/a.processing", []byte("1"))
			d.HardLink("/data/q/a.processing", "/data/q/a.json")
		}, "claimed=1"},
		"a quarantine with two names": {func(d *crashtest.Disk) {
			d.WriteRaw("/data/q/a.processing", []byte("1"))
			d.HardLink("/data/q/a.processing", "/data/f/a.json")
		}, "failed=1"},
	} {
		for _, route := range []Route{HardLink, RenameNoReplace} {
			t.Run(name+" by "+route.String(), func(t *testing.T) {
				recover := func(fs fsguard.FS) (string, error) {
					x, err := OpenSource("/data/q", &Options{FailedDir: "/data/f", ClaimBy: route, fs: fs})
					if err != nil {
						return "", err
					}
					defer x.Close()
					x.s.link.proven = true
					// The dead one's lock: the operator names it.
					if _, err := x.RemoveLock(namesOf("a").lock); err != nil && !errors.Is(err, ErrNotFound) {
						return "", err
					}
					if err := errors.Join(x.Recover(context.Background(), "a"), x.Sync()); err != nil {
						return "", err
					}
					v, err := x.Survey()
					if err != nil || len(v.Records) > 0 {
						return "", errors.Join(err, fmt.Errorf("records %v", v.Records))
					}
					var found []string
					for _, e := range v.Entries {
						text, err := x.Read(e)
						if err != nil {
							return "", err
						}
						found = append(found, e.State.String()+"="+string(text))
					}
					return strings.Join(found, " "), nil
				}
				sc := crashtest.Scenario{
					Name:  t.Name(),
					Setup: func(t testing.TB, d *crashtest.Disk) { d.MkdirAll("/data/q"); d.MkdirAll("/data/f"); c.set(d) },
					Run: func(fs fsguard.FS, j *crashtest.Journal) {
						if _, err := recover(fs); err == nil {
							j.Ack("recovered", nil)
						}
					},
					Check: func(t testing.TB, fs fsguard.FS, _ *crashtest.Journal) error {
						got, err := recover(fs)
						if err == nil && got != c.want {
							err = fmt.Errorf("recovered to %q, want %q", got, c.want)
						}
						return err
					},
				}
				crashtest.Explore(t, sc, crashtest.Options{MaxImages: 32, AfterCheck: 4})
			})
		}
	}
}
