//go:build unix

package holdfast

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTempNames(t *testing.T) {
	tok := namedToken("temp")
	if got, want := stateTemp(tok), ".state-"+tok.String()+".tmp"; got != want {
		t.Errorf("stateTemp: got %q, want %q", got, want)
	}
	if got, want := reserveTemp(tok), ".reserve-"+tok.String()+".tmp"; got != want {
		t.Errorf("reserveTemp: got %q, want %q", got, want)
	}
}

func TestIsTemp(t *testing.T) {
	text := namedToken("temp").String()
	for name, want := range map[string]bool{
		".state-" + text + ".tmp":         true,
		".reserve-" + text + ".tmp":       true,
		".state.json0":                    true,
		".format.json9223372036854775807": true,

		"":                            false,
		".":                           false,
		namespaceDir:                  false,
		formatFile:                    false,
		stateFile:                     false,
		objectsDir:                    false,
		holdersDir:                    false,
		reserveFile:                   false,
		lockFile:                      false,
		payloadFile:                   false,
		text:                          false,
		".state-.tmp":                 false,
		".state-" + text:              false,
		".state-" + text + "x":        false,
		"state-" + text + ".tmp":      false,
		"x.state-" + text + ".tmp":    false,
		".state-" + text + ".tmp.tmp": false,
		".state-" + text + "a.tmp":    false,
		".state-" + text[1:] + ".tmp": false,
		".state-" + strings.ToUpper(text) + ".tmp": false,
		".state-" + text[:tokenChars-1] + "b.tmp":  false, // spare bits
		".state-" + text[:tokenChars-1] + "1.tmp":  false,
		".state-../../" + text[6:] + ".tmp":        false,
		".object-" + text + ".tmp":                 false,
		".state.json":                              false,
		".format.json":                             false,
		".state.json-1":                            false,
		".state.json12345678901234567890":          false, // 20 digits
		".state.json12x":                           false,
		".state.json１":                             false,
		"state.json1":                              false,
		".reserve1":                                false,
		"..state.json1":                            false,
		".state.json1\n":                           false,
		".state-transfer.lock1":                    false,
		strings.Repeat(".state-"+text+".tmp", 2):   false,
	} {
		if got := isTemp(name); got != want {
			t.Errorf("isTemp(%q): got %v, want %v", name, got, want)
		}
	}
}

func TestEveryTempIsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tok := drawToken(t)
		for _, name := range []string{stateTemp(tok), reserveTemp(tok)} {
			if !isTemp(name) {
				t.Errorf("isTemp(%q) is false", name)
			}
		}
	})
}
