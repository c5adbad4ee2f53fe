//go:build unix

package doctor

import (
	"bytes"
	"errors"
	"fmt"

	"example.com/holdfast/internal/fsguard"
)

// contentTests try what is done to the content of files, and to make it durable.
var contentTests = []test{
	{Check: Check{
		Name: "file_sync", Needed: true,
		Tried: "write a file, sync it, read it",
		For:   "payloads and the state are durable before a commit",
	}, inside: true, run: (*exam).fileSync},
	{Check: Check{
		Name: "size_after_write", Needed: true,
		Tried: "ask for a file's size right after it was written",
		For:   "finding cut files; a store also reads to the end",
	}, inside: true, run: (*exam).sizeAfterWrite},
	{Check: Check{
		Name: "directory_sync", Needed: true,
		Tried: "sync a directory",
		For:   "the name of a new state is durable before a call returns",
	}, inside: true, run: (*exam).directorySync},
	{Check: Check{
		Name: "allocate", Needed: true,
		Tried: "give a file room that it does not use yet",
		For:   "the reserve by which settling works on a full disk",
	}, inside: true, run: (*exam).allocate},
}

// filler is some content of more than one page.
var filler = bytes.Repeat([]byte("holdfast "), 1000)

// filled makes a file with the filler in it and hands it over.
func (e *exam) filled(name string, do func(fsguard.File) finding) finding {
	f, err := e.scratch.Create(name)
	if err != nil {
		return refused(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(filler, 0); err != nil {
		return refused(err)
	}
	return do(f)
}

func (e *exam) fileSync() finding {
	return e.filled("synced", func(f fsguard.File) finding {
		if err := f.Sync(); err != nil {
			return refused(err)
		}
		got, err := fsguard.ReadAll(f, int64(len(filler))+1)
		if err != nil {
			return refused(err)
		}
		if !bytes.Equal(got, filler) {
			return broken(fmt.Sprintf("%d bytes were written, and reading gave other ones, %d", len(filler), len(got)))
		}
		return works("whether it outlasts the power is for --power-test to find out")
	})
}

func (e *exam) sizeAfterWrite() finding {
	return e.filled("sized", func(f fsguard.File) finding {
		open, err := f.Info()
		if err != nil {
			return refused(err)
		}
		named, err := e.scratch.Lstat("sized")
		if err != nil {
			return refused(err)
		}
		for _, size := range []int64{open.Size, named.Size} {
			if size != int64(len(filler)) {
				return broken(fmt.Sprintf("%d bytes were written and the size is told as %d; a store goes by what it reads", len(filler), size)).weighing(Warning)
			}
		}
		return works("")
	})
}

func (e *exam) directorySync() finding {
	if _, err := e.make("entry"); err != nil {
		return refused(err)
	}
	if err := e.scratch.Sync(); err != nil {
		return refused(err)
	}
	return works("")
}

func (e *exam) allocate() finding {
	const room = 8 << 10
	f, err := e.scratch.Create("roomy")
	if err != nil {
		return refused(err)
	}
	defer f.Close()
	if err := f.Allocate(room); err != nil {
		return refused(err)
	}
	got, err := fsguard.ReadAll(f, room)
	switch {
	case errors.Is(err, fsguard.ErrTooLong):
		return broken(fmt.Sprintf("the file is longer than the %d bytes that were asked for", room))
	case err != nil:
		return refused(err)
	case len(got) != room:
		return broken(fmt.Sprintf("the file has %d bytes in place of %d", len(got), room))
	}
	return works("")
}
