//go:build unix

package holdfast

import (
	"fmt"

	"example.com/holdfast/queue"
)

// pause makes claims of a queue find nothing, or something again.
func (d *draft) pause(name string, paused bool) {
	q := d.st.queue(name)
	if q == nil && !paused || q != nil && q.paused == paused {
		return
	}
	d.queue(name).paused = paused
}

// setNamespace says where messages of a queue that fail from now on are kept.
func (d *draft) setNamespace(name, space string) {
	q := d.st.queue(name)
	if q == nil && space == "" || q != nil && q.failedNS == space {
		return
	}
	d.queue(name).failedNS = space
	d.bytes += int64(len(space))
}

// setCursor keeps an intake loop's place.
func (d *draft) setCursor(name, cursor string) error {
	q := d.st.queue(name)
	if q == nil && cursor == "" || q != nil && q.cursor == cursor {
		return nil
	}
	grows := int64(written(cursor))
	if q == nil {
		grows += int64(len(name)) + queueBytes
	}
	if d.limit > 0 && d.bytes+grows > d.limit {
		return fmt.Errorf("cursor of %s: state.json would pass %d bytes: %w", name, d.limit, queue.ErrFull)
	}
	d.bytes += int64(written(cursor))
	d.queue(name).cursor = cursor
	return nil
}
