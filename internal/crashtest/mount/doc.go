//go:build unix

// Package mount makes real filesystems and mounts them: on loop devices over image files
// that can be copied at any instant, as a power cut would leave them, and that can be
// broken and mended. Only tests import it. It works on Linux, as root.
//
//   - [Need] leaves a test out where that cannot be done, and [Alone] runs it in a process
//     whose mounts the kernel takes away with it.
//   - [NewPlace] gives a place for images and mount points. [Place.Format] makes a
//     [Device] of a [Kind], [Device.Mount] a [Mount].
//   - [Device.Copy] is the power cut: what the filesystem has handed to its device by then
//     is in the copy, and nothing of what it still holds in memory.
//   - [Device.Break], [Mount.Shutdown] and [Mount.Abort] are the faults.
//
// # What a copied image shows and what it does not
//
// The device is a file in memory. Whatever the filesystem has written to it is there at
// once, so a copy shows what the filesystem makes durable by which sync, and in which order:
// a missing sync of a file or of a directory is seen. The device has no cache of its
// own that a power cut could empty. A filesystem that forgets to flush that of a
// real disk is not seen, nor is a disk that does not do as it is told, nor a sector that is
// torn.
package mount
