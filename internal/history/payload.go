package history

import (
	"bytes"
	"fmt"
	"strconv"
)

// Payload is what the message of an ID holds: of version 0 as it is enqueued, of
// others as the step ReplacePayload makes it.
func Payload(id string, version int) []byte {
	v := ""
	if version != 0 {
		v = `"v":` + strconv.Itoa(version) + `, `
	}
	return []byte(`{ ` + v + `"id":"` + id + `", "n":9007199254740993, "s":"😀 <&> \u2028" }`)
}

// versionOf tells which version a payload is of. One that differs in any byte is
// none.
func versionOf(id string, payload []byte) (int, error) {
	version := 0
	if rest, found := bytes.CutPrefix(payload, []byte(`{ "v":`)); found {
		number, _, _ := bytes.Cut(rest, []byte(`,`))
		version, _ = strconv.Atoi(string(number)) // what is no number has no such payload either
	}
	if !bytes.Equal(payload, Payload(id, version)) {
		return 0, fmt.Errorf("the payload of %s is %q", id, payload)
	}
	return version, nil
}
