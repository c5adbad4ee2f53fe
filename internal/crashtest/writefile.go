//go:build unix

package crashtest

import (
	"errors"
	"io/fs"
	"strconv"

	"example.com/holdfast/internal/fsguard"
)

// writeFile is Dir.WriteFile spelled out in the other methods of dir, so that a
// crash or an error can fall between any two.
func writeFile(dir fsguard.Dir, name string, data []byte) error {
	var (
		file fsguard.File
		temp string
		err  error
	)
	if err := fsguard.CheckName(name); err != nil {
		return &fsguard.Error{Op: fsguard.OpWriteFile, Name: name, Err: err}
	}
	for i := 1; ; i++ { // the first digits that are not in use: the same every time
		temp = "." + name + strconv.Itoa(i)
		if file, err = dir.Create(temp); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err == nil {
		err = fillAndRename(dir, file, temp, name, data)
	}
	if err != nil {
		return &fsguard.Error{Op: fsguard.OpWriteFile, Name: name, Err: err}
	}
	return nil
}

func fillAndRename(dir fsguard.Dir, file fsguard.File, temp, name string, data []byte) error {
	_, err := file.WriteAt(data, 0)
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = dir.Rename(temp, name)
	}
	if err != nil {
		err = errors.Join(err, dir.Remove(temp))
	}
	return err
}
