package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/npu/binary"
	"gradtool/npu/isa"
	"gradtool/npu/lower"
	"gradtool/npu/sim"
)

// headBytes is how much of a file tells a program from a model.
const headBytes = 64

// isProgram reports whether the file that the command line names is a program of an NPU. What it reads of a pipe can be read again.
func (s *session) isProgram(path string) (bool, error) {
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return false, nil // the reader of models knows better what to say
		}
		defer f.Close()
		head := make([]byte, headBytes)
		n, _ := io.ReadFull(f, head)
		return binary.Is(head[:n]), nil
	}
	head := make([]byte, headBytes)
	n, err := io.ReadFull(s.stdin, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return false, err
	}
	head = head[:n]
	if _, err := s.stdin.Seek(-int64(n), io.SeekCurrent); err == nil {
		return binary.Is(head), nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return false, err
	}
	go func(from io.Reader) {
		// A reader that stops early ends the copy with an error, which is nobody's.
		_, _ = io.Copy(w, io.MultiReader(bytes.NewReader(head), from))
		w.Close()
	}(s.stdin)
	s.stdin = r
	return binary.Is(head), nil
}

// readProgram reads a program.
func (s *session) readProgram(path string) (*isa.Program, error) {
	var data []byte
	var err error
	if path == "-" {
		path = "standard input"
		data, err = io.ReadAll(s.stdin)
	} else {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, err
	}
	p, err := binary.Read(data)
	if err == nil {
		err = sim.Check(p)
	}
	if err != nil {
		return nil, badModel(fmt.Errorf("%s: %w", path, err))
	}
	return p, nil
}

// face returns a model without nodes that has the inputs and outputs of a program: what reads inputs and writes outputs of models then
// does it for programs.
func face(p *isa.Program) (*graph.Model, error) {
	m := graph.NewModel("program", 21)
	for _, t := range p.Inputs {
		elem, ok := graph.ParseDataType(t.Type)
		if !ok {
			return nil, badModel(fmt.Errorf("input %q has the unknown type %q", t.Name, t.Type))
		}
		v := m.Graph.AddInput(t.Name, graph.TensorOf(elem, graph.ShapeOf(t.Shape...)))
		if t.Default {
			m.Graph.SetInit(v, &graph.Tensor{Elem: elem, Dims: t.Shape})
		}
	}
	for _, t := range p.Outputs {
		elem, ok := graph.ParseDataType(t.Type)
		if !ok {
			return nil, badModel(fmt.Errorf("output %q has the unknown type %q", t.Name, t.Type))
		}
		v := m.Graph.AddUndefined(t.Name)
		v.Type = graph.TensorOf(elem, graph.ShapeOf(t.Shape...))
		m.Graph.AddOutput(v)
	}
	return m, nil
}

// runProgram is runRun for programs.
func (s *session) runProgram(path string) error {
	for _, flag := range []string{"plan", "float64", "dim", "numerics"} {
		if s.IsSet(flag) {
			return usagef("--%s is for models: a program of an NPU is run as it is", flag)
		}
	}
	if e := s.String("engine"); e != "interp" {
		return usagef("--engine %s: a program of an NPU runs in the simulator", e)
	}
	p, err := s.readProgram(path)
	if err != nil {
		return err
	}
	run := func(inputs map[string][]byte) (map[string][]byte, error) {
		res, err := sim.Run(s.Context.Context, p, inputs, sim.Options{Workers: runtime.GOMAXPROCS(0)})
		if err != nil {
			return nil, err
		}
		return res.Outputs, nil
	}
	if p.Cost != nil {
		s.report.set("cost", p.Cost)
		s.verbosef("%s takes %d cycles of %s, simulated", path, p.Cost.Cycles, p.Machine.Name)
	}
	return s.runDevice(p, "simulator of "+p.Machine.Name, run)
}

// runNumerics computes a model's outputs as the program would that lower makes of it, by the numeric contract of its machine alone.
func (s *session) runNumerics() error {
	for _, flag := range []string{"plan", "float64", "engine"} {
		if s.IsSet(flag) {
			return usagef("--%s and --numerics exclude each other", flag)
		}
	}
	mach, err := machineNamed(s.String("numerics"))
	if err != nil {
		return err
	}
	m, closer, err := s.readModel()
	if err != nil {
		return err
	}
	defer closer.Close()
	if err := s.inspect(m); err != nil {
		return err
	}
	bounds, err := s.prepareLowering(m)
	if err != nil {
		return err
	}
	r, err := lowerModel(m, lower.Options{Machine: mach})
	if err != nil {
		return err
	}
	setBounds(r.Program, bounds)
	if err := s.fallbacks(r); err != nil {
		return err
	}
	return s.runDevice(r.Program, "numeric contract of "+mach.Name, r.Execute)
}

// runDevice feeds what computes the outputs of a program and shows what it gives.
func (s *session) runDevice(p *isa.Program, engine string, run func(inputs map[string][]byte) (map[string][]byte, error)) error {
	m, err := face(p)
	if err != nil {
		return err
	}
	given, err := s.givenInputs(m)
	if err != nil {
		return err
	}
	feed, err := s.feedBelow(m, given, false, func(v *graph.Value) int64 {
		if n := p.Inputs[slices.Index(m.Graph.Inputs, v)].Below; n > 0 {
			return n
		}
		return indexBound(v)
	})
	if err != nil {
		return err
	}
	inputs := map[string][]byte{}
	for i, v := range m.Graph.Inputs {
		if feed[i] == nil {
			continue
		}
		raw, err := feed[i].Tensor().Data.Bytes()
		if err != nil {
			return err
		}
		inputs[v.Name] = raw
	}
	res, err := run(inputs)
	if err != nil {
		return err
	}
	var outs []*op.Array
	for i, v := range m.Graph.Outputs {
		t := &graph.Tensor{Elem: v.Type.Elem, Dims: p.Outputs[i].Shape, Data: graph.Bytes(res[v.Name])}
		a, err := op.FromTensor(t, false)
		if err != nil {
			return fmt.Errorf("output %q: %w", v.Name, err)
		}
		outs = append(outs, a)
	}
	if err := s.saveOutputs(m, outs); err != nil {
		return err
	}
	s.reportOutputs(m, outs)
	s.report.set("engine", engine)
	if s.Bool("json") {
		return s.print(s.report.encode)
	}
	if s.quiet || s.String("output") == "-" {
		return nil
	}
	return s.print(func(w io.Writer) error { return s.outputTable(w, m, outs) })
}
