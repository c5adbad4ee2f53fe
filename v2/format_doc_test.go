//go:build unix

package holdfast

import (
	"bytes"
	"hash/crc32"
	"os"
	"reflect"
	"strings"
	"testing"

	"example.com/holdfast/queue"
)

// docExample gives a file of the worked example in docs/format-v2.md: the fenced
// block that names it, with the newline at its end.
func docExample(t *testing.T, file string) []byte {
	t.Helper()
	doc, err := os.ReadFile("../docs/format-v2.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(doc), "\n```json "+file+"\n")
	text, _, closed := strings.Cut(rest, "\n```\n")
	if !ok || !closed {
		t.Fatalf("docs/format-v2.md has no example of %s", file)
	}
	return []byte(text + "\n")
}

// The example that a second implementation would be tried on must be true.
func TestDocumentedExample(t *testing.T) {
	same := func(file string, want []byte) {
		t.Helper()
		if got := docExample(t, file); !bytes.Equal(got, want) {
			t.Errorf("%s in docs/format-v2.md\n got %s\nwant %s", file, got, want)
		}
	}
	want := sampleState()
	same("state.json", encodeState(nil, want))
	same("format.json", encodeFormat(want.store))
	same("payload.json of several", []byte(sampleObject+"\n"))

	store, err := decodeFormat(docExample(t, "format.json"), formatFile)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeState(docExample(t, "state.json"), stateFile, store)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Error("the example decodes to something else than what was encoded")
	}

	// The lock's record stands in the text without its padding.
	record := bytes.TrimSuffix(docExample(t, ".state-transfer.lock"), []byte("\n"))
	record = append(record, strings.Repeat(" ", 511-len(record))+"\n"...)
	if owner, blank := decodeRecord(record); owner != sampleOwner() || blank {
		t.Errorf("the lock's record reads as %+v, blank %v", owner, blank)
	}

	// The objects hold what the references say.
	objects := map[token][]byte{
		namedToken("object 1"): bytes.TrimSuffix(docExample(t, "payload.json of several"), []byte("\n")),
		namedToken("object 2"): bytes.TrimSuffix(docExample(t, "payload.json of one"), []byte("\n")),
	}
	checked := 0
	got.refs(func(_, id string, r *ref) bool {
		if object, ok := objects[r.object]; ok {
			payload := object[r.off : r.off+r.size]
			if sum := crc32.Checksum(payload, crc32.MakeTable(crc32.Castagnoli)); sum != r.sum {
				t.Errorf("%s: %q has checksum %08x, its reference says %08x", id, payload, sum, r.sum)
			}
			checked++
		}
		return true
	})
	if checked != 4 {
		t.Errorf("%d payloads of the example were checked, want 4", checked)
	}
}

// A second implementation that follows the chain comes from the first of these to the second.
func TestDocumentedChain(t *testing.T) {
	older, newer := sampleChain()
	name := spareName(older.revision + 1)
	for file, want := range map[string]*state{"state.json of before": older, name: newer} {
		text := docExample(t, file)
		if want := encodeState(nil, want); !bytes.Equal(text, want) {
			t.Errorf("%s in docs/format-v2.md\n got %s\nwant %s", file, text, want)
		}
		got, err := decodeState(text, file, older.store)
		if err != nil || !reflect.DeepEqual(got, want) || !isWhole(text) {
			t.Errorf("%s decodes to something else than what was encoded, or is not whole: %v", file, err)
		}
	}
	if newer.after != older.commit || newer.revision != older.revision+1 {
		t.Error("the second is no successor of the first")
	}
}

// The bounds that the document states are the ones that hold.
func TestDocumentedBounds(t *testing.T) {
	doc, err := os.ReadFile("../docs/format-v2.md")
	if err != nil {
		t.Fatal(err)
	}
	for text, ok := range map[string]bool{
		"9007199254740991":   maxNumber == 9007199254740991,
		"last 64":            maxResolved == 64,
		"at most 1024 bytes": maxCursor == 1024 && maxLastError == 1024 && queue.MaxQueueBytes == 1024,
		"at most 128 bytes":  maxWord == 128 && queue.MaxNameBytes == 128,
		"exactly 512 bytes":  recordSize == 512,
		"at most 1024":       maxImports == 1024,
		"at least 256 KiB":   minReserve == 256<<10,
		"at most 64 KiB":     smallPayload == 64<<10,
		"at most 1 MiB":      maxBatchObject == 1<<20,
		"`123456789` has the checksum `e3069283`": checksum([]byte("123456789")) == 0xe3069283,
	} {
		if !ok || !bytes.Contains(doc, []byte(text)) {
			t.Errorf("docs/format-v2.md and the code disagree about %q", text)
		}
	}
}
