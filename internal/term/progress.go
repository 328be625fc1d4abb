package term

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// Progress is told about work that may take long. All methods may be called
// from several goroutines.
type Progress interface {
	// Start begins a task of total steps, 0 if unknown, ending any task before.
	Start(label string, total int64)
	// Step counts n more steps as done.
	Step(n int64)
	// Done ends the task and erases what was shown.
	Done()
}

// Silent is a Progress that shows nothing.
type Silent struct{}

func (Silent) Start(string, int64) {}
func (Silent) Step(int64)          {}
func (Silent) Done()               {}

// The line appears when a task has taken this long, and is drawn this often.
const (
	progressDelay = 500 * time.Millisecond
	progressEvery = 200 * time.Millisecond
)

// NewProgress returns a Progress that draws one erasable line on f, or Silent
// when f is not a terminal that can erase. Other output to f should go through
// the Line, if it is one, so that the two do not mix.
func NewProgress(f *os.File, getenv func(string) string) Progress {
	if !IsTerminal(f) || !capable(getenv) {
		return Silent{}
	}
	return newLine(f, func() int { return Width(f) })
}

// Line is a Progress on a terminal. As an io.Writer it passes text on to the
// terminal, erasing the line before.
type Line struct {
	w     io.Writer
	width func() int

	mu          sync.Mutex
	label       string
	total, done int64
	start       time.Time
	timer       *time.Timer // nil when no task runs
	task        int         // so that a late timer of an ended task is known
	shown       bool
}

func newLine(w io.Writer, width func() int) *Line { return &Line{w: w, width: width} }

// Start implements Progress.
func (l *Line) Start(label string, total int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
	l.label, l.total, l.done, l.start = label, total, 0, time.Now()
	l.task++
	task := l.task
	l.timer = time.AfterFunc(progressDelay, func() { l.tick(task) })
}

// Step implements Progress.
func (l *Line) Step(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done += n
}

// Done implements Progress.
func (l *Line) Done() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
}

// Write implements io.Writer. The line comes back at its next turn.
func (l *Line) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	return l.w.Write(p)
}

func (l *Line) end() {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	l.erase()
}

// erase clears the line. Errors of the terminal are of no interest here.
func (l *Line) erase() {
	if l.shown {
		io.WriteString(l.w, "\r\x1b[K")
		l.shown = false
	}
}

func (l *Line) tick(task int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer == nil || l.task != task {
		return
	}
	io.WriteString(l.w, "\r"+l.text()+"\x1b[K")
	l.shown = true
	l.timer.Reset(progressEvery)
}

// text returns the line, cut to leave the last column free: a terminal wraps
// when that is filled.
func (l *Line) text() string {
	var b strings.Builder
	for _, r := range l.label {
		if !unicode.IsPrint(r) {
			r = ' '
		}
		b.WriteRune(r)
	}
	switch {
	case l.total > 0:
		done := min(l.done, l.total)
		fmt.Fprintf(&b, " %d/%d (%d%%)", done, l.total, int64(100*(float64(done)/float64(l.total))))
	case l.done > 0:
		fmt.Fprintf(&b, " %d", l.done)
	}
	fmt.Fprintf(&b, ", %d s", int64(time.Since(l.start)/time.Second))
	s := b.String()
	if room := max(l.width()-1, 1); utf8.RuneCountInString(s) > room {
		s = string([]rune(s)[:room])
	}
	return s
}
