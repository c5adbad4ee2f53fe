//go:build unix

package holdfast

import "example.com/holdfast/internal/crashtest/planted"

const guard = "../internal/fsguard/"

// Bugs of how the operating system is asked, which that package's own tests catch.
var guardBugs = []planted.Bug{
	inGuard("files made over others", "TestCreate$",
		edit(guard+"create.go", "unix.O_RDWR | unix.O_CREAT | unix.O_EXCL |", "unix.O_RDWR | unix.O_CREAT |")),
	inGuard("opened files that every child inherits", "TestDescriptorFlags$",
		edit(guard+"open.go", "unix.O_NOCTTY | unix.O_CLOEXEC", "unix.O_NOCTTY")),
	inGuard("directories that every child inherits", "TestDescriptorFlags$",
		edit(guard+"pinned.go", "unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC", "unix.O_DIRECTORY|unix.O_NOFOLLOW")),
	inGuard("of several syncs only the first one's error", "TestSyncAllErrors$",
		edit(guard+"os.go", "	return errors.Join(errs...)", "	return errs[0]")),
	inGuard("no sync at all", "TestSyncErrorKeepsErrno$",
		edit(guard+"descriptor.go", "	err := d.file.Sync()\n", "	var err error\n")),
	inGuard("an interrupted call taken for an error", "TestRetry$",
		edit(guard+"errno.go", "err != unix.EINTR {", "true || err != unix.EINTR {")),
	inGuard("a size trusted that stat tells", "TestReadAllOfProc$",
		edit(guard+"read.go", "		first = min(info.Size, limit)\n	}\n", "		first = min(info.Size, limit)\n	} else if info.Size == 0 {\n		return nil, nil\n	}\n")),
	inGuard("a directory swapped while it is opened", "TestOpenDirReplaced$",
		edit(guard+"dir.go", "	if !os.SameFile(here, there) {", "	if !os.SameFile(here, there) && false {")),
	inGuard("a lock told of after the close", "TestCloseWhileLockWaits$",
		edit(guard+"lock.go", "		if err == nil && d.closed.Load() {", "		if err == nil && d.closed.Load() && false {")),
	inGuard("a file that lost its name taken for an odd one", "TestRenameIsAtomic$",
		edit(guard+"open.go", "		if replaced(info) && try < maxReopen {", "		if false {")),
}

func inGuard(name, test string, edits ...planted.Edit) planted.Bug {
	return planted.Bug{Name: "fsguard: " + name, Test: test, In: guard, Edits: edits}
}
