//go:build unix

package holdfast

// pause makes claims of a queue find nothing, or something again. A queue that is there
// has the room for it.
func (d *draft) pause(name string, paused bool) error {
	q := d.st.queue(name)
	if q == nil && !paused || q != nil && q.paused == paused {
		return nil
	}
	if err := d.makeQueue("pausing "+name, name, 0); err != nil {
		return err
	}
	d.queue(name).paused = paused
	return nil
}

// setNamespace says where messages of a queue that fail from now on are kept. The
// namespace may have to be made by a settlement, which must find room.
func (d *draft) setNamespace(name, space string) error {
	q := d.st.queue(name)
	if q == nil && space == "" || q != nil && q.failedNS == space {
		return nil
	}
	what := "failed namespace of " + name
	if err := d.owe(spaceRoom(space)); err != nil {
		return err
	}
	if err := d.makeQueue(what, name, int64(len(space))); err != nil {
		d.promised -= spaceRoom(space)
		return err
	}
	d.queue(name).failedNS = space
	return nil
}

// setCursor keeps an intake loop's place.
func (d *draft) setCursor(name, cursor string) error {
	q := d.st.queue(name)
	if q == nil && cursor == "" || q != nil && q.cursor == cursor {
		return nil
	}
	if err := d.makeQueue("cursor of "+name, name, int64(written(cursor))); err != nil {
		return err
	}
	d.queue(name).cursor = cursor
	return nil
}

// makeQueue sees to the room for a queue, if it is new, and for so many bytes in it.
func (d *draft) makeQueue(what, name string, bytes int64) error {
	if d.st.queue(name) == nil {
		bytes += int64(len(name)) + queueBytes
	}
	if bytes == 0 {
		return nil
	}
	before := d.bytes
	if err := d.grow(what, bytes); err != nil {
		return err
	}
	if d.st.queue(name) == nil {
		d.queue(name) // which counts itself
		d.bytes = before + bytes
	}
	return nil
}
