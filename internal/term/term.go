// Package term answers what a command must know about the terminal it may be
// talking to, and shows progress on it.
package term

import (
	"fmt"
	"os"

	xterm "golang.org/x/term"
)

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool { return f != nil && xterm.IsTerminal(int(f.Fd())) }

// DefaultWidth is the width assumed where none can be asked for.
const DefaultWidth = 80

// Width returns the columns of the terminal f, DefaultWidth if f is none.
func Width(f *os.File) int {
	if f == nil {
		return DefaultWidth
	}
	w, _, err := xterm.GetSize(int(f.Fd()))
	if err != nil || w <= 0 {
		return DefaultWidth
	}
	return w
}

// Color is the value of a --color flag.
type Color uint8

const (
	Auto   Color = iota // colour on a capable terminal
	Always              // colour in any case
	Never
)

// ParseColor reads "auto", "always" or "never"; "" is auto.
func ParseColor(s string) (Color, error) {
	switch s {
	case "auto", "":
		return Auto, nil
	case "always":
		return Always, nil
	case "never":
		return Never, nil
	}
	return Auto, fmt.Errorf("colour %q is none of auto, always, never", s)
}

// Enabled decides whether output to f is coloured. Auto means a terminal, with
// NO_COLOR empty or unset and TERM neither "dumb" nor, outside Windows, unset.
// getenv is os.Getenv or a stand-in.
func (c Color) Enabled(f *os.File, getenv func(string) string) bool {
	return c.decide(IsTerminal(f), getenv)
}

func (c Color) decide(terminal bool, getenv func(string) string) bool {
	switch c {
	case Always:
		return true
	case Never:
		return false
	}
	return terminal && getenv("NO_COLOR") == "" && capable(getenv)
}

// capable reports whether the terminal can move its cursor.
func capable(getenv func(string) string) bool {
	t := getenv("TERM")
	return t != "dumb" && (t != "" || os.PathSeparator == '\\')
}

// Painter wraps text in the escape sequences of a style. The zero Painter
// leaves text plain.
type Painter struct{ on bool }

// NewPainter returns a Painter that paints if on.
func NewPainter(on bool) Painter { return Painter{on} }

func (p Painter) paint(code, s string) string {
	if !p.on || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// Bold returns s in bold.
func (p Painter) Bold(s string) string { return p.paint("1", s) }

// Faint returns s in a weaker colour.
func (p Painter) Faint(s string) string { return p.paint("2", s) }

// Red returns s in red, the colour of errors.
func (p Painter) Red(s string) string { return p.paint("31", s) }

// Green returns s in green, the colour of success.
func (p Painter) Green(s string) string { return p.paint("32", s) }

// Yellow returns s in yellow, the colour of warnings.
func (p Painter) Yellow(s string) string { return p.paint("33", s) }

// Cyan returns s in cyan, the colour of names.
func (p Painter) Cyan(s string) string { return p.paint("36", s) }
