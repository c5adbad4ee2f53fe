//go:build unix

package holdfast

import (
	"fmt"
	"strings"
	"testing"
)

// Every refusal of docs/format-v2.md, each made from the sample by one change.
func TestStateRefusals(t *testing.T) {
	st := sampleState()
	good := string(encodeState(nil, st))
	long := func(n int) string { return strings.Repeat("x", n) }
	gen := func(commit string, index int) string { return fmt.Sprintf("%s.%d", namedToken(commit), index) }
	object := func(name string) string { return namedToken(name).String() }
	resolved := func(n int) string {
		return strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`["%s","1"],`, object("x")), n), ",")
	}

	for _, c := range []struct {
		name, old, new, reason string
		sentinel               error
	}{
		// What kind of file it is.
		{"empty", good, "", "empty", ErrCorrupt},
		{"another version", `"version":2`, `"version":3`, "version 3: this program knows version 2", ErrVersion},
		{"an older version", `"version":2`, `"version":1`, "version 1", ErrVersion},
		{"another protocol", protocol, "fs-safe-xml-queue", `protocol "fs-safe-xml-queue"`, ErrCorrupt},
		{"another store", object("store"), object("elsewhere"), "the state of store " + object("elsewhere") + ", in store " + object("store"), ErrCorrupt},
		{"unknown feature", `"features":[]`, `"features":["wings"]`, `feature "wings"`, ErrVersion},
		{"unknown feature and its fields", `"features":[],`, `"features":["wings"],"wings":[],`, `feature "wings"`, ErrVersion},
		{"trailing bytes", "}\n", "}\n{}", "2 trailing bytes", ErrCorrupt},
		{"trailing newline", "}\n", "}\n\n", "trailing bytes", ErrCorrupt},
		{"trailing zero", "}\n", "}\n\x00", "1 trailing bytes", ErrCorrupt},
		{"byte order mark", `{"commit`, "\ufeff{\"commit", `want "{"`, ErrCorrupt},

		// Fields.
		{"case variant", `"commit":`, `"Commit":`, `field "Commit": its name is "commit"`, ErrCorrupt},
		{"case variant inside", `"slots":`, `"SLOTS":`, `field "SLOTS"`, ErrCorrupt},
		{"case variant of an optional field", `"paused":`, `"Paused":`, `field "Paused"`, ErrCorrupt},
		{"unknown field", `"fence":`, `"hedge":1,"fence":`, `unknown field "hedge"`, ErrCorrupt},
		{"unknown field inside", `"s":1,`, `"s":1,"z":0,`, `unknown field "z"`, ErrCorrupt},
		{"unknown field at the end", `"end":`, `"tail":0,"end":`, `unknown field "tail"`, ErrCorrupt},
		{"unknown setting", `"stop"}`, `"stop","after":1}`, `unknown field "after"`, ErrCorrupt},
		{"escaped name", `"fence":`, `"fenc\u0065":`, `unknown field`, ErrCorrupt},
		{"duplicate field", `"fence":25,`, `"fence":25,"fence":25,`, `duplicate field "fence"`, ErrCorrupt},
		{"duplicate first field", `,"fence"`, `,"commit":"x","fence"`, `duplicate field "commit"`, ErrCorrupt},
		{"duplicate optional field", `"paused":true,`, `"paused":true,"paused":true,`, `duplicate field "paused"`, ErrCorrupt},
		{"duplicate field of a reference", `"s":1,`, `"s":1,"s":1,`, `duplicate field "s"`, ErrCorrupt},
		{"out of order", `"fence":25,"recoveries":1`, `"recoveries":1,"fence":25`, `field "recoveries" out of order; want the field "fence"`, ErrCorrupt},
		{"optional out of order", `"paused":true,"cursor":"offset=18"`, `"cursor":"offset=18","paused":true`, `field "paused" out of order`, ErrCorrupt},
		{"missing field", `"recoveries":1,`, ``, `want the field "recoveries"`, ErrCorrupt},
		{"missing last field", `,"f":24}`, `}`, `want the field "f"`, ErrCorrupt},
		{"missing counter", `"reaped":1,`, ``, `want the field "reaped"`, ErrCorrupt},
		{"name without its value", `"fence":25`, `"fence"`, `want ":"`, ErrCorrupt},
		{"both ends of a claim", `"back":"reaped"`, `"back":"retried","lease":{"f":1}`, `field "lease" out of order`, ErrCorrupt},
		{"a released claim with a lease", `"back":"reaped"`, `"back":"released","lease":{"f":1}`, `field "lease" out of order`, ErrCorrupt},
		{"a reprocessed claim with a lease", `"back":"reaped"`, `"back":"reprocessed","lease":{"f":1}`, `field "lease" out of order`, ErrCorrupt},
		{"the lease before the return", `"back":"reaped"`, `"lease":{"f":1},"back":"reaped"`, `field "back" out of order`, ErrCorrupt},
		{"two leases", `"back":"reaped"`, `"back":"reaped","lease":{"f":1},"lease":{"f":1}`, `duplicate field "lease"`, ErrCorrupt},
		{"a kept lease without its fence", `"back":"reaped"`, `"back":"reaped","lease":{}`, `want the field "f"`, ErrCorrupt},
		{"a kept lease that is null", `"back":"reaped"`, `"back":"reaped","lease":null`, `want "{"`, ErrCorrupt},
		{"a kept lease with an unknown field", `"back":"reaped"`, `"back":"reaped","lease":{"f":1,"x":1}`, `unknown field "x"`, ErrCorrupt},
		{"a kept lease with half a boot", `"back":"reaped"`, `"back":"reaped","lease":{"b":"boot","f":1}`, `want the field "m"`, ErrCorrupt},
		{"no end of a claim", `,"back":"reaped"`, ``, `want the field "lease"`, ErrCorrupt},
		{"unknown return", `"back":"reaped"`, `"back":"lapsed"`, `back "lapsed"`, ErrCorrupt},
		{"empty return", `"back":"reaped"`, `"back":""`, `back ""`, ErrCorrupt},
		{"return in a pending reference", `"s":1,"t":1767323045678}`, `"s":1,"t":1767323045678,"back":"reaped"}`, `unknown field "back"`, ErrCorrupt},
		{"boot id alone", `,"m":912345`, ``, `want the field "m"`, ErrCorrupt},
		{"boot clock alone", `"b":"6f1c2a34-0d1e-4c55-9a77-2d1b8f0e9c11",`, ``, `field "m" out of order`, ErrCorrupt},

		// One spelling only.
		{"space", `"fence":25`, `"fence": 25`, "white space", ErrCorrupt},
		{"space before a comma", `"fence":25,`, `"fence":25 ,`, "white space", ErrCorrupt},
		{"space before a colon", `"fence":25`, `"fence" :25`, "white space", ErrCorrupt},
		{"space after a comma", `,"fence"`, `, "fence"`, "white space", ErrCorrupt},
		{"space in an array", `"slots":[[`, `"slots":[ [`, "white space", ErrCorrupt},
		{"indentation", `{"commit`, "{\n  \"commit", "white space", ErrCorrupt},
		{"carriage return", "}\n", "}\r\n", "2 trailing bytes", ErrCorrupt},
		{"leading space", `{"commit`, ` {"commit`, "white space", ErrCorrupt},
		{"no comma", `,"fence"`, `"fence"`, `want the field "fence"`, ErrCorrupt},
		{"comma before the end of an array", `]]}`, `]],}`, "", ErrCorrupt},
		{"zero in full", `"s":1,"t":1767323045678`, `"s":1,"t":1767323045678,"a":0`, "attempts of zero", ErrCorrupt},
		{"zero not-before", `"s":1,"t":1767323045678`, `"s":1,"t":1767323045678,"n":0`, "not-before of zero", ErrCorrupt},
		{"empty key", `"s":1,"t":1767323045678`, `"s":1,"t":1767323045678,"k":""`, "an empty key", ErrCorrupt},
		{"empty last error", `"s":1,"t":1767323045678`, `"s":1,"t":1767323045678,"r":""`, "an empty last error", ErrCorrupt},
		{"empty cursor", `"cursor":"offset=18"`, `"cursor":""`, "an empty cursor", ErrCorrupt},
		{"empty turn", `"turn":"chat-42"`, `"turn":""`, "an empty turn", ErrCorrupt},
		{"not paused in full", `"paused":true`, `"paused":false`, `want "true"`, ErrCorrupt},
		{"no deadline in full", `"lease":{"f":25}`, `"lease":{"d":0,"f":25}`, "deadline of zero", ErrCorrupt},
		{"no lease in full", `"back":"reaped"`, `"back":"reaped","lease":{"f":0}`, "a lease of nothing: it must be left out", ErrCorrupt},
		{"no deadline of a kept lease in full", `"back":"reaped"`, `"back":"reaped","lease":{"d":0,"f":1}`, "deadline of zero", ErrCorrupt},
		{"no holder of a kept lease in full", `"back":"reaped"`, `"back":"reaped","lease":{"h":"` + token{}.String() + `","f":1}`, "a holder that is zero", ErrCorrupt},
		{"no boot id in full", `"lease":{"f":25}`, `"lease":{"b":"","m":0,"f":25}`, "an empty boot id", ErrCorrupt},
		{"no holder in full", `"lease":{"f":25}`, `"lease":{"h":"` + token{}.String() + `","f":25}`, "a holder that is zero", ErrCorrupt},
		{"no label in full", `"lease":{"f":25}`, `"lease":{"w":"","f":25}`, "an empty label", ErrCorrupt},
		{"no claim in full", `"t":1767323045678}]`, `"t":1767323045678},null]`, `want "{"`, ErrCorrupt},
		{"neither side", `["x_1",null,`, `["x_0",null],["x_1",null,`, `want ","`, ErrCorrupt},
		{"no side", `["x_1",null,`, `["x_0"],["x_1",null,`, `want ","`, ErrCorrupt},

		// Numbers.
		{"leading zero", `"fence":25`, `"fence":025`, "leading zero", ErrCorrupt},
		{"minus", `"fence":25`, `"fence":-25`, "negative", ErrCorrupt},
		{"plus", `"fence":25`, `"fence":+25`, "want a number", ErrCorrupt},
		{"exponent", `"fence":25`, `"fence":25e0`, "exponent", ErrCorrupt},
		{"fraction", `"fence":25`, `"fence":25.0`, "fraction", ErrCorrupt},
		{"number as text", `"fence":25`, `"fence":"25"`, "want a number", ErrCorrupt},
		{"null", `"fence":25`, `"fence":null`, "want a number", ErrCorrupt},
		{"beyond 2^53-1", `"fence":25`, `"fence":9007199254740992`, "beyond 9007199254740991", ErrCorrupt},
		{"beyond 64 bits", `"fence":25`, `"fence":18446744073709551641`, "beyond", ErrCorrupt},
		{"revision zero", `"revision":"71"`, `"revision":"0"`, `revision "0"`, ErrCorrupt},
		{"revision as number", `"revision":"71"`, `"revision":71`, "want revision in quotes", ErrCorrupt},
		{"revision with a leading zero", `"revision":"71"`, `"revision":"07"`, `revision "07"`, ErrCorrupt},
		{"revision with a sign", `"revision":"71"`, `"revision":"+7"`, `revision "+7"`, ErrCorrupt},
		{"revision beyond 64 bits", `"revision":"71"`, `"revision":"18446744073709551616"`, "revision", ErrCorrupt},
		{"no revision", `"revision":"71"`, `"revision":""`, `revision ""`, ErrCorrupt},
		{"resolved revision", `"58"]]`, `"058"]]`, `revision "058"`, ErrCorrupt},
		{"too many resolved", `"resolved":[`, `"resolved":[` + resolved(maxResolved) + ",", "more than 64 resolved", ErrCorrupt},

		// Tokens, generations and checksums.
		{"token that climbs", `["` + object("object 2"), `["../x`, `"../x" is not a token`, ErrCorrupt},
		{"token in upper case", `["` + object("object 2"), `["` + strings.ToUpper(object("object 2")), "is not a token", ErrCorrupt},
		{"short token", `["` + object("object 2"), `["` + object("object 2")[1:], "is not a token", ErrCorrupt},
		{"token with spare bits", `["` + object("object 2"), `["` + object("object 2")[:25] + "b", "is not a token", ErrCorrupt},
		{"token with a newline", `["` + object("object 2"), `["` + object("object 2")[:25] + `\u000a`, "is not a token", ErrCorrupt},
		{"holder", object("holder"), "me", `holder "me" is not a token`, ErrCorrupt},
		{"generation without index", gen("commit 1", 0), object("commit 1"), "is not a generation", ErrCorrupt},
		{"generation with a leading zero", gen("commit 1", 0), object("commit 1") + ".00", "is not a generation", ErrCorrupt},
		{"generation beyond 32 bits", gen("commit 1", 0), object("commit 1") + ".4294967296", "is not a generation", ErrCorrupt},
		{"generation with a bad token", gen("commit 1", 0), "../x.0", "is not a generation", ErrCorrupt},
		{"long checksum", `",1,12,"`, `",1,12,"0`, "checksum", ErrCorrupt},
		{"checksum in upper case", fmt.Sprintf(`"%08x"`, checksum([]byte(`{"to":"ann"}`))), `"0123ABCD"`, `checksum "0123ABCD"`, ErrCorrupt},

		// Strings.
		{"escaped slash", `mail/intake`, `mail\/intake`, `the escape`, ErrCorrupt},
		{"short escape", `\u000a`, `\n`, `the escape`, ErrCorrupt},
		{"escape in upper case", `\u000a`, `\u000A`, `the escape`, ErrCorrupt},
		{"escape of a letter", `smtp`, `\u0073mtp`, `the escape`, ErrCorrupt},
		{"escape of a space", `smtp: 550`, `smtp:\u0020550`, `the escape`, ErrCorrupt},
		{"escape of DEL", `smtp`, `\u007f`, `the escape`, ErrCorrupt},
		{"escape beyond ASCII", `ü`, `\u00fc`, `the escape`, ErrCorrupt},
		{"escape of a surrogate", `smtp`, `\ud800`, `the escape`, ErrCorrupt},
		{"raw control character", `\u000a`, "\n", "raw control character", ErrCorrupt},
		{"invalid UTF-8", `ü`, "\xfc", "invalid UTF-8", ErrCorrupt},
		{"a surrogate in UTF-8", `ü`, "\xed\xa0\x80", "invalid UTF-8", ErrCorrupt},
		{"string that does not end", `"end":"`, `"end":`, "want end in quotes", ErrCorrupt},

		// Names and texts.
		{"queue name", `"name":"mail",`, `"name":"../mail",`, "queue name", ErrCorrupt},
		{"reserved queue name", `"name":"mail",`, `"name":"ack",`, "reserved", ErrCorrupt},
		{"empty queue name", `"name":"mail",`, `"name":"",`, "empty queue name", ErrCorrupt},
		{"long queue name", `"name":"mail",`, `"name":"` + long(1025) + `",`, "at most 1024", ErrCorrupt},
		{"ID", `["ann"`, `[".ann"`, `ID ".ann"`, ErrCorrupt},
		{"device ID", `["ann"`, `["aux.1"`, "device name", ErrCorrupt},
		{"long ID", `["ann"`, `["` + long(129) + `"`, "at most 128", ErrCorrupt},
		{"failed name", `[["dan"`, `[["dan~"`, "failed name", ErrCorrupt},
		{"failed ID", `"mail","dan"`, `"mail","da n"`, "ID", ErrCorrupt},
		{"failed queue", `"mail","dan"`, `"ma il","dan"`, "queue name", ErrCorrupt},
		{"failed namespace", `"name":"intake"`, `"name":"in take"`, "queue name", ErrCorrupt},
		{"failed namespace of a queue", `"failed_in":"intake"`, `"failed_in":""`, "empty queue name", ErrCorrupt},
		{"long key", `"k":"chat-42"`, `"k":"` + long(129) + `"`, "key of 129 bytes: at most 128", ErrCorrupt},
		{"key with a control character", `"k":"chat-42"`, `"k":"chat\u0000"`, "control character", ErrCorrupt},
		{"turn with a control character", `"turn":"chat-42"`, `"turn":"chat` + "\x7f" + `"`, "control character", ErrCorrupt},
		{"long label", `"w":"worker 3"`, `"w":"` + long(129) + `"`, "label of 129 bytes", ErrCorrupt},
		{"long boot id", `"b":"`, `"b":"` + long(128), "boot id of 164 bytes", ErrCorrupt},
		{"long last error", `"r":"smtp`, `"r":"` + long(1024), "last error is longer than 1024 bytes", ErrCorrupt},
		{"long plain last error", `"r":"its \"holder\"\u000adied"`, `"r":"` + long(1025) + `"`, "last error of 1025 bytes", ErrCorrupt},
		{"long cursor", `"cursor":"`, `"cursor":"` + long(1024), "cursor of 1033 bytes", ErrCorrupt},
		{"setting", `"stop"`, `"maybe"`, `on_dead_owner "maybe"`, ErrCorrupt},
		{"no setting", `"stop"`, `""`, `on_dead_owner ""`, ErrCorrupt},

		// What must hold in a whole.
		{"IDs not sorted", `["ann"`, `["bobby"`, `ID "bob" after "bobby"`, ErrCorrupt},
		{"ID twice", `["ann"`, `["bob"`, `ID "bob" after "bob"`, ErrCorrupt},
		{"queues not sorted", `"name":"mail",`, `"name":"nail",`, `queue "mail/intake" after "nail"`, ErrCorrupt},
		{"queue twice", `"name":"mail",`, `"name":"mail/intake",`, `queue "mail/intake" after "mail/intake"`, ErrCorrupt},
		{"failed namespaces not sorted", `{"name":"",`, `{"name":"z",`, `failed namespace "intake" after "z"`, ErrCorrupt},
		{"failed namespace twice", `{"name":"",`, `{"name":"intake",`, `failed namespace "intake" after "intake"`, ErrCorrupt},
		{"failed names not sorted", `[["dan"`, `[["eve"`, `failed name "dan~` + gen("commit 2", 2) + `" after "eve"`, ErrCorrupt},
		{"failed name twice", `[["dan"`, `[["dan~` + gen("commit 2", 2) + `"`, `failed name "dan~` + gen("commit 2", 2) + `" after "dan~`, ErrCorrupt},
		{"sequence not given out", `"next":7`, `"next":4`, "sequence 4, but the queue's next is 4", ErrCorrupt},
		{"sequence twice", `"s":2,`, `"s":1,`, `IDs "ann" and "bob" have sequence 1 both`, ErrCorrupt},
		{"sequence twice in one slot", `"s":4,`, `"s":3,`, `have sequence 3 both`, ErrCorrupt},
		{"pending with attempts", `"s":1,"t":1767323045678}`, `"s":1,"t":1767323045678,"a":1}`, `ID "ann": pending, with 1 attempts`, ErrCorrupt},
		{"claimed without", `,"a":1,"lease":{"f":25}`, `,"lease":{"f":25}`, `ID "x_1": claimed, with no attempt`, ErrCorrupt},
		{"retried without", `,"a":1,"lease":{"f":25}`, `,"back":"retried"`, `ID "x_1": claimed, with no attempt`, ErrCorrupt},
		{"released without", `,"a":1,"lease":{"f":25}`, `,"back":"released"`, `ID "x_1": claimed, with no attempt`, ErrCorrupt},
		{"reaped without", `,"a":1,"lease":{"f":25}`, `,"back":"reaped"`, `ID "x_1": claimed, with no attempt`, ErrCorrupt},
		{"reaped without a lapse", `"a":1,"lease":{"f":25}`, `"a":1,"back":"reaped"`, `ID "x_1": reaped, with no lapse`, ErrCorrupt},
		{"leased, and this attempt excused", `"a":1,"lease":{"f":25}`, `"a":1,"e":1,"lease":{"f":25}`, `ID "x_1": leased, with 1 excused and 0 lapses of 1 attempts`, ErrCorrupt},
		{"leased, and this attempt lapsed", `"a":3,"e":1,"lease"`, `"a":3,"e":1,"l":2,"lease"`, `ID "carol": leased, with 1 excused and 2 lapses of 3 attempts`, ErrCorrupt},
		{"reprocessed without, and excused", `,"a":1,"lease":{"f":25}`, `,"e":1,"back":"reprocessed"`, "1 excused and 0 lapses of 0 attempts", ErrCorrupt},
		{"reprocessed without, in full", `,"a":1,"lease":{"f":25}`, `,"a":0,"back":"reprocessed"`, "attempts of zero", ErrCorrupt},
		{"reprocessed on the pending side", `"t":1767323045678}]`, `"t":1767323045678,"back":"reprocessed"}]`, `unknown field "back"`, ErrCorrupt},
		{"excused beyond the attempts", `"e":1`, `"e":4`, "4 excused and 0 lapses of 3 attempts", ErrCorrupt},
		{"lapses beyond the attempts", `"l":1`, `"e":1,"l":1`, "1 excused and 1 lapses of 1 attempts", ErrCorrupt},
		{"generation twice", gen("commit 1", 1), gen("commit 1", 0), "generation " + gen("commit 1", 0) + " is at byte", ErrCorrupt},
		{"generation twice over queues", gen("commit 2", 1), gen("commit 2", 0), "generation " + gen("commit 2", 0) + " is at byte", ErrCorrupt},
		{"generation failed and live", gen("commit 1", 3), gen("commit 1", 2), "generation " + gen("commit 1", 2) + " is at byte", ErrCorrupt},
		{"overlap", `",14,12,`, `",12,12,`, "overlap", ErrCorrupt},
		{"overlap by one", `",14,12,`, `",14,14,`, "bytes 27 to 30 of object " + object("object 1") + " overlap", ErrCorrupt},
		{"one range inside another", `",14,12,`, `",2,1,`, "overlap", ErrCorrupt},
		{"the same range", `",14,12,`, `",1,12,`, "overlap", ErrCorrupt},
		{"overlap over queues", object("object 3"), object("object 2"), "overlap", ErrCorrupt},
		{"overlap with a failed one", object("object 4"), object("object 2"), "overlap", ErrCorrupt},
		{"negative offset", `",14,12,`, `",-14,12,`, "negative", ErrCorrupt},
		{"negative size", `",14,12,`, `",14,-12,`, "negative", ErrCorrupt},
		{"size zero", `",14,12,`, `",14,0,`, "a payload of 0 bytes", ErrCorrupt},
		{"range beyond 2^53-1", `",14,12,`, `",9007199254740980,12,`, "at offset 9007199254740980", ErrCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad := strings.Replace(good, c.old, c.new, 1)
			if bad == good {
				t.Fatal("the case changes nothing")
			}
			_, err := decodeState([]byte(bad), "state.json", st.store)
			refused(t, err, "state.json", c.reason, c.sentinel)
		})
	}
}

// What stands at a bound is taken, and what may be left out where it is.
func TestStateBoundsAreTaken(t *testing.T) {
	st := sampleState()
	good := string(encodeState(nil, st))
	long := func(n int) string { return strings.Repeat("é", n/2) }
	holder := namedToken("holder").String()
	resolved := strings.Repeat(fmt.Sprintf(`["%s","18446744073709551615"],`, namedToken("x")), maxResolved-1)
	for _, c := range []struct{ name, old, new string }{
		{"greatest number", `"fence":25`, `"fence":9007199254740991`},
		{"greatest revision", `"revision":"71"`, `"revision":"18446744073709551615"`},
		{"most resolved", `"resolved":[`, `"resolved":[` + resolved},
		{"longest key", `"k":"chat-42"`, `"k":"` + long(128) + `"`},
		{"longest last error", `"r":"smtp: 550 ünknown"`, `"r":"` + long(1022) + `\u001f\""`},
		{"longest cursor", `"cursor":"offset=18"`, `"cursor":"` + long(1024) + `"`},
		{"last byte of 2^53-1", `",14,12,`, `",9007199254740979,12,`},
		{"adjacent payloads", `",14,12,`, `",13,14,`},
		{"failed name with a generation", `[["dan"`, `[["dan~` + namedToken("commit 1").String() + `.3"`},
		{"a reaped claim with its lease", `"back":"reaped"`, `"back":"reaped","lease":{"d":1,"b":"boot","m":2,"h":"` + holder + `","w":"worker","f":3}`},
		{"a reaped claim with a fence", `"back":"reaped"`, `"back":"reaped","lease":{"f":1}`},
		{"a reaped claim with a holder and no fence", `"back":"reaped"`, `"back":"reaped","lease":{"h":"` + holder + `","f":0}`},
		{"a reaped claim with a label and no fence", `"back":"reaped"`, `"back":"reaped","lease":{"w":"worker","f":0}`},
		{"a reaped claim with a deadline and no fence", `"back":"reaped"`, `"back":"reaped","lease":{"d":1,"f":0}`},
		{"a reaped claim with a boot and no fence", `"back":"reaped"`, `"back":"reaped","lease":{"b":"boot","m":0,"f":0}`},
		{"a lease of nothing that is out", `"lease":{"f":25}`, `"lease":{"f":0}`},
		{"a lease for ever with a holder and its boot", `"lease":{"f":25}`, `"lease":{"b":"boot","m":0,"h":"` + holder + `","f":25}`},
		{"a lease for ever with a boot alone", `"lease":{"f":25}`, `"lease":{"b":"boot","m":0,"f":25}`},
		{"a lease for ever with a holder alone", `"lease":{"f":25}`, `"lease":{"h":"` + holder + `","f":25}`},
		{"a deadline at the time of the boot", `"m":912345`, `"m":0`},
		{"reprocessed without an attempt", `,"a":1,"lease":{"f":25}`, `,"back":"reprocessed"`},
		{"reprocessed without an attempt, a newer one behind", `"a":3,"e":1,"lease":{"d":1767323345678,"b":"6f1c2a34-0d1e-4c55-9a77-2d1b8f0e9c11","m":912345,"h":"` + holder + `","w":"worker 3","f":24}`, `"r":"damaged","back":"reprocessed"`},
		{"reprocessed with attempts", `,"a":1,"lease":{"f":25}`, `,"a":1,"e":1,"back":"reprocessed"`},
		{"retried with a delay", `"a":1,"lease":{"f":25}`, `"a":1,"n":1,"back":"retried"`},
		{"index of 32 bits", namedToken("commit 1").String() + ".0", namedToken("commit 1").String() + ".4294967295"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(good, c.old, c.new, 1)
			if text == good {
				t.Fatal("the case changes nothing")
			}
			got, err := decodeState([]byte(text), "state.json", st.store)
			if err != nil {
				t.Fatal(err)
			}
			clearTexts(got)
			if again := string(encodeState(nil, got)); again != text {
				t.Errorf("encoded again\n got %s\nwant %s", again, text)
			}
		})
	}
}
