package term

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func env(pairs ...string) func(string) string {
	return func(key string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == key {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestColorDecision(t *testing.T) {
	for _, c := range []struct {
		flag     string
		terminal bool
		env      func(string) string
		want     bool
	}{
		{"auto", true, env("TERM", "xterm"), true},
		{"", true, env("TERM", "xterm"), true},
		{"auto", false, env("TERM", "xterm"), false},
		{"auto", true, env("TERM", "dumb"), false},
		{"auto", true, env("TERM", "xterm", "NO_COLOR", "1"), false},
		{"always", false, env("TERM", "dumb", "NO_COLOR", "1"), true},
		{"never", true, env("TERM", "xterm"), false},
	} {
		color, err := ParseColor(c.flag)
		if err != nil {
			t.Fatal(err)
		}
		if got := color.decide(c.terminal, c.env); got != c.want {
			t.Errorf("--color=%s, terminal %v, TERM=%s NO_COLOR=%s: %v", c.flag, c.terminal, c.env("TERM"), c.env("NO_COLOR"), got)
		}
	}
	if _, err := ParseColor("sometimes"); err == nil {
		t.Error("no error for an unknown value")
	}
}

func TestNotATerminal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if IsTerminal(f) || IsTerminal(nil) {
		t.Error("a file is a terminal")
	}
	if w := Width(f); w != DefaultWidth {
		t.Errorf("width of a file is %d", w)
	}
	if Auto.Enabled(f, env("TERM", "xterm")) {
		t.Error("colour on a file")
	}
	if p := NewProgress(f, env("TERM", "xterm")); p != (Silent{}) {
		t.Errorf("progress on a file: %T", p)
	}
}

func TestPainter(t *testing.T) {
	if got := NewPainter(true).Red("no"); got != "\x1b[31mno\x1b[0m" {
		t.Errorf("painted: %q", got)
	}
	if got := (Painter{}).Red("no") + NewPainter(true).Bold(""); got != "no" {
		t.Errorf("plain: %q", got)
	}
}

// screen returns what a terminal line shows after the output s.
func screen(s string) string {
	line, at := []rune{}, 0
	for s = strings.ReplaceAll(s, "\x1b[K", "\v"); s != ""; {
		r, rest := []rune(s)[0], string([]rune(s)[1:])
		switch r {
		case '\r':
			at = 0
		case '\n':
			line, at = nil, 0
		case '\v':
			line = line[:at]
		default:
			line = append(line[:at], append([]rune{r}, line[min(at+1, len(line)):]...)...)
			at++
		}
		s = rest
	}
	return string(line)
}

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		l := newLine(&b, func() int { return 40 })
		wait := func(d time.Duration) { time.Sleep(d); synctest.Wait() }

		l.Start("quick", 10)
		l.Step(3)
		wait(400 * time.Millisecond)
		l.Done()
		wait(time.Second)
		if b.Len() > 0 {
			t.Fatalf("work of 0.4 s shows %q", b.String())
		}

		l.Start("folding\tconstants", 8)
		l.Step(2)
		wait(600 * time.Millisecond)
		if got := screen(b.String()); got != "folding constants 2/8 (25%), 0 s" {
			t.Errorf("after 0.6 s: %q", got)
		}
		l.Step(10)
		wait(time.Second)
		if got := screen(b.String()); got != "folding constants 8/8 (100%), 1 s" {
			t.Errorf("after 1.6 s: %q", got)
		}
		fmt.Fprintln(l, "warning")
		if got := screen(b.String()); got != "" || !strings.HasSuffix(b.String(), "\x1b[Kwarning\n") {
			t.Errorf("after a message: %q", b.String())
		}
		wait(time.Second)
		l.Start("a label that is much longer than the terminal is wide", 0)
		if got := screen(b.String()); got != "" {
			t.Errorf("at the start of the next task: %q", got)
		}
		wait(time.Second)
		if got := screen(b.String()); got != "a label that is much longer than the te" {
			t.Errorf("long label: %q", got)
		}
		l.Done()
		n := b.Len()
		wait(time.Second)
		if got := screen(b.String()); got != "" || b.Len() != n {
			t.Errorf("after the end: %q", got)
		}
	})
}
