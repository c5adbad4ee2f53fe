package queue

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxNameBytes bounds an ID, each component of a queue name, a key and a label.
const MaxNameBytes = 128

// MaxQueueBytes bounds a whole queue name.
const MaxQueueBytes = 1024

// reserved are the words that end a control path in systems that mount queues as
// files; a queue may not end in one (seed: QueueFS control names).
var reserved = []string{"enqueue", "dequeue", "peek", "size", "status", "messages", "clear", "ack"}

// CheckID says why id is not usable as a message ID, or nil. An ID is
// [A-Za-z0-9_-][A-Za-z0-9._-]*, at most [MaxNameBytes] bytes, and neither a
// Windows device name nor ended by a dot.
func CheckID(id string) error { return checkComponent("ID", id) }

// CheckQueue says why name is not usable as a queue name, or nil. A queue name
// is one or more components, each formed as an ID, separated by slashes; the last
// may not be one of enqueue, dequeue, peek, size, status, messages, clear, ack, in
// any case.
func CheckQueue(name string) error {
	if len(name) > MaxQueueBytes {
		return fmt.Errorf("queue name of %d bytes: at most %d: %w", len(name), MaxQueueBytes, ErrInvalidName)
	}
	what, last := "queue name", ""
	if strings.Contains(name, "/") {
		what = "a component of the queue name"
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" && name != "" {
			return fmt.Errorf("queue name %q: an empty component beside a slash: %w", name, ErrInvalidName)
		}
		if err := checkComponent(what, part); err != nil {
			return err
		}
		last = part
	}
	for _, word := range reserved {
		if strings.EqualFold(last, word) {
			return fmt.Errorf("queue name %q: the last component may not be %q, which is reserved: %w", name, word, ErrInvalidName)
		}
	}
	return nil
}

// CheckFailedName says why name cannot be the name of a failed message, or nil.
// Beside IDs, ID~generation is a failed name: engines make it when a cap meets a
// name that is taken.
func CheckFailedName(name string) error {
	id, generation, made := strings.Cut(name, "~")
	if err := checkComponent("failed name", id); err != nil {
		return err
	}
	if made {
		return checkComponent("failed name", generation)
	}
	return nil
}

// CheckText says why s cannot be a label or a key, or nil: at most [MaxNameBytes]
// bytes of valid UTF-8 without control characters, the ones above ASCII included:
// U+009B alone starts an escape sequence on some terminals.
func CheckText(what, s string) error {
	if len(s) > MaxNameBytes {
		return fmt.Errorf("%s of %d bytes: at most %d: %w", what, len(s), MaxNameBytes, ErrInvalidName)
	}
	if !utf8.ValidString(s) {
		return fmt.Errorf("%s is not valid UTF-8: %w", what, ErrInvalidName)
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return fmt.Errorf("%s contains the control character %U: %w", what, r, ErrInvalidName)
		}
	}
	return nil
}

func checkComponent(what, s string) error {
	switch {
	case s == "":
		return fmt.Errorf("empty %s: %w", what, ErrInvalidName)
	case len(s) > MaxNameBytes:
		return fmt.Errorf("%s of %d bytes: at most %d: %w", what, len(s), MaxNameBytes, ErrInvalidName)
	case s[0] == '.':
		return fmt.Errorf("%s %q: may not begin with a dot: %w", what, s, ErrInvalidName)
	case s[len(s)-1] == '.':
		return fmt.Errorf("%s %q: may not end with a dot: %w", what, s, ErrInvalidName)
	}
	for i := range len(s) {
		if !nameByte(s[i]) {
			return fmt.Errorf("%s %q: only A-Z a-z 0-9 . _ - may stand in it: %w", what, s, ErrInvalidName)
		}
	}
	if isDevice(s) {
		return fmt.Errorf("%s %q: a device name on Windows: %w", what, s, ErrInvalidName)
	}
	return nil
}

func nameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
}

// isDevice reports whether Windows would read s as a device: CON, PRN, AUX, NUL,
// COM0-9 and LPT0-9, in any case and with any extension.
func isDevice(s string) bool {
	base, _, _ := strings.Cut(s, ".")
	switch base = strings.ToUpper(base); base {
	case "CON", "PRN", "AUX", "NUL":
		return true
	}
	return len(base) == 4 && (base[:3] == "COM" || base[:3] == "LPT") && '0' <= base[3] && base[3] <= '9'
}
