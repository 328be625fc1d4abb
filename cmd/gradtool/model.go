package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/internal/term"
	"gradtool/onnxio"
	"gradtool/onnxio/onnxgo"
)

// inputFlags are the flags of verbs that read a model.
func inputFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "base-dir", Usage: "look for external data in `DIR`, not beside the model (for a piped model: not in the current folder)"},
		&cli.StringFlag{Name: "importer", Value: "native", DefaultText: "native", Usage: "read with gradtool's own decoder or with the library onnx-go, whose losses are listed: `native|onnx-go`"},
	}
}

// inputPath returns the file that holds the model, "-" for standard input.
func (s *session) inputPath() (string, error) {
	switch path := s.Args().First(); {
	case path != "":
		return path, nil
	case s.NArg() > 0:
		return "", usagef("the model's file name is empty")
	case term.IsTerminal(s.stdin):
		return "", hint(usagef("no model given"), "name a file, or pipe a model in; \"gradtool demo -o mlp.onnx\" makes one")
	}
	return "-", nil
}

// readModel reads the model that the command line names. The closer must be called after the last use of
// the model's weights.
func (s *session) readModel() (*graph.Model, io.Closer, error) {
	path, err := s.inputPath()
	if err != nil {
		return nil, nil, err
	}
	return s.openModel(path)
}

func (s *session) openModel(path string) (*graph.Model, io.Closer, error) {
	switch name := s.String("importer"); name {
	case "native":
	case "onnx-go":
		return s.importOnnxGo(path)
	default:
		return nil, nil, usagef("--importer %q: want native or onnx-go", name)
	}
	opt := onnxio.ReadOptions{BaseDir: s.String("base-dir"), Warn: func(msg string) { s.notef("%s", msg) }}
	var m *graph.Model
	var c io.Closer
	var err error
	if path == "-" {
		m, c, err = onnxio.Read(s.stdin, "standard input", opt)
	} else {
		m, c, err = onnxio.Open(path, opt)
	}
	if err != nil {
		return nil, nil, readError(err)
	}
	m.File = path
	if err := m.Graph.Sort(); err != nil {
		c.Close()
		return nil, nil, badModel(err)
	}
	return m, c, nil
}

// importOnnxGo reads a model with the library onnx-go and says what that loses.
func (s *session) importOnnxGo(path string) (*graph.Model, io.Closer, error) {
	var raw []byte
	var err error
	if path == "-" {
		raw, err = io.ReadAll(s.stdin)
	} else {
		raw, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, nil, err
	}
	m, loss, err := onnxgo.Decode(raw, onnxgo.Options{})
	if err != nil {
		return nil, nil, badModel(fmt.Errorf("onnx-go cannot decode %s: %w", path, err))
	}
	m.File = path
	if text := loss.String(); text != "" {
		s.notef("onnx-go did not pass on\n%s", text)
	}
	if err := m.Graph.Sort(); err != nil {
		return nil, nil, badModel(err)
	}
	return m, io.NopCloser(nil), nil
}

// readError gives errors of reading a model their exit code: a file that is not there is a failure, one that
// holds no model is bad input.
func readError(err error) error {
	var fe *onnxio.FormatError
	if !errors.As(err, &fe) {
		return err
	}
	if strings.Contains(fe.Msg, "empty input") {
		return hint(badModel(err), `"set -o pipefail" makes a shell stop at the stage that failed`)
	}
	return badModel(err)
}

// dimFlag is --dim.
func dimFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "dim", Usage: "give a symbolic dimension a size; repeatable: `NAME=SIZE`"}
}

// dims returns what --dim says.
func (s *session) dims() (map[string]int64, error) {
	out := map[string]int64{}
	var bad []error
	for _, d := range s.StringSlice("dim") {
		for part := range strings.SplitSeq(d, ",") {
			name, size, ok := cutLast(part, "=")
			n, err := strconv.ParseInt(size, 10, 64)
			if !ok || name == "" || err != nil && !errors.Is(err, strconv.ErrRange) {
				bad = append(bad, usagef("--dim %q: want NAME=SIZE, such as N=8", part))
				continue
			}
			if err != nil || n < 0 {
				bad = append(bad, usagef("--dim %q: the size is not between 0 and %d", part, math.MaxInt64))
				continue
			}
			if first, again := out[name]; again {
				bad = append(bad, hint(usagef("--dim %s is given twice, as %d and as %d", name, first, n), "leave one out"))
				continue
			}
			out[name] = n
		}
	}
	if len(bad) > 0 {
		return nil, joinUsage(bad)
	}
	return out, nil
}

// cutLast is strings.Cut at the last separator: names may contain it.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// bindDims puts sizes in place of symbols in the types of m's inputs; other types follow by inference. A name that
// no input's type has is an error.
func bindDims(m *graph.Model, dims map[string]int64) error {
	if len(dims) == 0 {
		return nil
	}
	symbols := inputSymbols(m)
	var bad []error
	for _, name := range sortedKeys(dims) {
		if !containsString(symbols, name) {
			err := usagef("--dim %s=%d: no input has a dimension %q", name, dims[name], name)
			if len(symbols) > 0 {
				err = hint(err, "the symbolic dimensions are %s", strings.Join(symbols, ", "))
			}
			bad = append(bad, err)
		}
	}
	if len(bad) > 0 {
		return joinUsage(bad)
	}
	eval := func(v *graph.Value) {
		if v == nil || v.Type.Shape == nil {
			return
		}
		v.Type.Shape = v.Type.Shape.Clone()
		for i, d := range v.Type.Shape {
			v.Type.Shape[i] = d.Eval(dims)
		}
	}
	for h := range m.Graph.Graphs() {
		for v := range h.Values() {
			eval(v)
		}
	}
	return nil
}

// inputSymbols returns the symbols in the types of m's inputs, in order of appearance.
func inputSymbols(m *graph.Model) []string {
	var out []string
	for _, v := range m.Graph.Inputs {
		for _, d := range v.Type.Shape {
			for _, name := range d.Symbols() {
				if !containsString(out, name) {
					out = append(out, name)
				}
			}
		}
	}
	return out
}

// prepare makes m ready for rules and kernels: canonical operators, types known as far as they can be. Calls
// of functions for which keep (nil: none) reports true stay as they are.
func prepare(m *graph.Model, keep func(*graph.Function) bool) (*op.Info, error) {
	if keep == nil {
		keep = func(*graph.Function) bool { return false }
	}
	if err := op.Inline(m, keep); err != nil {
		return nil, badModel(err)
	}
	if err := op.Upgrade(m); err != nil {
		return nil, badModel(err)
	}
	info, err := op.Infer(m)
	return info, badModel(err)
}

// fileExists reports whether path names something.
func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
