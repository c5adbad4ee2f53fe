//go:build unix

package main

import "golang.org/x/sys/unix"

// terminalSize gives the columns and rows of a terminal; 0 where they cannot be known.
func terminalSize(stream any) (width, height int) {
	f, ok := stream.(interface{ Fd() uintptr })
	if !ok {
		return 0, 0
	}
	ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return int(ws.Col), int(ws.Row)
}

// A style is how text stands out on a terminal.
type style struct{ plain, noColour bool }

// style gives none where stdout is no terminal, and no colour where NO_COLOR says so.
func (a *app) style() style {
	return style{plain: !a.tty(a.stdout) || a.env("TERM") == "dumb", noColour: a.env("NO_COLOR") != ""}
}

func (s style) bold(text string) string    { return s.with("1", text) }
func (s style) reverse(text string) string { return s.with("7", text) }

// warn is for what needs the operator: red, or bold without colour.
func (s style) warn(text string) string {
	if s.noColour {
		return s.bold(text)
	}
	return s.with("31", text)
}

func (s style) with(how, text string) string {
	if s.plain || text == "" {
		return text
	}
	return "\x1b[" + how + "m" + text + "\x1b[0m"
}
