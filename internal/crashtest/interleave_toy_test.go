//go:build unix

package crashtest

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"testing"

	"example.com/holdfast/internal/fsguard"
)

// The toy protocol keeps two counters, /left and /right, that must be equal whenever
// somebody looks under the lock. Whoever adds one writes first what both will be into
// /intent; whoever finds that finishes it. A bug is planted by name; "" is the right
// one.
type toy struct {
	bug  string
	root fsguard.Dir
	lock fsguard.File
	turn fsguard.File // a second lock
}

func setUpToy(_ testing.TB, d *Disk) {
	for _, name := range []string{"/left", "/right"} {
		d.WriteRaw(name, []byte("0"))
	}
	d.WriteRaw("/lock", nil)
	d.WriteRaw("/turn", nil)
}

func openToy(fsys fsguard.FS, bug string) (*toy, error) {
	root, err := fsys.OpenRoot("/")
	if err != nil {
		return nil, err
	}
	lock, err := root.OpenWrite("lock")
	if err != nil {
		return nil, err
	}
	turn, err := root.OpenWrite("turn")
	return &toy{bug, root, lock, turn}, err
}

// locked calls do under the locks.
func (y *toy) locked(swap bool, do func() error) error {
	if y.bug == "no lock" {
		return do()
	}
	locks := []fsguard.File{y.turn, y.lock}
	if swap && y.bug == "locks in another order" {
		locks = []fsguard.File{y.lock, y.turn}
	}
	if err := errors.Join(locks[0].Lock(fsguard.Exclusive), locks[1].Lock(fsguard.Exclusive)); err != nil {
		return err
	}
	err := do()
	if y.bug == "lock kept" {
		return err
	}
	return errors.Join(err, locks[1].Unlock(), locks[0].Unlock())
}

// add adds one and gives the sum.
func (y *toy) add() (sum int, err error) {
	if y.bug != "no recovery" {
		if err := y.finish(); err != nil {
			return 0, err
		}
	}
	left, err := y.read("left")
	if err != nil {
		return 0, err
	}
	right, err := y.read("right")
	if err != nil {
		return 0, err
	}
	if err := y.write("intent", fmt.Sprint(left+1, right+1)); err != nil {
		return 0, err
	}
	return left + 1, y.finish()
}

// finish does what an intent says.
func (y *toy) finish() error {
	text, err := y.text("intent")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var left, right int
	if err == nil {
		_, err = fmt.Sscan(text, &left, &right)
	}
	if err == nil {
		err = y.write("left", fmt.Sprint(left))
	}
	if err == nil {
		err = y.write("right", fmt.Sprint(right))
	}
	if err == nil {
		err = y.root.Remove("intent")
	}
	if err == nil && y.bug != "no last sync" {
		err = y.root.Sync()
	}
	return err
}

func (y *toy) write(name, text string) error {
	if err := y.root.WriteFile(name, []byte(text)); err != nil {
		return err
	}
	if y.bug == "no last sync" {
		return nil
	}
	return y.root.Sync()
}

func (y *toy) text(name string) (string, error) {
	f, err := y.root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := fsguard.ReadAll(f, 100)
	return string(text), err
}

func (y *toy) read(name string) (n int, err error) {
	text, err := y.text(name)
	if err == nil {
		_, err = fmt.Sscan(text, &n)
	}
	return n, err
}

// A toyPlay lets each client add one, so many times.
type toyPlay struct {
	bug   string
	times int

	mu          sync.Mutex
	toys        []*toy
	acked, open int
	answers     map[int]bool // sums
}

func toyInterleaving(bug string, clients, times int) Interleaving {
	return Interleaving{
		Name: "toy", Clients: clients, Setup: setUpToy,
		Begin: func() Play { return &toyPlay{bug: bug, times: times, answers: map[int]bool{}} },
	}
}

func (p *toyPlay) Open(c *Client) error {
	y, err := openToy(c.FS, p.bug)
	p.toys = append(p.toys, y)
	return err
}

func (p *toyPlay) Run(c *Client) error {
	y := p.toys[c.Index]
	for range p.times {
		if err := c.Pause("add"); err != nil {
			return err
		}
		p.count(func() { p.open++ })
		sum := 0
		err := y.locked(c.Index == 1, func() (err error) {
			sum, err = y.add()
			return err
		})
		if err != nil || c.Dead() {
			return err
		}
		again := false
		p.count(func() { p.acked, p.open, again = p.acked+1, p.open-1, p.answers[sum]; p.answers[sum] = true })
		if again {
			return fmt.Errorf("the sum %d was answered twice", sum)
		}
	}
	return nil
}

func (p *toyPlay) count(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *toyPlay) Kill(_ *Client, kill func()) { kill() }

func (p *toyPlay) Cut() func(t testing.TB, fs fsguard.FS, lost bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	acked, open := p.acked, p.open
	return func(t testing.TB, fs fsguard.FS, lost bool) error {
		y, err := openToy(fs, "")
		if err != nil {
			return err
		}
		return y.locked(false, func() error {
			if err := y.finish(); err != nil {
				return err
			}
			left, err := y.read("left")
			if err != nil {
				return err
			}
			right, err := y.read("right")
			if err != nil {
				return err
			}
			if left != right || left < acked || left > acked+open {
				return fmt.Errorf("left %d, right %d, want both from %d to %d", left, right, acked, acked+open)
			}
			return nil
		})
	}
}
