//go:build unix

package holdfast

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// What the feature "spares" adds to a state, and what of it is refused.
func TestSparesFeature(t *testing.T) {
	st := sampleState()
	st.exchange, st.after = true, namedToken("before")
	good := encodeState(nil, st)
	got, err := decodeState(good, stateFile, st.store)
	mustDo(t, err)
	if !got.exchange || got.after != st.after {
		t.Errorf("exchange %v, after %s", got.exchange, got.after)
	}
	clearTexts(got)
	if again := encodeState(nil, got); !bytes.Equal(again, good) {
		t.Errorf("encoded again\n%s\nwas\n%s", again, good)
	}
	if !isWhole(good) || !isWhole(padded(bytes.Clone(good), 9000)[:9000]) || isWhole(good[:len(good)-1]) || isWhole(nil) {
		t.Error("what is whole is not, or the other way round")
	}
	i := bytes.LastIndex(good, []byte(`,"sum":`))
	sum := string(good[i:][:len(`,"sum":"01234567"`)])
	after := fmt.Sprintf(`,"after":"%s"`, st.after)
	for _, tt := range []struct {
		name, old, with, want string
		resum                 bool
	}{
		{"another sum", sum, `,"sum":"00000000"`, fmt.Sprintf("its first %d bytes have the checksum", i), false},
		{"another byte", `"ann"`, `"amn"`, "bytes have the checksum", false},
		{"no sum", sum, ``, `the feature "spares" and the field "sum": both or neither`, false},
		{"a sum without the feature", `["spares"]`, `[]`, `the field "after" without the feature "spares"`, true},
		{"a sum alone", `["spares"]` + after, `[]`, `the feature "spares" and the field "sum": both or neither`, true},
		{"a short sum", sum, sum[:len(sum)-2] + `"`, "is not eight lower-case hexadecimal digits", false},
		{"a sum in upper case", sum, `,"sum":"0123ABCD"`, "is not eight lower-case hexadecimal digits", false},
		{"after nothing", after, fmt.Sprintf(`,"after":"%s"`, token{}), "a token of sixteen zero bytes", true},
		{"after no token", after, `,"after":"x"`, "token", true},
		{"after twice", after, after + after, `"after"`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := []byte(strings.Replace(string(good), tt.old, tt.with, 1))
			if bytes.Equal(text, good) {
				t.Fatalf("%q does not stand in %s", tt.old, good)
			}
			if tt.resum {
				text = resummed(text)
			}
			_, err := decodeState(text, stateFile, st.store)
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v; want %q", err, tt.want)
			}
		})
	}
	st.after = token{}
	if _, err := decodeState(encodeState(nil, st), stateFile, st.store); err != nil {
		t.Errorf("a state that was made after none: %v", err)
	}
}
