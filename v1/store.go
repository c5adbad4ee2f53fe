//go:build unix

package holdfast

import (
	"errors"
	"fmt"
)

// A Store is a queue directory, and perhaps a failed directory, that other programs
// may work on at the same time. All methods are safe for concurrent use.
type Store struct {
	opts   Options
	queue  *directory
	fail   *directory // nil: none
	link   probe
	source bool // of a Source: what was handed over may be touched
}

// Open opens a queue directory that is there, and the failed directory if Options name
// one. It makes, repairs and removes nothing. A missing one is ErrNoDirectory, one that
// was handed over to a v2 store ErrImported.
func Open(dir string, o *Options) (*Store, error) {
	s, err := open(dir, o)
	if err != nil {
		return nil, err
	}
	if err := s.unlessImported(s.queue.dir); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// OpenOrCreate is Open that first makes the directories that are missing, and those above
// them, mode 0700. On nil they are durable, their own entries included.
func OpenOrCreate(dir string, o *Options) (*Store, error) {
	opts, err := o.checked()
	if err != nil {
		return nil, err
	}
	for _, d := range []string{dir, opts.FailedDir} {
		if d == "" {
			continue
		}
		if err := makeDirectory(opts.fs, d); err != nil {
			return nil, err
		}
	}
	return Open(dir, &opts)
}

func open(dir string, o *Options) (*Store, error) {
	opts, err := o.checked()
	if err != nil {
		return nil, err
	}
	s := &Store{opts: opts}
	if s.queue, err = pinDirectory(opts.fs, dir); err != nil {
		return nil, err
	}
	if opts.FailedDir == "" {
		return s, nil
	}
	if s.fail, err = pinDirectory(opts.fs, opts.FailedDir); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if s.fail.id == s.queue.id {
		err = fmt.Errorf("FailedDir %s is the queue directory: %w", opts.FailedDir, ErrOptions)
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close gives back the descriptors. Claims that are out stay good; calls that are under
// way may fail.
func (s *Store) Close() error {
	var errs []error
	for _, d := range []*directory{s.queue, s.fail} {
		if d != nil {
			errs = append(errs, d.dir.Close())
		}
	}
	return errors.Join(errs...)
}
