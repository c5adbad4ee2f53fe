//go:build unix

package holdfast

import (
	"math"
	"strconv"
)

// The format in short; docs/format-v2.md has it in full. Every file is canonical
// JSON: one spelling for one value, so that what decodes encodes to the same
// bytes. encode.go writes it, decode.go reads it with the scanner of scan.go,
// check.go holds what must be true across a whole state, record.go is the lock's.
//
//	format.json  {"protocol":"fs-safe-json-queue","version":2,"store":"TOKEN"}⏎
//	state.json   {"commit":"TOKEN","protocol":…,"version":2,"store":"TOKEN","revision":"71",
//	              "features":[],"settings":{"on_dead_owner":"stop"},"fence":12,"recoveries":0,
//	              "resolved":[["TOKEN","6"],…],"queues":[QUEUE,…],"failed":[SPACE,…],"end":"TOKEN"}⏎
//	              and with the feature "import", before the queues, "imports":[["TOKEN","QUEUE","open"],["TOKEN","QUEUE"],…]
//	              and with the feature "spares", behind the features, "after":"TOKEN", and before the end, "sum":"CRC32C"
//	QUEUE        {"name":"mail","next":3,"counters":{…},"paused":true,"cursor":"…","turn":"…",
//	              "failed_in":"…","slots":[SLOT,…]}, and with the feature "runs", before the slots, "runs":[RUN,…]
//	SLOT         ["ID",REF] or ["ID",null,CLAIM] or ["ID",REF,CLAIM]
//	REF          {"g":"TOKEN.INDEX","p":["OBJECT",OFFSET,SIZE,"CRC32C"],"s":SEQ,"t":ENQUEUED,
//	              "a":ATTEMPTS,"e":EXCUSED,"l":LAPSES,"n":NOTBEFORE,"k":"KEY","r":"LAST ERROR","i":"IMPORT"}
//	CLAIM        REF with, at its end, "back":"reaped" or "lease":LEASE
//	LEASE        {"d":DEADLINE,"b":"BOOT ID","m":BOOT MS,"h":"HOLDER","w":"LABEL","f":FENCE}
//	SPACE        {"name":"","entries":[["FAILED NAME","QUEUE","ID",REF,FAILED AT],…]}, and with the feature "runs", before the entries, "runs":[FAILEDRUN,…]
const (
	protocol = "fs-safe-json-queue"
	version  = 2
)

// Bounds of the format.
const (
	maxNumber = 1<<53 - 1 // of every number but a revision: what any JSON reader keeps exact
	maxCursor = 1024      // bytes
	maxWord   = 128       // bytes: a boot id, a feature's name, whatever else is one word

	maxImports = 1024 // that a state remembers
)

// The fields of each object, in the order in which they stand.
var (
	formatFields  = newFields("protocol", "version", "store")
	stateFields   = newFields("commit", "protocol", "version", "store", "revision", "features", "after", "settings", "fence", "recoveries", "resolved", "imports", "queues", "failed", "sum", "end")
	settingFields = newFields("on_dead_owner")
	queueFields   = newFields("name", "next", "counters", "paused", "cursor", "turn", "failed_in", "runs", "slots")
	counterFields = newFields("enqueued", "superseded", "claimed", "completed", "retried", "released", "reaped", "failed", "reprocessed", "cleared", "purged", "damaged")
	refFields     = newFields("g", "p", "s", "t", "a", "e", "l", "n", "k", "r", "i")
	claimFields   = newFields("g", "p", "s", "t", "a", "e", "l", "n", "k", "r", "i", "back", "lease")
	leaseFields   = newFields("d", "b", "m", "h", "w", "f")
	spaceFields   = newFields("name", "runs", "entries")
	ownerFields   = newFields("owner", "pid", "host", "boot", "since", "uncertain")
)

// headSize is at least the length of every state's head.
const headSize = len(`{"commit":"","protocol":"`+protocol+`","version":2,"store":"","revision":""`) + 2*tokenChars + len("18446744073709551615")

// encodeFormat gives format.json.
func encodeFormat(store token) []byte {
	b := append([]byte(`{"protocol":"`+protocol+`","version":`), strconv.Itoa(version)...)
	b = append(b, `,"store":"`...)
	b = store.append(b)
	return append(b, "\"}\n"...)
}

// decodeFormat reads format.json and gives the store's id. It takes only what
// encodeFormat writes; any error is a *CorruptError.
func decodeFormat(b []byte, file string) (token, error) {
	s := newScanner(b)
	o := s.open(formatFields)
	s.identity(&o)
	store := s.storeID(&o)
	o.close()
	s.end()
	if s.err != nil {
		return token{}, s.corrupt(file)
	}
	return store, nil
}

// stateHead gives the first bytes of a state up to and including its revision:
// enough to recognise a state without reading it all, for no two states share
// revision and commit token. It gives nil when b, of which headSize bytes are
// enough, does not begin as a state does.
func stateHead(b []byte) []byte {
	s := newScanner(b)
	o := s.open(stateFields)
	s.head(&o)
	if s.err != nil {
		return nil
	}
	return b[:s.i]
}

// A head is what the first bytes of a state say.
type head struct {
	commit, store token
	revision      uint64
}

// head reads a state's fields up to the revision.
func (s *scanner) head(o *members) head {
	var h head
	o.must("commit")
	h.commit = s.token("commit token")
	s.identity(o)
	h.store = s.storeID(o)
	o.must("revision")
	h.revision = s.revision()
	return h
}

// identity reads the protocol and the version, and refuses others than ours.
func (s *scanner) identity(o *members) {
	o.must("protocol")
	at := s.i
	if p := s.string("protocol", maxWord); s.err == nil && string(p) != protocol {
		s.final(at, ErrCorrupt, "protocol %q: this program knows %q", p, protocol)
	}
	o.must("version")
	at = s.i
	if v := s.number(); s.err == nil && v != version {
		s.final(at, ErrVersion, "version %d: this program knows version %d", v, version)
	}
}

func (s *scanner) storeID(o *members) token {
	o.must("store")
	return s.token("store id")
}

// revision reads a revision: a decimal number from 1 in quotes, because it may
// pass what every JSON reader keeps exact.
func (s *scanner) revision() uint64 {
	at := s.i
	text := s.string("revision", maxWord)
	if s.err != nil {
		return 0
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != string(text) {
		s.fail(at, "revision %q is not a canonical decimal number from 1 to %d", text, uint64(math.MaxUint64))
		return 0
	}
	return n
}
