//go:build unix

package holdfast

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/crashtest/testrun"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// lostParts are the ways in which a disk that lied about a sync brings a file back.
var lostParts = map[string]func(whole []byte) []byte{
	"gone":  func([]byte) []byte { return nil },
	"empty": func([]byte) []byte { return []byte{} },
	"half":  func(whole []byte) []byte { return whole[:len(withoutPadding(whole))/2] },
	"zeros": func(whole []byte) []byte { return make([]byte, len(whole)) },
}

// No order of syncs helps where the disk says done and has not: then a file of the store
// is found missing, empty, cut short or full of zeros, which no crash alone can bring
// about. What that means, file by file, and that nothing else is lost by it: the file put
// back, all is there.
func TestLostFiles(t *testing.T) {
	t.Parallel()
	good := newOddStore(t)
	const stops, damages, harmless, stale = "stops", "damages", "harmless", "stale"
	for _, c := range []struct {
		name, path string
		does       map[string]string
	}{
		{"state", stateFile, map[string]string{"gone": stops, "empty": stops, "half": stops, "zeros": stops}},
		{"format", formatFile, map[string]string{"gone": stops, "empty": stops, "half": stops, "zeros": stops}},
		// A lock that says nothing readable says that its owner died: the operator recovers.
		{"lock", lockFile, map[string]string{"gone": stops, "empty": stale, "half": stale, "zeros": stale}},
		{"reserve", reserveFile, map[string]string{"gone": harmless, "empty": harmless, "half": harmless, "zeros": harmless}},
		{"spare", spareName(1), map[string]string{"gone": harmless, "empty": harmless, "half": harmless, "zeros": harmless}},
		{"objects", objectsDir, map[string]string{"gone": stops}},
		{"object", objectsDir + "/" + good.object, map[string]string{"gone": damages}},
		{"payload", objectsDir + "/" + good.object + "/" + payloadFile, map[string]string{"gone": damages, "empty": damages, "half": damages, "zeros": damages}},
		{"holders", holdersDir, map[string]string{"gone": stops}},
		{"holder", holdersDir + "/" + good.holder, map[string]string{"gone": harmless, "empty": harmless}},
	} {
		for how, does := range c.does {
			t.Run(c.name+"/"+how, func(t *testing.T) {
				dir, at := copyOf(t, good.dir)
				was := filepath.Join(filepath.Dir(dir), "was")
				if _, err := os.Lstat(at(c.path)); c.name == "spare" && os.IsNotExist(err) {
					skip(t, "names cannot be exchanged here: there is no spare")
				}
				mustDo(t, os.Rename(at(c.path), was))
				if how != "gone" {
					whole := mustRead(t, was)
					if c.name == "holder" {
						whole = []byte("it holds nothing")
					}
					mustDo(t, os.WriteFile(at(c.path), lostParts[how](whole), 0o600))
				}
				s, err := Open(t.Context(), dir, nil)
				var claimed queue.Claimed
				if err == nil {
					defer s.Close()
					if does == stale {
						refusal(t, "enqueue", second(s.Enqueue(t.Context(), "post", small("x"))), ErrStaleLock, "cannot be read")
						mustDo(t, second(s.Recover(t.Context())))
					}
					claimed, err = s.Claim(t.Context(), "mail", queue.ClaimOptions{Max: 9})
				}
				switch {
				case does == stops:
					refusal(t, "open and claim", err, ErrCorrupt, filepath.Base(c.path))
					mustDo(t, os.RemoveAll(at(c.path)), os.Rename(was, at(c.path)))
					mustVerify(t, dir)
					return
				case err != nil:
					t.Fatal(err)
				case does == damages:
					if len(claimed.Damaged) != 1 || claimed.Damaged[0].ID != "a" || len(claimed.Deliveries) != 1 || claimed.Deliveries[0].Receipt.ID != "b" {
						t.Fatalf("claimed %+v, want b, and a damaged", claimed)
					}
					failed, err := s.ShowFailed(t.Context(), "a", queue.FailedOptions{})
					if err != nil || !strings.Contains(failed.LastError, "damaged") {
						t.Fatalf("the evidence: %+v, %v", failed, err)
					}
					mustDo(t, os.RemoveAll(at(c.path)), os.Rename(was, at(c.path)))
					mustDo(t, s.Reprocess(t.Context(), "a", queue.ReprocessOptions{}))
					again := mustClaim(t, s, "mail", queue.ClaimOptions{})
					if len(again) != 1 || !bytes.Equal(again[0].Payload, small("a").Payload) {
						t.Fatalf("put back and reprocessed: %+v", again)
					}
				case len(claimed.Damaged) > 0 || len(claimed.Deliveries) != 2:
					t.Fatalf("claimed %+v, want a and b", claimed)
				}
				mustEnqueue(t, s, "post", small("y"))
				if c.name != "holder" {
					mustVerify(t, dir)
				}
			})
		}
	}
}

// Whole scenarios on a filesystem that says of every file that it has no bytes: the same
// as on one that does not. So no size is believed where it says less than there is. A size
// that lags, telling now more and now less, is not modelled: it would deceive only who
// reads as many bytes as it says, or takes an end of file before it for damage.
func TestSizesThatLie(t *testing.T) {
	t.Parallel()
	for _, c := range crashScenarios {
		t.Run(c.name, func(t *testing.T) {
			looks := c.looks(t)
			d := crashtest.NewDisk()
			d.SetSizeLies(true)
			c.make(t, d)
			s, err := Open(t.Context(), crashDir, crashOptions(d.Process()))
			mustDo(t, err)
			defer s.Close()
			r := receipts{}
			r.load(s)
			for i, step := range c.steps {
				if got := mustLook(t, s); got != looks[i] {
					t.Fatalf("before step %d: found\n%swant\n%s", i, got, looks[i])
				}
				if err := step(t.Context(), s, r); err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
			}
			if got := mustLook(t, s); got != looks[len(c.steps)] {
				t.Fatalf("found\n%swant\n%s", got, looks[len(c.steps)])
			}
			if report, err := s.Verify(t.Context(), VerifyOptions{}); err != nil || report.OK == c.damaged {
				t.Errorf("verify: %+v, %v", report, err)
			}
		})
	}
}

// A file of the store that is removed and made anew can have the same inode number: the
// lowest that is free. A state that is the same file by number, size and place and is not
// the same state is noticed, and so is a payload.
func TestReusedInodes(t *testing.T) {
	d, s := simStore(t, &Options{plain: true}) // else state.json is held open, and its number stays its own
	mustEnqueue(t, s, "mail", small("a"), small("b"))
	old := d.ReadRaw(inSim(stateFile))
	mustEnqueue(t, s, "mail", small("c"))

	number := func(path string) uint64 {
		t.Helper()
		info, err := d.Process().Stat(path)
		mustDo(t, err)
		return info.Identity.Ino
	}
	again := func(path string, data []byte) {
		t.Helper()
		was := number(path)
		for fill := inSim("..", "..", "fill"); ; { // until no lower number is free
			fill += "-"
			if d.WriteRaw(fill, nil); number(fill) > was {
				break
			}
		}
		d.Remove(path)
		d.WriteRaw(path, data)
		if is := number(path); is != was {
			t.Fatalf("%s was inode %d, is %d: the test shows nothing", path, was, is)
		}
	}
	state := d.ReadRaw(inSim(stateFile))
	again(inSim(stateFile), old)
	refusal(t, "status", second(s.Status(t.Context(), queue.StatusOptions{})), ErrReplaced, stateFile)
	again(inSim(stateFile), state)
	shown, err := s.Show(t.Context(), "mail", "c")
	mustDo(t, err)
	again(inSim(objectsDir, shown[0].Object, payloadFile), bytes.ToUpper(small("c").Payload))
	c, err := s.Claim(t.Context(), "mail", queue.ClaimOptions{Max: 9})
	if err != nil || len(c.Deliveries) != 2 || len(c.Damaged) != 1 || c.Damaged[0].ID != "c" {
		t.Errorf("claimed %+v, %v; want a and b, and c damaged", c, err)
	}
}

// The root is renamed away, and another store put in its place, before each operation of a
// call. The call works on the one or is refused; the other is never touched; and what was
// answered is true of the one that was.
func TestRootSwappedDuringACall(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"enqueue", "claim", "ack"} {
		c, err := crashScenarioOf(name)
		mustDo(t, err)
		looks := c.looks(t)[:2]
		t.Run(name, func(t *testing.T) {
			refused := 0
			for k := 1; ; k++ {
				d := crashtest.NewDisk()
				c.make(t, d)
				other := crashDir + "-other"
				theirs, err := Create(t.Context(), other, crashOptions(d.Process()))
				mustDo(t, err, theirs.Close())
				p, hand := d.Process(), d.Process()
				w := crashtest.Wrap(p, crashtest.Plan{})
				s, err := Open(t.Context(), crashDir, crashOptions(w))
				mustDo(t, err)
				r := receipts{}
				r.load(s)
				before := treeBelow(d, other)
				at, swapped := 0, false
				w.Arm(watch(func(fsguard.Op, string) {
					if at++; at == k {
						swapped = true
						data, err := hand.OpenRoot(filepath.Dir(crashDir))
						if err == nil {
							err = errors.Join(data.Rename(filepath.Base(crashDir), "moved"), data.Rename(filepath.Base(other), filepath.Base(crashDir)), data.Close())
						}
						if err != nil {
							t.Error(err)
						}
					}
				}))
				err = c.steps[0](t.Context(), s, r)
				mustDo(t, s.Close())
				if !swapped {
					mustDo(t, err)
					break
				}
				if after := treeBelow(d, crashDir); after != before {
					t.Fatalf("swapped before operation %d, the other store changed:\n%s\nwas\n%s", k, after, before)
				}
				moved, e := Open(t.Context(), filepath.Dir(crashDir)+"/moved", crashOptions(d.Process()))
				mustDo(t, e)
				got := mustLook(t, moved)
				mustDo(t, moved.Close())
				switch {
				case err == nil && got != looks[1], errors.Is(err, ErrReplaced) && got != looks[0]:
					t.Fatalf("swapped before operation %d: answered %v, found\n%s", k, err, got)
				case err != nil && !errors.Is(err, ErrReplaced):
					t.Fatalf("swapped before operation %d: %v, want %v", k, err, ErrReplaced)
				case err != nil:
					refused++
				}
			}
			if refused < 5 {
				t.Errorf("refused %d times: the test shows little", refused)
			}
		})
	}
}

// treeBelow is what stands below dir, by names relative to it.
func treeBelow(d *crashtest.Disk, dir string) string {
	var b strings.Builder
	for line := range strings.Lines(d.Tree()) {
		if rest, ok := strings.CutPrefix(line, dir+"/"); ok {
			b.WriteString(rest)
		}
	}
	return b.String()
}

// Thousands of foreign files in objects/ cost looks, claims and commits nothing: the
// operations are the same as without them. Only who asks for orphans lists them.
func TestObjectsFullOfForeignFiles(t *testing.T) {
	t.Parallel()
	count := func(foreign int) (ops []int) {
		o, w := watched(t)
		dir := filepath.Join(t.TempDir(), "store")
		set := ownHolders(&o)
		defer set.die()
		s, err := Create(t.Context(), dir, o)
		mustDo(t, err)
		defer s.Close()
		for i := range foreign {
			mustDo(t, os.WriteFile(filepath.Join(dir, namespaceDir, objectsDir, fmt.Sprintf("IMG_%05d.JPG", i)), nil, 0o600))
		}
		mustEnqueue(t, s, "mail", smalls(3)...)
		mustClaim(t, s, "mail", queue.ClaimOptions{}) // the process has its holder
		for _, do := range []func() error{
			func() error { return second(s.Enqueue(t.Context(), "mail", small("x"))) },
			func() error { return second(s.Claim(t.Context(), "mail", queue.ClaimOptions{})) },
			func() error { return second(s.Status(t.Context(), queue.StatusOptions{})) },
			func() error { return second(s.Peek(t.Context(), "mail", 1)) },
		} {
			w.Arm(crashtest.Plan{})
			mustDo(t, do())
			ops = append(ops, w.Count())
		}
		if w.Count(fsguard.OpReadDir) > 0 {
			t.Error("a look without orphans listed a directory")
		}
		if report, err := s.Verify(t.Context(), VerifyOptions{}); err != nil || !report.OK {
			t.Errorf("verify beside %d foreign files: %+v, %v", foreign, report, err)
		}
		return ops
	}
	thousands := 1
	if testrun.Thorough() && !raceDetector() {
		thousands = 20
	}
	if few, many := fmt.Sprint(count(0)), fmt.Sprint(count(1000*thousands)); few != many {
		t.Errorf("operations of enqueue, claim, status and peek: %s, with foreign files %s", few, many)
	}
}
