//go:build unix

package measure

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A Device is the block device below a directory. Its counters are those of the whole
// machine: what others write meanwhile is in them.
type Device struct {
	stat string // its file of counters
	Kind string // "rotating", "not rotating" or empty
}

// Traffic is what a device has done.
type Traffic struct{ Bytes, Flushes float64 }

func (t Traffic) less(u Traffic) Traffic { return Traffic{t.Bytes - u.Bytes, t.Flushes - u.Flushes} }

func (t Traffic) times(x float64) Traffic { return Traffic{t.Bytes * x, t.Flushes * x} }

// sysBlock has every block device by its number.
const sysBlock = "/sys/dev/block"

// FindDevice finds the device below dir. Nil: there is none, or none that the system tells
// of, as for a filesystem in memory.
func FindDevice(dir string) (*Device, error) {
	major, minor, err := deviceNumber(dir)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return findDevice(filepath.Join(sysBlock, fmt.Sprintf("%d:%d", major, minor)))
}

func findDevice(entry string) (*Device, error) {
	real, err := filepath.EvalSymlinks(entry)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(real, "partition")); err == nil {
		real = filepath.Dir(real) // flushes are counted for the whole disk only
	}
	d := &Device{stat: filepath.Join(real, "stat")}
	if text, err := os.ReadFile(filepath.Join(real, "queue", "rotational")); err == nil {
		d.Kind = map[string]string{"0": "not rotating", "1": "rotating"}[strings.TrimSpace(string(text))]
	}
	if _, err := d.Traffic(); err != nil {
		return nil, nil // an old kernel, which does not count flushes
	}
	return d, nil
}

// Traffic reads the counters.
func (d *Device) Traffic() (Traffic, error) {
	text, err := os.ReadFile(d.stat)
	if err != nil {
		return Traffic{}, err
	}
	return parseTraffic(string(text))
}

// parseTraffic reads the sectors written, of 512 bytes on every device, and the flushes:
// the 7th and the 16th counter (Documentation/block/stat.rst in the Linux source).
func parseTraffic(text string) (Traffic, error) {
	fields := strings.Fields(text)
	if len(fields) < 17 {
		return Traffic{}, fmt.Errorf("unexpected counters: %q", text)
	}
	sectors, err := strconv.ParseFloat(fields[6], 64)
	if err != nil {
		return Traffic{}, err
	}
	flushes, err := strconv.ParseFloat(fields[15], 64)
	return Traffic{Bytes: sectors * 512, Flushes: flushes}, err
}

// IdleTraffic is what the device does in a second while the bench does nothing for d.
func (dev *Device) IdleTraffic(d time.Duration) (Traffic, error) {
	before, err := dev.Traffic()
	if err != nil {
		return Traffic{}, err
	}
	began := time.Now()
	time.Sleep(d)
	after, err := dev.Traffic()
	return after.less(before).times(1 / time.Since(began).Seconds()), err
}
