package main

import (
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
	"gradtool/internal/ort"
	"gradtool/memplan"
	"gradtool/onnxio"
)

func engineFlag() cli.Flag {
	return &cli.StringFlag{Name: "engine", Value: "interp", DefaultText: "interp", Usage: "what computes: `interp|ort`"}
}

// engine computes the outputs of models.
type engine struct {
	name string
	wide bool
	s    *session
	mem  *memplan.Arena // of --plan
}

// engine returns what --engine and --float64 name.
func (s *session) engine() (*engine, error) {
	e := &engine{s.String("engine"), s.Bool("float64"), s, nil}
	switch e.name {
	case "interp":
	case "ort":
		if e.wide {
			return nil, usagef("--float64 is of the engine interp; ort computes in the types of the model")
		}
		if err := ort.Available(); err != nil {
			return nil, err
		}
	default:
		return nil, usagef("--engine %q: want interp or ort", e.name)
	}
	return e, nil
}

// run computes m's outputs. m must be sorted and canonical; feed holds one value per input, nil for defaults.
func (e *engine) run(m *graph.Model, feed []*op.Array, seed uint64) ([]*op.Array, error) {
	if e.name == "ort" {
		return e.runORT(m, feed)
	}
	opt := interp.Options{Wide: e.wide, Seed: seed}
	if e.mem != nil {
		opt.Memory = e.mem
	}
	machine, err := interp.New(m, opt)
	if err != nil {
		return nil, err
	}
	return machine.Run(feed)
}

// runORT writes m to a temporary file at the lowest opset it can have, and runs that.
func (e *engine) runORT(m *graph.Model, feed []*op.Array) (out []*op.Array, err error) {
	dir, err := os.MkdirTemp("", "gradtool-")
	if err != nil {
		return nil, err
	}
	clean := func() { os.RemoveAll(dir) }
	defer e.s.onAbort(clean)()
	defer clean()
	if err := setOpset(m, 0); err != nil {
		return nil, err
	}
	path := dir + "/model.onnx"
	if err := onnxio.WriteFile(path, m); err != nil {
		return nil, err
	}
	var inputs []string
	var tensors []ort.Tensor
	for i, v := range m.Graph.Inputs {
		a := feed[i]
		if a == nil {
			continue // ONNX Runtime takes the default too
		}
		if !a.IsTensor() || a.Str != nil {
			return nil, fmt.Errorf("input %q is %s: only numeric tensors can be passed to ONNX Runtime", v.Name, a.Type())
		}
		t := a.Tensor()
		raw, err := t.Data.Bytes()
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, v.Name)
		tensors = append(tensors, ort.Tensor{Name: v.Name, Elem: int32(t.Elem), Shape: t.Dims, Data: raw})
	}
	var outputs []ort.Output
	for _, v := range m.Graph.Outputs {
		if !v.Type.IsTensor() || v.Type.Elem == graph.Undefined {
			return nil, fmt.Errorf("output %q is %s: only tensors of known element type can be fetched from ONNX Runtime", v.Name, v.Type)
		}
		o := ort.Output{Name: v.Name, Elem: int32(v.Type.Elem)}
		if dims, ok := v.Type.Shape.Ints(); ok {
			o.Shape = dims
		}
		outputs = append(outputs, o)
	}
	session, err := ort.Load(path, inputs, outputs, ort.Options{})
	if err != nil {
		return nil, err
	}
	defer session.Close()
	res, err := session.Run(tensors)
	if err != nil {
		return nil, err
	}
	for _, t := range res {
		a, err := op.FromTensor(&graph.Tensor{Elem: graph.DataType(t.Elem), Dims: t.Shape, Data: graph.Bytes(t.Data)}, false)
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", t.Name, err)
		}
		out = append(out, a)
	}
	return out, nil
}
