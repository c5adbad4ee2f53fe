//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/holdfast/queue"
)

// An oddStore is a store with three messages, each in an object of its own: "held" is
// claimed by a process that is dead, "a" and "b" wait.
type oddStore struct {
	dir            string
	object, holder string // of "a", of the dead
}

func newOddStore(t *testing.T) oddStore {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "good")
	var o *Options
	set := ownHolders(&o)
	s, err := Create(t.Context(), dir, o)
	mustDo(t, err)
	mustEnqueue(t, s, "mail", small("held"))
	mustClaim(t, s, "mail", queue.ClaimOptions{Lease: time.Hour})
	mustEnqueue(t, s, "mail", small("a"))
	mustEnqueue(t, s, "mail", small("b"))
	shown, err := s.Show(t.Context(), "mail", "a")
	mustDo(t, err, s.Close())
	set.die()
	holders, err := os.ReadDir(filepath.Join(dir, namespaceDir, holdersDir))
	if err != nil || len(holders) != 1 {
		t.Fatal(holders, err)
	}
	return oddStore{dir, shown[0].Object, holders[0].Name()}
}

// oddPlaces are where something else stands than should: which thing it is makes no
// difference, but for a second link to a file.
var oddPlaces = []struct {
	name string
	dir  bool
	path func(o oddStore) string // in the namespace
	does string                  // what became of each call, in the order of oddWays
	link string                  // the same for a second link
}{
	// A root is reached by any path: through a symlink to it all goes on, see oddRoot.
	{"root", true, under(".."), "replaced replaced unsafe unsafe unsafe unsafe unsafe replaced replaced replaced", ""},
	{"namespace", true, under(""), "replaced replaced unsafe unsafe unsafe unsafe unsafe replaced replaced replaced", ""},
	{"format", false, under(formatFile), "replaced replaced unsafe unsafe unsafe exists exists replaced replaced replaced",
		"unsafe unsafe unsafe unsafe unsafe exists exists unsafe unsafe unsafe"},
	{"state", false, under(stateFile), "unsafe unsafe unsafe unsafe unsafe exists exists unsafe unsafe unsafe",
		"unsafe unsafe unsafe unsafe unsafe exists exists unsafe unsafe unsafe"},
	// The second call of an open store has opened all anew.
	{"lock", false, under(lockFile), "replaced unsafe unsafe unsafe unsafe exists exists replaced unsafe unsafe",
		"unsafe unsafe unsafe unsafe unsafe exists exists unsafe unsafe unsafe"},
	// What settles and what only looks does not need it.
	{"reserve", false, under(reserveFile), "done done fault done done exists exists done unsafe unsafe",
		"done done fault done done exists exists done unsafe unsafe"},
	{"objects", true, under(objectsDir), "replaced replaced unsafe unsafe unsafe exists exists replaced replaced replaced", ""},
	// One message is damaged, the others go on. A second link is no damage: it can go again.
	{"object", true, func(o oddStore) string { return objectsDir + "/" + o.object },
		"done damage fault done done exists exists done done damage", ""},
	{"payload", false, func(o oddStore) string { return objectsDir + "/" + o.object + "/" + payloadFile },
		"done damage fault done done exists exists done done damage", "done unsafe fault done done exists exists done done unsafe"},
	// Nobody is proven dead by it, and no claim can name a holder in it.
	{"holders", true, under(holdersDir), "done done fault done done exists exists no-proof done unsafe", ""},
	{"holder", false, func(o oddStore) string { return holdersDir + "/" + o.holder },
		"done done fault done done exists exists no-proof done done", "done done fault done done exists exists no-proof done done"},
}

func under(name string) func(oddStore) string { return func(oddStore) string { return name } }

// oddRoot is what became of each call where the root is a symlink to the root.
const oddRoot = "done done done done done exists exists done done done"

// oddThings are what stands there. The thing that should is beside the root.
var oddThings = map[string]func(path, was string) error{
	"symlink":   symlinkTo,
	"FIFO":      fifoInstead,
	"device":    deviceInstead,
	"socket":    socketInstead,
	"directory": dirInstead,  // for a file
	"file":      fileInstead, // for a directory
}

// deviceInstead makes /dev/null's like: to open it would succeed, and to write to it too.
func deviceInstead(path, _ string) error {
	return makeNode(unix.Mknod, path)
}

// makeNode knows both types that systems number devices by.
func makeNode[D int | uint64](mknod func(string, uint32, D) error, path string) error {
	return mknod(path, unix.S_IFCHR|0o600, D(unix.Mkdev(1, 3)))
}

// oddWays are the calls that meet it: by a store that was open before, for work and for
// looking, and by all ways in.
var oddWays = []struct {
	name string
	do   func(ctx context.Context, dir string, s, look *Store) error
}{
	{"status", func(ctx context.Context, _ string, _, look *Store) error {
		return second(look.Status(ctx, queue.StatusOptions{Orphans: true}))
	}},
	{"show", func(ctx context.Context, _ string, _, look *Store) error {
		shown, err := look.Show(ctx, "mail", "a")
		if err == nil && strings.Contains(shown[0].LastError, "damaged") {
			err = errDamaged
		}
		return err
	}},
	{"verify", func(ctx context.Context, dir string, _, _ *Store) error {
		r, err := VerifyDir(ctx, dir, nil, VerifyOptions{})
		if err == nil && !r.OK {
			err = fmt.Errorf("%w: %+v", errFault, r.Faults)
		}
		return err
	}},
	{"open", func(ctx context.Context, dir string, _, _ *Store) error { return closing(Open(ctx, dir, nil)) }},
	{"open or create", func(ctx context.Context, dir string, _, _ *Store) error { return closing(OpenOrCreate(ctx, dir, nil)) }},
	{"create", func(ctx context.Context, dir string, _, _ *Store) error { return closing(Create(ctx, dir, nil)) }},
	{"resume", func(ctx context.Context, dir string, _, _ *Store) error { return closing(ResumeCreate(ctx, dir, nil)) }},
	{"reap", func(ctx context.Context, _ string, s, _ *Store) error {
		reaped, err := s.Reap(ctx, queue.ReapOptions{})
		if err == nil && len(reaped) == 0 {
			err = errNoProof
		}
		return err
	}},
	{"enqueue", func(ctx context.Context, _ string, s, _ *Store) error {
		return second(s.Enqueue(ctx, "post", queue.Message{Payload: []byte("1")}))
	}},
	{"claim", func(ctx context.Context, _ string, s, _ *Store) error {
		c, err := s.Claim(ctx, "mail", queue.ClaimOptions{Max: 9})
		if err == nil && len(c.Damaged) > 0 {
			err = errDamaged
		}
		return err
	}},
}

var (
	errDamaged = errors.New("one payload is damaged")
	errFault   = errors.New("verify found a fault")
	errNoProof = errors.New("no proof of death")
)

func closing(s *Store, err error) error {
	if err == nil {
		err = s.Close()
	}
	return err
}

// oddWord says in a word what came of a call.
func oddWord(err error) string {
	for word, is := range map[string]error{
		"unsafe": ErrUnsafe, "corrupt": ErrCorrupt, "replaced": ErrReplaced, "no-store": ErrNoStore, "exists": ErrExists,
		"not-empty": ErrNotEmpty, "interrupted": ErrInterruptedInit, "damage": errDamaged, "fault": errFault, "no-proof": errNoProof,
	} {
		if errors.Is(err, is) {
			return word
		}
	}
	if err != nil {
		return "untyped(" + err.Error() + ")"
	}
	return "done"
}

func TestOddPlaces(t *testing.T) {
	t.Parallel()
	good := newOddStore(t)
	for _, place := range oddPlaces {
		for _, thing := range slices.Sorted(maps.Keys(oddThings)) {
			if thing == "directory" && place.dir || thing == "file" && !place.dir {
				continue
			}
			t.Run(place.name+"/"+thing, func(t *testing.T) {
				want := place.does
				if place.name == "root" && thing == "symlink" {
					want = oddRoot
				}
				checkOdd(t, good, place.path(good), oddThings[thing], want)
			})
		}
	}
}

// TestOddPlacesHardLink is the same with a second link to each file. (It makes hard links,
// which some sandboxes kill for: kept apart by its name.)
func TestOddPlacesHardLink(t *testing.T) {
	t.Parallel()
	good := newOddStore(t)
	link := func(path, was string) error { return os.Link(was, path) }
	for _, place := range oddPlaces {
		if !place.dir {
			t.Run(place.name, func(t *testing.T) {
				checkOdd(t, good, place.path(good), link, place.link)
			})
		}
	}
}

func checkOdd(t *testing.T, good oddStore, path string, thing func(path, was string) error, want string) {
	t.Helper()
	dir, at := copyOf(t, good.dir)
	home := filepath.Dir(dir)
	var o *Options
	set := ownHolders(&o)
	defer set.die()
	s, err := Open(t.Context(), dir, o)
	mustDo(t, err)
	defer s.Close()
	look, err := OpenReadOnly(t.Context(), dir, nil)
	mustDo(t, err)
	defer look.Close()

	was, odd := filepath.Join(home, "was"), at(path)
	mustDo(t, os.Rename(odd, was))
	if err := thing(odd, was); errors.Is(err, syscall.EPERM) {
		skip(t, "a device node needs root")
	} else if err != nil {
		t.Fatal(err)
	}
	victim, planted := treeOf(t, was), treeOfOne(t, odd)
	var got []string
	for _, way := range oddWays {
		before := treeOf(t, home)
		err := way.do(t.Context(), dir, s, look)
		word := oddWord(err)
		got = append(got, word)
		switch word {
		case "done", "damage", "no-proof":
		case "fault":
			unchanged(t, home, before)
		default:
			if strings.Contains("enqueue claim", way.name) { // they may have been on their way
				sameContent(t, before, treeOf(t, home))
			} else {
				unchanged(t, home, before)
			}
			if name := filepath.Base(odd); !strings.Contains(err.Error(), name) && word != "exists" && word != "not-empty" {
				t.Errorf("%s: %v; want %s named", way.name, err, name)
			}
		}
		if want != oddRoot {
			unchanged(t, was, victim)
		}
	}
	if after := treeOfOne(t, odd); after != planted {
		t.Errorf("what stood there was %s, is %s", planted, after)
	}
	if got := strings.Join(got, " "); got != want {
		t.Errorf("the calls did\n%s, want\n%s", got, want)
	}
}

// sameContent is unchanged for a call that had begun to write when it was refused: it takes
// back what it wrote, which shows in times. The file that stands for this process may stay.
func sameContent(t *testing.T, before, after map[string]string) {
	t.Helper()
	for path, was := range before {
		timeless := regexp.MustCompile(`, size \d+, mtime \d+`)
		if was, is := timeless.ReplaceAllString(was, ""), timeless.ReplaceAllString(after[path], ""); was != is {
			t.Errorf("%s changed:\n was %s\n  is %q", path, was, is)
		}
	}
	for path := range after {
		if _, ok := before[path]; !ok && filepath.Base(filepath.Dir(path)) != holdersDir {
			t.Errorf("%s is new", path)
		}
	}
}

// treeOfOne tells of one thing what a change would change; of a directory not its times.
func treeOfOne(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Lstat(path)
	mustDo(t, err)
	what := fmt.Sprint(info.Mode(), info.Sys().(*syscall.Stat_t).Ino)
	if info.Mode()&fs.ModeType == 0 {
		what += fmt.Sprintf("%x", mustRead(t, path))
	}
	return what
}
