//go:build unix

package holdfast

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/holdfast/queue"
	"example.com/holdfast/worker"
)

// The chaos run: worker processes on one store, killed at random, stopped for longer
// than their leases, while the clock goes back and forth by hours and the machine
// seems to sleep. In the end every message is acked or failed, once, and none is stuck.

var chaosRounds = flag.Int("chaos.rounds", 60, "rounds of the chaos run")

func init() { roles["chaos worker"] = chaosWorker }

const (
	chaosQueue    = "mail"
	chaosMessages = 150
	chaosWorkers  = 3
	chaosLease    = 30 * time.Second
)

// A steppedClock is the system's clock with steps that a file tells: of the wall clock
// in either direction, and of the boot clock, which only goes on. Every process of a
// run reads the same file.
type steppedClock struct {
	file   string
	noBoot bool // this process cannot read the boot id
}

func (c steppedClock) Now() instant {
	b, err := os.ReadFile(c.file)
	if err != nil || len(b) != 16 {
		panic(fmt.Sprintf("the clock: %d bytes, %v", len(b), err))
	}
	at := systemClock{}.Now()
	at.Wall = at.Wall.Add(time.Duration(binary.LittleEndian.Uint64(b)))
	if at.Boot += time.Duration(binary.LittleEndian.Uint64(b[8:])); c.noBoot {
		at.BootID = ""
	}
	return at
}

// step sets the steps. The file is replaced, so that nobody reads half of it.
func (c steppedClock) step(t testing.TB, wall, boot time.Duration) {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], uint64(wall))
	binary.LittleEndian.PutUint64(b[8:], uint64(boot))
	mustDo(t, os.WriteFile(c.file+".new", b[:], 0o600))
	mustDo(t, os.Rename(c.file+".new", c.file))
}

// chaosWorker takes a directory, a clock's file, "boot" or "no boot", and a seed. It
// prints what it settled, and ends well when it is told to by SIGTERM.
func chaosWorker(args []string) error {
	seed, err := strconv.ParseUint(args[3], 10, 64)
	if err != nil {
		return err
	}
	s, err := Open(context.Background(), args[0], &Options{clock: steppedClock{args[1], args[2] == "no boot"}})
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Println("ready")
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 0))
	draw := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return rng.IntN(n)
	}
	handler := func(ctx context.Context, m *queue.Received[string]) error {
		for range draw(10) { // as long as some looks take
			if _, err := s.Status(ctx, queue.StatusOptions{}); err != nil {
				return err
			}
		}
		switch n := draw(100); {
		case n < 15:
			return errors.New("no luck")
		case n < 20:
			panic("a bug")
		case n < 23:
			return worker.Fail(errors.New("bad data"))
		case n < 28:
			return worker.Snooze(time.Millisecond)
		}
		return nil
	}
	return worker.Run(ctx, queue.New[string](s, chaosQueue), handler, worker.Options{
		Concurrency: 3, Lease: chaosLease, ReapEvery: 10 * time.Millisecond, StoreFailures: -1, Fatal: NeedsOperator, Label: fmt.Sprint(os.Getpid()),
		Retry:  worker.RetryPolicy{Base: time.Millisecond, Max: 4 * time.Millisecond, MaxFailures: 6, MaxLapses: 100},
		Logger: slog.New(slog.DiscardHandler),
		Observe: func(e worker.Event) {
			switch e.Kind {
			case worker.EventAcked, worker.EventFailed, worker.EventLost:
				fmt.Println(e.Kind, e.ID)
			}
		},
	})
}

// A chaos is one run.
type chaos struct {
	t          *testing.T
	s          *Store
	dir        string
	rng        *rand.Rand
	clock      steppedClock
	wall, boot time.Duration
	alive      []*chaosChild
	mu         sync.Mutex
	said       []string // "acked ID" and the like
	counts     map[string]int
}

type chaosChild struct {
	*process
	stopped bool
	ready   chan struct{} // closed when it listens to SIGTERM
	ended   chan error
}

func (c *chaos) start() {
	c.t.Helper()
	boot := "boot"
	if c.rng.IntN(3) == 0 {
		boot = "no boot"
	}
	p := &chaosChild{process: start(c.t, "chaos worker", c.dir, c.clock.file, boot, fmt.Sprint(c.rng.Uint64())), ready: make(chan struct{}), ended: make(chan error, 1)}
	go func() {
		if p.Out.Scan() {
			close(p.ready)
		}
		for p.Out.Scan() {
			c.mu.Lock()
			c.said = append(c.said, p.Out.Text())
			c.mu.Unlock()
		}
		p.ended <- p.Cmd.Wait()
	}()
	c.alive = append(c.alive, p)
}

func (p *chaosChild) signal(sig syscall.Signal) { _ = p.Cmd.Process.Signal(sig) }

// kill ends a child by SIGKILL, stopped or not.
func (c *chaos) kill() {
	if len(c.alive) == 0 {
		return
	}
	i := c.rng.IntN(len(c.alive))
	p := c.alive[i]
	c.alive = slices.Delete(c.alive, i, i+1)
	p.signal(unix.SIGKILL)
	if err := <-p.ended; killedBy(err) != unix.SIGKILL {
		c.t.Errorf("a worker ended by itself: %v", err)
	}
	c.counts["killed"]++
}

// stop stops a child that is neither inside the store's locks nor waits for them: one
// that is holds up everybody, as it must.
func (c *chaos) stop() {
	for range 20 {
		for _, p := range c.alive {
			p.signal(unix.SIGSTOP)
		}
		for _, p := range c.alive {
			stands(c.t, p.Cmd.Process.Pid)
		}
		free := c.locksAreFree()
		victim := -1
		if free && len(c.alive) > 0 {
			victim = c.rng.IntN(len(c.alive))
			if c.alive[victim].stopped {
				victim = -1
			}
		}
		for i, p := range c.alive {
			if p.stopped = p.stopped || i == victim; !p.stopped {
				p.signal(unix.SIGCONT)
			}
		}
		if free {
			if victim >= 0 {
				c.counts["stopped"]++
			}
			return
		}
	}
}

// stands returns when a process stands still: when all its threads do, as the kernel
// tells in /proc, or at once where there is none.
func stands(t testing.TB, pid int) {
	var status unix.WaitStatus
	for {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			if _, err := unix.Wait4(pid, &status, unix.WUNTRACED, nil); err != nil {
				t.Fatalf("waiting for a stop: %v", err)
			}
			return
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		if strings.HasPrefix(rest, "T") || strings.HasPrefix(rest, "Z") {
			return
		}
	}
}

func (c *chaos) locksAreFree() bool {
	for _, name := range []string{formatFile, lockFile} {
		f, err := os.OpenFile(filepath.Join(c.dir, namespaceDir, name), os.O_RDWR, 0)
		if err != nil {
			c.t.Fatal(err)
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		f.Close()
		if err != nil {
			return false
		}
	}
	return true
}

// resume lets the stopped ones go on: late workers, by their leases.
func (c *chaos) resume() {
	for _, p := range c.alive {
		if p.stopped {
			p.stopped = false
			p.signal(unix.SIGCONT)
		}
	}
}

func (c *chaos) stepClock() {
	switch c.rng.IntN(4) {
	case 0:
		c.wall -= time.Hour
		c.counts["clock back"]++
	case 1:
		c.wall += time.Hour
		c.counts["clock forward"]++
	default: // a sleep longer than any lease
		c.wall += 2 * chaosLease
		c.boot += 2 * chaosLease
		c.counts["slept"]++
	}
	c.clock.step(c.t, c.wall, c.boot)
}

func TestChaos(t *testing.T) {
	seed := newSeed(t)
	dir := t.TempDir()
	c := &chaos{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), clock: steppedClock{file: filepath.Join(dir, "clock")}, counts: map[string]int{},
	}
	c.clock.step(t, 0, 0)
	c.s, c.dir = newTestStore(t, &Options{clock: c.clock, OnDeadOwner: AutoRecover})
	ctx := t.Context()
	var ids []string
	for i := range chaosMessages {
		m := queue.Message{ID: fmt.Sprintf("m%03d", i), Payload: []byte(`"x"`)}
		if i%2 == 0 {
			m.Key = fmt.Sprint("chat-", i%10)
		}
		if i%10 == 0 {
			m.NotBefore = c.clock.Now().Wall.Add(time.Minute)
		}
		mustEnqueue(t, c.s, chaosQueue, m)
		ids = append(ids, m.ID)
	}
	rounds := *chaosRounds
	if testing.Short() || raceDetector() {
		rounds = min(rounds, 15)
	}
	for range rounds {
		for len(c.alive) < chaosWorkers {
			c.start()
		}
		switch c.rng.IntN(5) {
		case 0:
			c.kill()
		case 1:
			c.stop()
		case 2:
			c.resume()
		default:
			c.stepClock()
		}
		for range 5 { // each takes its turn at the lock: the workers get theirs between
			st, err := c.s.Status(ctx, queue.StatusOptions{})
			if err != nil {
				t.Fatal(err)
			}
			q := st.Queues[chaosQueue]
			if n := q.Counters; n.Enqueued+n.Reprocessed-n.Completed-n.Failed != q.Pending+q.Processing || q.Pending != q.Ready+q.Scheduled+q.Blocked {
				t.Fatalf("a snapshot does not add up: %+v", q)
			}
		}
	}
	c.end(ctx, ids)
}

// end lets the run come to rest and looks at what became of each message.
func (c *chaos) end(ctx context.Context, ids []string) {
	t := c.t
	c.resume()
	c.wall, c.boot = c.wall+100*time.Hour, c.boot+100*time.Hour // whatever was put off is due, every lease over
	c.clock.step(t, c.wall, c.boot)
	for len(c.alive) < chaosWorkers {
		c.start()
	}
	final, err := c.s.Wait(ctx, queue.WaitOptions{Queues: []string{chaosQueue}})
	mustDo(t, err)
	for _, p := range c.alive {
		<-p.ready
		p.signal(unix.SIGTERM)
	}
	for _, p := range c.alive {
		if err := <-p.ended; err != nil {
			t.Errorf("a worker that was told to end: %v", err)
		}
	}
	n := final.Queues[chaosQueue].Counters
	t.Logf("%v; %+v", c.counts, n)
	if n.Enqueued != chaosMessages || n.Completed+n.Failed != chaosMessages || n.Damaged != 0 {
		t.Errorf("of %d messages: %+v", chaosMessages, n)
	}
	failed := map[string]bool{}
	page, err := c.s.ListFailed(ctx, queue.FailedOptions{}, queue.ListOptions{Limit: 1000})
	mustDo(t, err)
	for _, e := range page.Entries {
		failed[e.ID] = true
	}
	settled := map[string]int{}
	lost := 0
	for _, line := range c.said {
		what, id, _ := strings.Cut(line, " ")
		switch {
		case what == string(worker.EventLost):
			lost++
			continue
		case (what == string(worker.EventFailed)) != failed[id]:
			t.Errorf("%s was said to be %s; in failed: %v", id, what, failed[id])
		}
		settled[id]++
	}
	for _, id := range ids {
		if settled[id] > 1 {
			t.Errorf("%s was settled %d times", id, settled[id])
		}
	}
	// Only a worker that was killed between a commit and saying so, or a reaping at the
	// cap, leaves one unsaid.
	if unsaid := chaosMessages - len(settled); unsaid > 3*c.counts["killed"] {
		t.Errorf("%d settlements were said by nobody", unsaid)
	}
	t.Logf("%d claims were lost to others", lost)
}
