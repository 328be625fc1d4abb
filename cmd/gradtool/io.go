package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"gradtool/internal/atomicfile"
	"gradtool/internal/term"
)

// outputFlags are the flags of verbs that write a model.
func outputFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the model to `FILE`, - for standard output even if that is a terminal"},
		&cli.BoolFlag{Name: "external-data", Usage: "put the weights in a file beside the model, FILE.data, as models of 2 GiB and more must"},
		&cli.BoolFlag{Name: "force", Aliases: []string{"f"}, Usage: "replace an existing file that -o does not name"},
	}
}

// target is where a verb writes its model or data.
type target struct {
	path   string // "-" for standard output
	chosen bool   // by the program, not by the user: say so, and keep an existing file
}

// target decides where the output goes before any work is done: where -o says; else to standard output if
// that is no terminal; else to the file that name proposes ("" for none) in the current folder.
func (s *session) target(name string) (target, error) {
	o := s.String("output")
	if s.Bool("external-data") && (o == "-" || o == "" && !term.IsTerminal(s.stdout)) {
		return target{}, usagef("--external-data needs -o FILE: the weights go beside it")
	}
	if o != "" {
		return target{path: o}, nil
	}
	if !term.IsTerminal(s.stdout) {
		return target{path: "-"}, nil
	}
	if name == "" {
		return target{}, hint(usagef("refusing to write a binary file to the terminal"),
			`use -o FILE, or redirect the output; "gradtool show" prints a model as text; -o - forces it`)
	}
	t := target{name, true}
	if r := s.String("report"); r != "" && sameFile(r, name) {
		return target{}, usagef("--report names %s, where the model goes without -o", name)
	}
	if !s.Bool("force") {
		if _, err := os.Lstat(name); err == nil {
			return t, t.exists()
		}
	}
	return t, nil
}

func (t target) exists() error {
	return hint(fmt.Errorf("%s exists already", t.path), "name the output with -o FILE, or replace the file with -f")
}

// derivedName proposes an output file for a stage: model.grad.onnx for model.onnx.
func derivedName(input, stage string) string {
	if input == "" || input == "-" {
		return ""
	}
	return strings.TrimSuffix(filepath.Base(input), ".onnx") + "." + stage + ".onnx"
}

// save has write produce the target: a file appears when it is complete.
func (s *session) save(t target, write func(io.Writer) error) error {
	s.progress.Done()
	if t.path == "-" {
		return stdoutError(write(s.stdout))
	}
	err := s.writeFile(t.path, t.chosen && !s.Bool("force"), write)
	if errors.Is(err, fs.ErrExist) && t.chosen {
		return t.exists()
	}
	if err == nil && t.chosen {
		s.notef("wrote %s", t.path)
	}
	return err
}

// writeFile writes a file that appears when it is complete, and never if the run is interrupted. With
// keep set an existing file is not replaced. write is given an *os.File.
func (s *session) writeFile(path string, keep bool, write func(io.Writer) error) error {
	f, err := atomicfile.Create(path, atomicfile.Options{Exclusive: keep})
	if err != nil {
		return err
	}
	defer s.onAbort(f.Abort)()
	defer f.Abort()
	if err := write(f.File()); err != nil {
		return fileError(path, err)
	}
	return fileError(path, f.Commit())
}

// fileError says which file could not be written, in place of the temporary one.
func fileError(path string, err error) error {
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		err = pe.Err
	case errors.As(err, &le):
		err = le.Err
	}
	return fmt.Errorf("cannot write %s: %w", path, err)
}

// stdoutError says that standard output could not be written.
func stdoutError(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) && pe.Path == os.Stdout.Name() {
		return fmt.Errorf("cannot write standard output: %w", pe.Err)
	}
	if errors.Is(err, syscall.EPIPE) {
		return syscall.EPIPE
	}
	return err
}

// print has write produce text on standard output.
func (s *session) print(write func(w io.Writer) error) error {
	s.progress.Done()
	b := bufio.NewWriterSize(s.stdout, 1<<16)
	err := write(b)
	if ferr := b.Flush(); err == nil {
		err = ferr
	}
	return stdoutError(err)
}

// paintOut returns the painter for standard output.
func (s *session) paintOut() term.Painter {
	return term.NewPainter(s.color.Enabled(s.stdout, s.getenv))
}
