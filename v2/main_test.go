//go:build unix

package holdfast

import (
	"bytes"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/crashtest/reexec"
	"example.com/holdfast/internal/crashtest/testrun"
	"example.com/holdfast/internal/fsguard"
)

// roles are the parts that this binary plays in a process of its own. Each file adds its
// own in an init.
var roles = map[string]func(args []string) error{"probe the lock": probeLock}

func TestMain(m *testing.M) {
	reexec.Main(m, roles, func() { crashtest.PrintExplored(os.Stdout) }, bed.Remove)
}

type process = reexec.Process

var (
	start    = reexec.Start
	killedBy = reexec.KilledBy

	skip         = testrun.Skip
	raceDetector = testrun.RaceDetector
)

// alone leaves a test out under the race detector: one goroutine does all of it, slowly
// there, and there is nothing to race.
func alone(t testing.TB) {
	t.Helper()
	if raceDetector() {
		t.Skip("has no two goroutines: runs without the race detector")
	}
}

// seedFlag replays a random run.
var seedFlag = flag.Uint64("store.seed", 0, "seed of the random runs on the real filesystem; 0: a new one")

// newSeed gives the seed of a random run and prints it.
func newSeed(t *testing.T) uint64 {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("replay with -run '^%s$' -store.seed=%d", t.Name(), seed)
	return seed
}

// until waits for something inside this process that no channel tells. It ends
// with the test's deadline.
func until(cond func() bool) {
	for !cond() {
		runtime.Gosched()
	}
}

// outside is the transfer lock of a store, taken by somebody who is not a Store.
type outside struct{ file *os.File }

func openLock(t testing.TB, dir string) outside {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, namespaceDir, lockFile), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return outside{f}
}

func (o outside) lock(t testing.TB) {
	t.Helper()
	if err := unix.Flock(int(o.file.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}

func (o outside) unlock(t testing.TB) {
	t.Helper()
	if err := unix.Flock(int(o.file.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
}

func (o outside) record(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(o.file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// watch gives a plan that changes nothing and tells each operation before it is
// done. Nothing else passes the wrapper while told runs.
func watch(told func(op fsguard.Op, path string)) crashtest.Plan {
	return crashtest.FailMatching(func(op fsguard.Op, path string) bool {
		told(op, path)
		return false
	}, nil, 0)
}

// The paths of the store's files as a wrapper tells them.
var (
	statePath = filepath.Join(namespaceDir, stateFile)
	lockPath  = filepath.Join(namespaceDir, lockFile)
	turnPath  = filepath.Join(namespaceDir, formatFile)
)

// isCommitPoint reports whether an operation makes another file state.json: an exchange,
// or the rename of a plain replacement.
func isCommitPoint(op fsguard.Op, path string) bool {
	return (op == fsguard.OpExchange || op == fsguard.OpRename) && strings.HasSuffix(path, statePath)
}

// isStateSync reports whether an operation makes a state durable before its commit point.
func isStateSync(op fsguard.Op, path string) bool {
	return op == fsguard.OpSyncData && isSparePath(path) ||
		op == fsguard.OpSync && strings.Contains(path, stateTempPrefix)
}

// resummed gives the text of a state, changed by hand, with the checksum that it should have.
func resummed(text []byte) []byte {
	text = bytes.TrimRight(text, " ")
	const field = `,"sum":`
	i := bytes.LastIndex(text, []byte(field))
	if i < 0 {
		return text
	}
	return append(appendChecksum(append(text[:i:i], field...), checksum(text[:i])), text[i+len(field)+10:]...)
}

// loseSpares takes the spares of a store away: the next commit by exchange makes one, and
// its last sync is that of the namespace.
func loseSpares(s *Store) {
	for n := range uint64(spares) {
		if s.pins == nil {
			return // it has just opened them anew, or failed to
		}
		_ = s.pins.space.Remove(spareName(n)) // a plain store has none
	}
}

// isSparePath reports whether a path, as a wrapper tells it, is that of a spare.
func isSparePath(path string) bool {
	return filepath.Dir(path) == namespaceDir && isSpare(filepath.Base(path))
}

// copyStore copies a store that nobody uses, modes included.
func copyStore(t testing.TB, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	err := filepath.WalkDir(from, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.Mkdir(filepath.Join(to, rel), info.Mode().Perm())
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), text, info.Mode().Perm())
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// probeLock waits for the transfer lock and takes it, or says that it is held.
func probeLock(args []string) error {
	f, err := os.OpenFile(args[0], os.O_RDWR, 0)
	if err != nil {
		return err
	}
	how := unix.LOCK_EX
	if args[1] == "try" {
		how |= unix.LOCK_NB
	}
	switch err := unix.Flock(int(f.Fd()), how); err {
	case nil:
		fmt.Println("taken")
	case unix.EWOULDBLOCK:
		fmt.Println("held")
	default:
		return err
	}
	return nil
}

// probe asks another process about the lock: "try" says held or taken, "wait" waits
// until it was taken.
func (o outside) probe(t testing.TB, how string) string {
	t.Helper()
	p := start(t, "probe the lock", o.file.Name(), how)
	lines, err := p.Rest()
	if err != nil || len(lines) != 1 {
		t.Fatalf("probe: %v %q", err, lines)
	}
	return lines[0]
}

// leaveDeadOwner leaves what a writer leaves that died inside a transition.
func leaveDeadOwner(dir string) error {
	tok, err := newToken(crand.Reader)
	if err != nil {
		return err
	}
	space := filepath.Join(dir, namespaceDir)
	record := encodeRecord(newOwner(tok, systemClock{}.Now()))
	return errors.Join(os.WriteFile(filepath.Join(space, lockFile), record, 0o600),
		os.WriteFile(filepath.Join(space, stateTemp(tok)), []byte("cut o"), 0o600))
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
