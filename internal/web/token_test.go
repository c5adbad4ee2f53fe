//go:build unix

package web

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestTokenIsMadeOnceAndReadAgain(t *testing.T) {
	name := filepath.Join(t.TempDir(), "token")
	first, made, err := Token(name)
	if err != nil || !made || len(first) != 43 {
		t.Fatalf("%q, made %v, %v", first, made, err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v %v, want mode 0600", info, err)
	}
	again, made, err := Token(name)
	if err != nil || made || again != first {
		t.Errorf("%q, made %v, %v; want %q", again, made, err, first)
	}
	other, _, err := Token(name + "2")
	if err != nil || other == first {
		t.Errorf("two files have one token: %v", err)
	}
}

func TestTokenFilesThatAreRefused(t *testing.T) {
	good := strings.Repeat("x", minToken)
	dir := t.TempDir()
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"readable":   {good, 0o640, "others can read it"},
		"by all":     {good, 0o604, "others can read it"},
		"empty":      {"", 0o600, "the token in it has 0 characters"},
		"short":      {good[1:], 0o600, "characters"},
		"long":       {strings.Repeat("x", maxToken+1), 0o600, "characters"},
		"two lines":  {good + "\n" + good, 0o600, "one word"},
		"a space":    {good + " x", 0o600, "one word"},
		"not ASCII":  {good + "é", 0o600, "one word"},
		"its end":    {good + "\r\n", 0o600, ""},
		"as long as": {strings.Repeat("x", maxToken), 0o600, ""},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, name)
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(file, c.mode); err != nil {
				t.Fatal(err)
			}
			token, made, err := Token(file)
			switch {
			case c.want == "":
				if err != nil || made || token != strings.TrimSpace(c.text) {
					t.Errorf("got %q %v %v", token, made, err)
				}
			case err == nil || !strings.Contains(err.Error(), c.want):
				t.Errorf("got %v, want %q in it", err, c.want)
			case len(c.text) > 0 && strings.Contains(err.Error(), strings.TrimSpace(c.text)):
				t.Errorf("the token is in the error: %v", err)
			}
		})
	}
	if _, _, err := Token(dir); err == nil || !strings.Contains(err.Error(), "no plain file") {
		t.Errorf("a directory: %v", err)
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Token(fifo); err == nil || !strings.Contains(err.Error(), "no plain file") {
		t.Errorf("a FIFO: %v", err)
	}
}
