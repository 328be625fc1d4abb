package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gradtool/internal/term"
)

// newProcess returns a process whose standard error is a file.
func newProcess(t *testing.T) (p *process, stderr func() string) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	p = &process{stdin: os.Stdin, stdout: os.Stdout, stderr: f, getenv: func(string) string { return "" }}
	return p, func() string {
		text, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

// TestInterrupt sends a run that waits for its input the interrupt signal.
func TestInterrupt(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	name := filepath.Join(dir, "gradtool")
	if err := os.Symlink(self, name); err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(name, "grad", "-o", "out.onnx")
	cmd.Dir = dir
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// More than a pipe holds: when it is written, the run is reading.
	if _, err := in.Write(make([]byte, 1<<18)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		var e *exec.ExitError
		if !errors.As(err, &e) || e.ExitCode() != codeInterrupted {
			t.Errorf("the run ended with %v, want code %d", err, codeInterrupted)
		}
	case <-time.After(20 * time.Second):
		cmd.Process.Kill()
		t.Fatal("the run does not end")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("files left: %v, %v", left, err)
	}
}

// TestUndo interrupts a run that is writing a file.
func TestUndo(t *testing.T) {
	p, _ := newProcess(t)
	s := &session{process: p, progress: term.Silent{}}
	dir := t.TempDir()
	locked := false
	func() {
		defer func() {
			if recover() == nil {
				t.Error("writing went on")
			}
			if locked {
				p.mu.Unlock()
			}
		}()
		s.writeFile(filepath.Join(dir, "out"), false, func(w io.Writer) error {
			if _, err := io.WriteString(w, "half"); err != nil {
				t.Error(err)
			}
			if files, _ := os.ReadDir(dir); len(files) != 1 {
				t.Errorf("%d files while writing, want one temporary", len(files))
			}
			p.undo()
			if files, _ := os.ReadDir(dir); len(files) != 0 {
				t.Errorf("%v is left", files)
			}
			p.mu.Unlock() // the program would have ended here
			panic("ended")
		})
	}()
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("%v is left", files)
	}
}

func TestPanicBecomesError(t *testing.T) {
	p, stderr := newProcess(t)
	err := func() (err error) {
		defer p.recovered(&err)
		p.name = "grad"
		var list []int
		list[len(os.Args)+1]++
		return nil
	}()
	p.printError(err)
	text := stderr()
	for _, want := range []string{"gradtool: error: internal error in grad: runtime error: index out of range", "please report"} {
		if !strings.Contains(text, want) {
			t.Errorf("message %q lacks %q", text, want)
		}
	}
	if strings.Contains(text, "goroutine") {
		t.Errorf("message has a stack trace: %s", text)
	}
	if exitCode(err) != codeFailed {
		t.Errorf("code %d, want %d", exitCode(err), codeFailed)
	}
}

func TestErrorText(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
		code int
	}{
		{errors.New("one"), "gradtool: error: one\n", 1},
		{errors.Join(errors.New("one"), errors.New("two\nlines")), "gradtool: error: 2 problems\n  one\n  two\n    lines\n", 1},
		{badModel(errors.Join(errors.New("one"), errors.New("two"))), "gradtool: error: 2 problems\n  one\n  two\n", 4},
		{hint(hint(errors.New("one"), "first"), "second"), "gradtool: error: one\ngradtool: hint: first\ngradtool: hint: second\n", 1},
		{differencesf("1 of 2"), "gradtool: error: 1 of 2\n", 3},
		{&os.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}, "gradtool: error: x: cannot open: no such file or directory\n", 1},
		{syscall.EPIPE, "", codePipe},
	} {
		p, stderr := newProcess(t)
		p.printError(c.err)
		if got := stderr(); got != c.want {
			t.Errorf("%v is printed as %q, want %q", c.err, got, c.want)
		}
		if got := exitCode(c.err); got != c.code {
			t.Errorf("%v has code %d, want %d", c.err, got, c.code)
		}
	}
}
