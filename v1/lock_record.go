//go:build unix

package holdfast

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// A transfer lock is a file. It holds an object in the two-space layout, a newline,
// one line that nobody else could have written, and a newline:
//
//	{
//	  "ownerToken": "0b9f…",                        a UUID
//	  "createdAt": "2026-01-02T03:04:05.678Z"
//	}
//	⇥⇥⇥⇥⇥⇥⇥⇥                                      8 tabs, then 128 characters, each a tab or a space
//
// The last line is 16 random bytes, a bit a character. A holder knows its lock by the
// exact bytes.
const (
	createdLayout  = "2006-01-02T15:04:05.000Z"
	maxRecordBytes = 1 << 20
)

// newRecord gives the text of a new lock and its owner token.
func newRecord(now time.Time) (text []byte, owner string) {
	owner = uuid.NewString()
	text = fmt.Appendf(nil, "{\n  \"ownerToken\": %q,\n  \"createdAt\": %q\n}\n\t\t\t\t\t\t\t\t", owner, now.UTC().Format(createdLayout))
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // never fails: crypto/rand ends the program instead
	for _, b := range bits {
		for bit := 7; bit >= 0; bit-- {
			text = append(text, " \t"[b>>bit&1])
		}
	}
	return append(text, '\n'), owner
}

// parseRecord gives what text tells: a zero time where it is not to be read. Other
// programs of the protocol may write more fields, or fewer.
func parseRecord(text []byte) (owner string, created time.Time) {
	var r map[string]any
	if json.Unmarshal(text, &r) != nil {
		return "", time.Time{} // cut short, or not a lock's text at all
	}
	owner, _ = r["ownerToken"].(string)
	at, _ := r["createdAt"].(string)
	created, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return owner, time.Time{}
	}
	return owner, created
}
