package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"gradtool/autodiff"
	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/onnxio"
)

// passFlags show what the passes of a stage do.
func passFlags() []cli.Flag { return nil }

// appendGradient runs the passes of grad on a model that was just read.
func (s *session) appendGradient(m *graph.Model) (*autodiff.GradResult, error) {
	info, err := prepare(m, callsOffPath(m))
	if err != nil {
		return nil, err
	}
	opt, err := s.gradOptions(m)
	if err != nil {
		return nil, err
	}
	res, err := autodiff.Gradient(m, info, opt)
	if err != nil {
		return nil, blocked(err)
	}
	return res, setOpset(m, s.Int64("opset"))
}

// setOpset lowers m to the opset, or for 0 to the lowest that it can have.
func setOpset(m *graph.Model, version int64) error {
	asked := version != 0
	if !asked {
		var err error
		if version, err = op.LowestOpset(m); err != nil {
			return err
		}
	}
	err := op.SetOpset(m, version)
	var oe *op.OpsetError
	if asked && errors.As(err, &oe) {
		if low, lerr := op.LowestOpset(m); lerr == nil {
			return hint(fmt.Errorf("--opset %d: %w", version, err), "the lowest opset for this model is %d", low)
		}
	}
	return err
}

// modelWriter returns the function that writes m to a file or stream. Where the output is a file beside
// m's external data, those stay there.
func (s *session) modelWriter(t target, m *graph.Model) func(io.Writer) error {
	var o onnxio.WriteOptions
	if t.path != "-" {
		o.Dir = filepath.Dir(t.path)
	}
	return func(w io.Writer) error { return o.Write(w, m) }
}

// saveModel verifies m and writes it to the target.
func (s *session) saveModel(t target, m *graph.Model) error {
	if err := s.verify(m); err != nil {
		return err
	}
	return s.save(t, s.modelWriter(t, m))
}
