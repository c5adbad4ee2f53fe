//go:build unix

package holdfast

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// The names of the files, as docs/format-v1.md draws them. No other file of this
// package spells or parses a name.
const (
	pendingSuffix    = ".json"
	processingSuffix = ".processing"
	deliveredSuffix  = ".delivered"
	tempSuffix       = ".tmp"

	retirementsDir = ".fs-safe-retirements" // a directory for each ID in retirement, named as its pending file
	retiredEntry   = "entry"                // in that directory

	lockPrefix    = ".fs-safe-transfer-" // and 32 hex digits
	lockSuffix    = ".lock"
	reclaimSuffix = ".reclaim" // after a lock's name: somebody is taking it away

	// markerFile says that the directory is being handed over to a v2 store, or was. No
	// ID can make this name, and the npm package looks at no name like it.
	markerFile = MarkerFile
)

// MarkerFile is the name of the marker of a hand-over, in the queue directory and in the
// failed one: see Source.
const MarkerFile = ".holdfast-import"

// maxIDBytes leaves room in 255 bytes for the longest suffix.
const maxIDBytes = 255 - len(processingSuffix)

// maxTempPrefix leaves room for a process number, a UUID and the suffix.
const maxTempPrefix = 128

// names are the names of one ID.
type names struct {
	id, pending, processing, delivered, lock string
}

func namesOf(id string) names {
	pending := id + pendingSuffix
	sum := sha256.Sum256([]byte(pending))
	return names{
		id: id, pending: pending, processing: id + processingSuffix, delivered: id + deliveredSuffix,
		lock: lockPrefix + hex.EncodeToString(sum[:16]) + lockSuffix,
	}
}

// failed is the name in the failed directory.
func (n names) failed() string { return n.pending }

// entry is the name of an entry in that state, in its directory.
func (n names) entry(state EntryState) string {
	switch state {
	case EntryClaimed:
		return n.processing
	case EntryFailed:
		return n.failed()
	}
	return n.pending
}

// cutID gives the ID of name if it is an entry with that suffix.
func cutID(name, suffix string) (string, bool) {
	id, ok := cutName(name, suffix)
	return id, ok && len(id) <= maxIDBytes
}

// cutName gives the ID of name if the npm package takes it for an entry with that suffix.
// That package bounds no ID: of one that is too long for this package an importer must
// hear all the same.
func cutName(name, suffix string) (string, bool) {
	id, ok := strings.CutSuffix(name, suffix)
	return id, ok && badID(id) == ""
}

// IsLockFile reports whether a file of that name is a transfer lock, or a .reclaim beside
// one.
func IsLockFile(name string) bool { return isLock(strings.TrimSuffix(name, reclaimSuffix)) }

// isLock reports whether name is that of a transfer lock.
func isLock(name string) bool {
	digits, ok := strings.CutPrefix(name, lockPrefix)
	if !ok {
		return false
	}
	digits, ok = strings.CutSuffix(digits, lockSuffix)
	_, err := hex.DecodeString(digits)
	return ok && len(digits) == 32 && err == nil
}

func isTemp(name string) bool { return strings.HasSuffix(name, tempSuffix) }

// tempName is a name that nobody else uses, in the npm package's form: that package
// cleans such files by age, and so do we.
func tempName(prefix string) string {
	return prefix + "." + strconv.Itoa(os.Getpid()) + "." + uuid.NewString() + tempSuffix
}

// checkID says why id cannot be an ID, or nil. The rule is the npm package's, and the
// length is what its names leave room for.
func checkID(id string) error {
	why := badID(id)
	if len(id) > maxIDBytes {
		why = fmt.Sprintf("%d bytes, at most %d", len(id), maxIDBytes)
	}
	if why == "" {
		return nil
	}
	return &Error{File: "ID " + strconv.Quote(id), What: ErrInvalidPath, Why: why}
}

// badID says why id, however long, cannot be an ID; empty: it can.
func badID(id string) string {
	switch {
	case id == "":
		return "empty"
	case id[0] == '.':
		return "may not begin with a dot"
	case !plainName(id):
		return "only A-Z a-z 0-9 . _ - may stand in it"
	case isDevice(id):
		return "a device name on Windows"
	}
	return ""
}

// plainName reports whether only the characters of an ID stand in s.
func plainName(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > 127 || !nameByte(byte(r)) })
}

func nameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
}

// isDevice is the npm package's rule: CON, PRN, AUX, NUL, COM1-9 and LPT1-9, in any
// case and with any extension.
func isDevice(id string) bool {
	base, _, _ := strings.Cut(id, ".")
	switch base = strings.ToUpper(base); base {
	case "CON", "PRN", "AUX", "NUL":
		return true
	}
	return len(base) == 4 && (base[:3] == "COM" || base[:3] == "LPT") && '1' <= base[3] && base[3] <= '9'
}
