//go:build unix

package holdfast

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"example.com/holdfast/internal/fsguard"
)

// maxReadings bounds how often state.json is read anew when it was retired and
// overwritten meanwhile. Each time takes two commits within one reading.
const maxReadings = 100

// readUnlocked reads state.json without the lock. Where commits exchange files, the one
// that was opened may be retired and overwritten while it is read, so that a part of one
// state is read and a part of another. What is taken instead is one whole state:
//
//	open     the file that state.json names
//	read     its first bytes: head
//	look     that state.json still names it
//	read     all
//	read     its first bytes once more: they must be head, as must those of all
//
// At the look the file is state.json, so it holds one whole text, that of a commit T, and
// whoever overwrites it later writes the first bytes first, with another commit token. The
// last reading found head. If head is the beginning of T, nobody had begun to overwrite the
// file by then, and all of what was read since the look is T's. If it is not, it was read
// before the file became T's, and the last reading would have to find it again after
// T's: but no commit token comes twice. That the text's first and last token agree, as the
// decoder asks, is one proof more.
//
// Where a state is replaced by rename, its file never changes, and all this finds it so.
func (s *Store) readUnlocked(p *pins) (*cachedState, error) {
	format, err := readFormat(p)
	if err != nil {
		return nil, err
	}
	for range maxReadings {
		file, err := openState(p)
		if err != nil {
			return nil, err
		}
		c := &cachedState{file: file}
		text, err := s.readSteady(p, c)
		if err == nil && text != nil {
			c.st, err = s.decode(c, text, stateFile, format)
			c.at = c.info
		}
		if err == nil && text != nil {
			return c, nil
		}
		c.close()
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s changed during each of %d readings: %w", stateFile, maxReadings, ErrBusy)
}

// readSteady gives the text of c's file, or nil if that is no longer state.json or was
// overwritten meanwhile.
func (s *Store) readSteady(p *pins, c *cachedState) ([]byte, error) {
	head := make([]byte, spareHead)
	n, err := readFull(c.file, head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	head = head[:n]
	opened, err := c.file.Info()
	if err != nil {
		return nil, err
	}
	if info, err := lstatState(p); err != nil {
		return nil, err
	} else if info.Identity != opened.Identity {
		return nil, nil
	}
	text, err := s.readText(c)
	if err != nil {
		return nil, err
	}
	if same, err := beginsWith(c.file, head); err != nil || !same || !bytes.HasPrefix(text, head) {
		return nil, err
	}
	return text, nil
}

// readText reads c's file to its end. The bound is the text's: the spaces behind it are at
// most as much again, and the slack.
func (s *Store) readText(c *cachedState) ([]byte, error) {
	var err error
	if c.info, err = c.file.Info(); err != nil {
		return nil, err
	}
	text, err := fsguard.ReadAll(c.file, 2*s.mostText()+spareSlack)
	if errors.Is(err, fsguard.ErrTooLong) {
		return nil, s.tooLong()
	}
	return text, err
}

// mostText is the length of a state that this handle reads.
func (s *Store) mostText() int64 { return 2 * s.opts.MaxStateBytes }

func (s *Store) tooLong() error {
	return fmt.Errorf("%s is longer than %d bytes, twice Options.MaxStateBytes: %w", stateFile, s.mostText(), ErrBound)
}

func readFormat(p *pins) (token, error) {
	text, err := fsguard.ReadAll(p.format, 4096)
	if errors.Is(err, fsguard.ErrTooLong) {
		return token{}, &CorruptError{File: formatFile, Offset: 4096, Reason: "longer than any format file"}
	}
	if err != nil {
		return token{}, err
	}
	return decodeFormat(text, formatFile)
}
