//go:build unix

package holdfast

import (
	"context"
	"fmt"
	"time"

	"example.com/holdfast/internal/fsguard"
)

// DefaultMaxEntryBytes bounds an entry when Options say nothing else, as in the npm
// package.
const DefaultMaxEntryBytes = 16 << 20

// Options shape how a store is opened. A nil *Options is the zero value, and the zero
// value works. There is no option that turns syncing off.
type Options struct {
	// FailedDir is the directory that Fail moves entries to, on the same filesystem.
	// Empty: none, and Fail answers ErrNoFailedDir.
	FailedDir string

	// ClaimBy is how an entry is claimed and quarantined. Zero: HardLink, which is what
	// the npm package does. It is never changed on its own.
	ClaimBy Route

	// Mechanism is how files are reached. Zero: Auto.
	Mechanism Mechanism

	// MaxEntryBytes bounds one entry, in its layout on disk. Zero: 16 MiB. The npm
	// package reads no more than that unless it is told to.
	MaxEntryBytes int64

	// TempPrefix begins the names of temporary files. Zero: "holdfast".
	TempPrefix string

	fs    fsguard.FS                                 // nil: the operating system, by Mechanism
	now   func() time.Time                           // nil: the system's clock
	sleep func(context.Context, time.Duration) error // nil: on a timer
}

// A Route is the system call that makes a claim.
type Route int

const (
	// HardLink claims by link and retires the source through a record, as the npm
	// package does. Android refuses it to apps.
	HardLink Route = iota

	// RenameNoReplace claims by one renameat2 with RENAME_NOREPLACE, and quarantines and
	// restores by the same: no link is ever made. Consumers of both routes, here and in
	// JavaScript, may work on one directory at the same time. Where the system or the
	// filesystem has no such rename the answer is ErrHelperUnavailable.
	RenameNoReplace
)

func (r Route) String() string {
	if r == RenameNoReplace {
		return "rename-no-replace"
	}
	return "hard-link"
}

// A Mechanism is how names in the directories are reached. Results and refusals are
// the same in all.
type Mechanism string

const (
	// Auto uses calls relative to the pinned directory where the system has them, and
	// paths elsewhere.
	Auto Mechanism = "auto"

	// Off uses paths, and checks at each that the directory is still the pinned one.
	Off Mechanism = "off"

	// Require insists on calls relative to the pinned directory: opening answers
	// ErrHelperUnavailable where they do not work.
	Require Mechanism = "require"
)

// checked gives the options with every default in place.
func (o *Options) checked() (Options, error) {
	var out Options
	if o != nil {
		out = *o
	}
	if out.ClaimBy != HardLink && out.ClaimBy != RenameNoReplace {
		return out, fmt.Errorf("ClaimBy %d: HardLink or RenameNoReplace: %w", int(out.ClaimBy), ErrOptions)
	}
	switch out.Mechanism {
	case "":
		out.Mechanism = Auto
	case Auto, Off, Require:
	default:
		return out, fmt.Errorf("Mechanism %q: off, auto or require: %w", string(out.Mechanism), ErrOptions)
	}
	switch {
	case out.MaxEntryBytes < 0:
		return out, fmt.Errorf("MaxEntryBytes %d: at least 1, or 0 for the default: %w", out.MaxEntryBytes, ErrOptions)
	case out.MaxEntryBytes == 0:
		out.MaxEntryBytes = DefaultMaxEntryBytes
	}
	if out.TempPrefix == "" {
		out.TempPrefix = "holdfast"
	}
	if len(out.TempPrefix) > maxTempPrefix || !plainName(out.TempPrefix) {
		return out, fmt.Errorf("TempPrefix %q: letters, digits, . _ - only, at most %d: %w", out.TempPrefix, maxTempPrefix, ErrOptions)
	}
	if out.now == nil {
		out.now = time.Now
	}
	if out.sleep == nil {
		out.sleep = sleep
	}
	if out.fs == nil {
		fs, err := out.Mechanism.open()
		if err != nil {
			return out, err
		}
		out.fs = fs
	}
	return out, nil
}

// open gives the filesystem of a mechanism.
func (m Mechanism) open() (fsguard.FS, error) {
	if m == Off {
		return fsguard.Paths(), nil
	}
	err := fsguard.CheckRelative()
	switch {
	case err == nil:
		return fsguard.OS(), nil
	case m == Require:
		return nil, &Error{File: "mechanism " + string(m), What: ErrHelperUnavailable, Err: err}
	}
	return fsguard.Paths(), nil
}
