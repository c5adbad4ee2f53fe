//go:build unix && !linux

package fsguard

// fdatasync is the whole sync: darwin has no such call that reaches through the drive's
// cache, and x/sys offers none on the others.
func fdatasync(d *descriptor) error { return d.file.Sync() }
