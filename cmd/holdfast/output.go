//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sys/unix"
)

func (a *app) printf(format string, args ...any) { fmt.Fprintf(a.out, format, args...) }

// printJSON writes v as one line, with <>& as themselves.
func (a *app) printJSON(v any) {
	a.out.Write(encode(v))
	a.out.WriteByte('\n')
}

// printJSONPayload writes v, an object with at least one field, as one line with
// the payload as its last field. The payload's bytes never pass an encoder:
// digits and escapes stay as they are.
func (a *app) printJSONPayload(v any, payload []byte) {
	line := encode(v)
	line = append(line[:len(line)-1], `,"payload":`...)
	if len(payload) == 0 {
		line = append(line, "null"...)
	}
	a.out.Write(append(appendOneLine(line, payload), "}\n"...))
}

func encode(v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // our own types always encode
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// appendOneLine appends one JSON value without the white space between its
// tokens; everything else, and everything inside strings, is copied.
func appendOneLine(dst, value []byte) []byte {
	inString, escaped := false, false
	for _, c := range value {
		switch {
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case !inString && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			continue
		}
		dst = append(dst, c)
	}
	return dst
}

// printable keeps text from steering a terminal: what does not print is escaped.
func printable(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.IndexFunc(s, unprintable) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unprintable(r) {
			fmt.Fprintf(&b, "\\u%04x", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) && r != '\u200d' } // ZWJ joins emoji

// cutText cuts text for a table on a rune.
func cutText(s string, most int) string {
	n := 0
	for i := range s {
		if n == most {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

func plural(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// isTerminal reports whether a stream is a terminal; /dev/null is none.
func isTerminal(stream any) bool {
	f, ok := stream.(interface{ Fd() uintptr })
	if !ok {
		return false
	}
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}
