//go:build unix

package holdfast

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// What a manifest says of itself. In a copy of version 1 an object stood as it was, up to the
// end of the last message that was named.
const (
	manifestFormat  = "holdfast-backup"
	manifestVersion = 2
)

// A manifest is the last file of a copy: where it is missing the copy is not whole. It
// names every other file, in the order in which they were written.
type manifest struct {
	Format   string         `json:"format"`
	Version  int            `json:"version"`
	Store    string         `json:"store"`
	Revision string         `json:"revision"` // a number: it may pass what every JSON reader keeps exact
	Commit   string         `json:"commit"`
	Taken    time.Time      `json:"taken"`
	Messages int64          `json:"messages"`
	Failed   int64          `json:"failed"`
	Files    []manifestFact `json:"files"`
}

// A manifestFact is what a manifest says of a file.
type manifestFact struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

func newManifest(st *state, now instant, r Report) manifest {
	return manifest{
		Format: manifestFormat, Version: manifestVersion, Store: st.store.String(), Revision: strconv.FormatUint(st.revision, 10),
		Commit: st.commit.String(), Taken: now.Wall.UTC().Truncate(time.Millisecond), Messages: r.Messages, Failed: r.Failed,
	}
}

func factOf(path string, data []byte) manifestFact {
	sum := sha256.Sum256(data)
	return manifestFact{path, int64(len(data)), hex.EncodeToString(sum[:])}
}

func (m *manifest) add(path string, data []byte) { m.Files = append(m.Files, factOf(path, data)) }

func (m *manifest) encode() []byte {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // its types always encode
	}
	return append(text, '\n')
}

// decodeManifest takes exactly what encode writes. A version that it does not know is told
// as such.
func decodeManifest(text []byte) (*manifest, error) {
	refuse := func(err error, format string, args ...any) (*manifest, error) {
		return nil, &BackupError{Entry: manifestFile, Reason: fmt.Sprintf(format, args...), Err: err}
	}
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return refuse(nil, "is no manifest: %v", err)
	}
	switch {
	case m.Format != manifestFormat:
		return refuse(nil, "is no manifest: its format is %s", quoted(m.Format))
	case m.Version != manifestVersion:
		return refuse(ErrVersion, "is of version %d, this program knows %d", m.Version, manifestVersion)
	case !bytes.Equal(m.encode(), text), m.Taken.Location() != time.UTC:
		// In another zone it might be of a year that JSON does not have in this one.
		return refuse(nil, "is spelled otherwise than a backup spells it")
	}
	return &m, nil
}
