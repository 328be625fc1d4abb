package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/internal/npz"
	"gradtool/internal/table"
	"gradtool/onnxio"
)

func runVerb() verb {
	return verb{
		name: "run", group: groupRun, args: "[MODEL|PROGRAM|-]", maxArgs: 1,
		summary: "compute a model's outputs",
		about: `
Prints a table of the outputs and, with -o or --out-dir, writes them. The engine interp is gradtool's own
evaluator, which computes node by node in the types of the model, or with --float64 with every float
in double precision; ort is ONNX Runtime, where gradtool was built with it. A program that "gradtool lower"
made runs in the simulator of its machine, in which every hazard is an error.

--numerics computes a model in the arithmetic of an NPU, without a program: the kernels and tiles that "gradtool lower"
would make, element by element, in the order of sums and with the roundings that docs/ISA.md states. The
simulator must give the same bits.`,
		examples: []string{
			"gradtool run model.onnx --in x=x.npy -o out.npz",
			"gradtool run train.onnx --random --dim N=4",
			"gradtool run model.onnx --in test_data_set_0 --out-dir results",
			"gradtool run train.onnx --numerics ref-edge --random --dim N=4 -o expected.npz",
		},
		flags: slices.Concat(feedFlags(), []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the outputs to `FILE.npz`"},
			&cli.StringFlag{Name: "out-dir", Usage: "write the outputs to `DIR` as output_0.pb, ..."},
			engineFlag(),
			&cli.BoolFlag{Name: "float64", Usage: "compute in double precision (interp)"},
			&cli.StringFlag{Name: "numerics", Usage: "compute in the arithmetic of a machine that is built in or described in a file: `NAME|FILE`"},
			narrowFlag(),
			&cli.BoolFlag{Name: "plan", Usage: "keep what nodes compute in one arena, as the model's memory plan says (interp)"},
			jsonFlag(), reportFlag(),
		}, inputFlags()),
		run: runRun,
	}
}

func runRun(s *session) error {
	path, err := s.inputPath()
	if err != nil {
		return err
	}
	if is, err := s.isProgram(path); is || err != nil {
		if err != nil {
			return err
		}
		return s.runProgram(path)
	}
	if s.IsSet("numerics") {
		return s.runNumerics()
	}
	if s.Bool("narrow") {
		return usagef("--narrow goes with --numerics: other engines compute in double")
	}
	m, closer, err := s.readModel()
	if err != nil {
		return err
	}
	defer closer.Close()
	if err := s.inspect(m); err != nil {
		return err
	}
	e, err := s.engine()
	if err != nil {
		return err
	}
	dims, err := s.dims()
	if err != nil {
		return err
	}
	plan, err := s.plan(e, m, dims)
	if err != nil {
		return err
	}
	if err := bindDims(m, dims); err != nil {
		return err
	}
	if _, err := prepare(m, nil); err != nil {
		return err
	}
	s.noteDeclared()
	if err := e.useArena(plan, m); err != nil {
		return err
	}
	given, err := s.givenInputs(m)
	if err != nil {
		return err
	}
	feed, err := s.feed(m, given, false)
	if err != nil {
		return err
	}
	seed, _, err := s.seed()
	if err != nil {
		return err
	}
	outs, err := e.run(m, feed, seed)
	if err != nil {
		return err
	}
	s.reportArena(e)
	if err := s.saveOutputs(m, outs); err != nil {
		return err
	}
	s.reportOutputs(m, outs)
	if s.Bool("json") {
		return s.print(s.report.encode)
	}
	if s.quiet || s.String("output") == "-" {
		return nil
	}
	return s.print(func(w io.Writer) error { return s.outputTable(w, m, outs) })
}

// saveOutputs writes the outputs where -o and --out-dir say.
func (s *session) saveOutputs(m *graph.Model, outs []*op.Array) error {
	if path := s.String("output"); path != "" {
		var list []npz.Array
		for i, v := range m.Graph.Outputs {
			a, err := numPy(v.Name, outs[i])
			if err != nil {
				return err
			}
			list = append(list, a)
		}
		if err := s.save(target{path: path}, func(w io.Writer) error { return npz.Write(w, list) }); err != nil {
			return err
		}
	}
	dir := s.String("out-dir")
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for i, v := range m.Graph.Outputs {
		write := func(w io.Writer) error { return onnxio.WriteDatum(w, arrayDatum(v.Name, outs[i])) }
		if err := s.writeFile(filepath.Join(dir, fmt.Sprintf("output_%d.pb", i)), false, write); err != nil {
			return err
		}
	}
	return nil
}

// outputTable prints what the outputs are like; the elements themselves where there are few.
func (s *session) outputTable(w io.Writer, m *graph.Model, outs []*op.Array) error {
	num := func(title string) table.Column { return table.Column{Title: title, Right: true, Fixed: true} }
	t := table.New(table.Column{Title: "output", Fixed: true}, table.Column{Title: "type", Fixed: true}, num("min"), num("max"), num("mean"), num("norm"), table.Column{Title: "not finite"})
	for i, v := range m.Graph.Outputs {
		a := outs[i]
		if !a.IsTensor() || a.Str != nil {
			t.Row(v.Name, a.String())
			continue
		}
		st := statsOf(a)
		t.Row(v.Name, a.Type().String(), short(st.min), short(st.max), short(st.mean), short(st.norm), st.odd())
	}
	return s.writeTable(w, t)
}

func short(x float64) string { return fmt.Sprintf("%.6g", x) }

func (s *session) reportOutputs(m *graph.Model, outs []*op.Array) {
	type output struct {
		Name string  `json:"name"`
		Type string  `json:"type"`
		Min  float64 `json:"min"`
		Max  float64 `json:"max"`
		Mean float64 `json:"mean"`
		Norm float64 `json:"norm"`
		NaN  int     `json:"nan"`
		Inf  int     `json:"inf"`
	}
	list := []output{}
	for i, v := range m.Graph.Outputs {
		st := statsOf(outs[i])
		list = append(list, output{v.Name, outs[i].Type().String(), st.min, st.max, st.mean, st.norm, st.nan, st.inf})
	}
	s.report.set("engine", s.String("engine"))
	s.report.set("outputs", list)
}
