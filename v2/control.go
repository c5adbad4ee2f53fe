//go:build unix

package holdfast

// pause makes claims of a queue find nothing, or something again. A queue that is there
// has the room for it.
func (d *draft) pause(name string, paused bool) error {
	if err := d.unlessImporting(name); err != nil {
		return err
	}
	q := d.st.queue(name)
	if q == nil && !paused || q != nil && q.paused == paused {
		return nil
	}
	if err := d.fits("pausing "+name, d.newQueueBytes(name)); err != nil {
		return err
	}
	d.queue(name).paused = paused
	return nil
}

// setNamespace says where messages of a queue that fail from now on are kept. The
// namespace may have to be made by a settlement, which must find room.
func (d *draft) setNamespace(name, space string) error {
	if err := d.unlessImporting(name); err != nil {
		return err
	}
	q := d.st.queue(name)
	if q == nil && space == "" || q != nil && q.failedNS == space {
		return nil
	}
	more := int64(len(space))
	if err := d.fits("failed namespace of "+name, d.newQueueBytes(name)+more); err != nil {
		return err
	}
	if err := d.owe(spaceRoom(space)); err != nil {
		return err
	}
	d.bytes += more
	d.queue(name).failedNS = space
	return nil
}

// setCursor keeps an intake loop's place.
func (d *draft) setCursor(name, cursor string) error {
	if err := d.unlessImporting(name); err != nil {
		return err
	}
	q := d.st.queue(name)
	if q == nil && cursor == "" || q != nil && q.cursor == cursor {
		return nil
	}
	more := int64(written(cursor))
	if err := d.fits("cursor of "+name, d.newQueueBytes(name)+more); err != nil {
		return err
	}
	d.bytes += more
	d.queue(name).cursor = cursor
	return nil
}
