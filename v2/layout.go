//go:build unix

package holdfast

import "strings"

// The names of a store's files, as docs/format-v2.md draws them. No other file of
// this package spells or parses a name.
const (
	namespaceDir = ".fs-safe-queue-v2"    // in the root; everything else is in it
	formatFile   = "format.json"          // written once; the lock's turnstile
	stateFile    = "state.json"           // replaced by every commit
	objectsDir   = "objects"              // one directory for each object, named by its token
	holdersDir   = "holders"              // one file for each process that claims, named by its token
	sparePrefix  = "spare-"               // with the feature "spares": the files that the next commits are written into
	reserveFile  = "reserve"              // room given up when the disk is full
	lockFile     = ".state-transfer.lock" // fixed size, overwritten in place, never removed
	payloadFile  = "payload.json"         // in an object's directory, or
	runFile      = "run.json"             // in that of a run

	restoringDir = namespaceDir + ".restoring" // in the root: what a restore makes, until it is whole
	manifestFile = "manifest.json"             // of a copy, beside its state.json and objects/: its last file
)

// spares is how many files take turns with state.json.
const spares = 4

// spareName is the name of the spare that the commit of a revision is written into.
func spareName(revision uint64) string { return sparePrefix + string('0'+byte(revision%spares)) }

// isSpare reports whether name is one of theirs.
func isSpare(name string) bool {
	return len(name) == len(sparePrefix)+1 && strings.HasPrefix(name, sparePrefix) && name[len(sparePrefix)]-'0' < spares
}

const (
	stateTempPrefix   = ".state-"
	reserveTempPrefix = ".reserve-"
	tempSuffix        = ".tmp"
)

// stateTemp is the name under which the state of commit t is written before it
// replaces state.json.
func stateTemp(t token) string { return stateTempPrefix + t.String() + tempSuffix }

// reserveTemp is the name under which a new reserve is written before it
// replaces the old one.
func reserveTemp(t token) string { return reserveTempPrefix + t.String() + tempSuffix }

// isTemp reports whether name is one that a writer of this format leaves when it
// is cut off: exactly what stateTemp or reserveTemp makes, or what renameio makes
// on the way to format.json or state.json. Recover and Collect remove such files
// and nothing else.
func isTemp(name string) bool {
	for _, prefix := range []string{stateTempPrefix, reserveTempPrefix} {
		if t, ok := cutBoth(name, prefix, tempSuffix); ok {
			_, ok = parseToken(t)
			return ok
		}
	}
	for _, file := range []string{formatFile, stateFile} {
		if digits, ok := strings.CutPrefix(name, "."+file); ok {
			return isDecimal(digits)
		}
	}
	return false
}

func cutBoth(s, prefix, suffix string) (string, bool) {
	s, ok := strings.CutPrefix(s, prefix)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(s, suffix)
}

// isDecimal reports whether s is 1 to 19 decimal digits: a non-negative int64, as
// renameio puts at the end of a temp's name.
func isDecimal(s string) bool {
	if len(s) < 1 || len(s) > 19 {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
