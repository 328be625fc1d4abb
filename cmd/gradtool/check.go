package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"gradtool/autodiff"
	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
	"gradtool/internal/table"
)

func checkVerb() verb {
	return verb{
		name: "check", group: groupRun, args: "[MODEL|DIR|-] [MODEL]", maxArgs: 2,
		summary: "compare a model's gradient with finite differences, or with expected values",
		about: `
A plain model is checked against itself: its gradient along a random direction of each parameter and input is
compared with a central difference, all in double precision. Inputs are random unless given; symbolic
dimensions need --dim.
A folder (or --data) in the layout of the standard's tests, model.onnx and test_data_set_*/input_K.pb,
output_K.pb, is checked against the outputs there and, where it has cotangent_K.pb and grad_K.pb, against those
gradients; with tangent_K.pb also against jvp_K.pb, the derivatives of outputs along the tangents, and hvp_K.pb, those
of the gradients. The names of the tensors in the files say which values they are about.
With --equiv two models are compared that should compute the same: both run in double precision on random
inputs, zeros of either sign, infinities, NaN, denormal numbers, and empty tensors where dimensions are symbolic.
Ends with exit code 3 if something differs.`,
		examples: []string{
			"gradtool check model.onnx --dim N=2",
			"gradtool check --equiv model.onnx pruned.onnx",
			"gradtool check --loss mse --wrt 'fc1.*' model.onnx --random 7 --dim N=2",
			"gradtool check test_softmax_example",
			"gradtool check model.onnx --data test_data_set_0 --engine ort",
		},
		flags: slices.Concat(gradFlags(), feedFlags(), []cli.Flag{
			&cli.StringFlag{Name: "data", Usage: "compare with the values in `DIR`: input_K.pb, output_K.pb, cotangent_K.pb, grad_K.pb, tangent_K.pb, jvp_K.pb, hvp_K.pb"},
			&cli.BoolFlag{Name: "equiv", Usage: "compare what two models compute"},
			&cli.BoolFlag{Name: "symbolic", Usage: "make every dimension of the inputs symbolic first"},
			&cli.Float64Flag{Name: "rtol", DefaultText: "1e-3, 1e-9 for float64, 1e-5 for finite differences", Usage: "relative tolerance `R`"},
			&cli.Float64Flag{Name: "atol", DefaultText: "1e-4, 1e-9 for float64, rounding errors for finite differences", Usage: "absolute tolerance `A`"},
			engineFlag(), jsonFlag(), reportFlag(),
		}, inputFlags()),
		run: runCheck,
	}
}

func runCheck(s *session) error {
	if s.Bool("equiv") {
		list := []string{"data", "in", "symbolic", "engine"}
		for _, f := range gradFlags() {
			list = append(list, f.Names()[0])
		}
		if err := s.idleFlags("with --equiv, which compares two models as they are", list...); err != nil {
			return err
		}
		m, closers, err := s.openPair()
		defer closeAll(closers)
		if err != nil {
			return err
		}
		return s.checkEquiv(m[0], m[1])
	}
	if s.NArg() > 1 {
		return usagef("check takes one argument, got %d: %s; two models are compared with --equiv", s.NArg(), strings.Join(s.Args().Slice(), " "))
	}
	path, err := s.inputPath()
	if err != nil {
		return err
	}
	data := s.String("data")
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		if data == "" {
			data = path
		}
		path = filepath.Join(path, "model.onnx")
	}
	m, closer, err := s.openModel(path)
	if err != nil {
		return err
	}
	defer closer.Close()
	if err := s.inspect(m); err != nil {
		return err
	}
	if s.Bool("symbolic") {
		makeSymbolic(m)
	}
	if data != "" {
		return s.checkData(m, data)
	}
	return s.checkDifferences(m)
}

// makeSymbolic gives every dimension of m's inputs a symbol of its own, and forgets the shapes that the file
// declares for what is computed from them.
func makeSymbolic(m *graph.Model) {
	for i, v := range m.Graph.Inputs {
		if v.Init != nil {
			continue
		}
		for j := range v.Type.Shape {
			v.Type.Shape[j] = graph.Sym(fmt.Sprintf("d%d_%d", i, j))
		}
	}
	for g := range m.Graph.Graphs() {
		for _, n := range g.Nodes {
			for _, v := range n.Out {
				if v != nil {
					v.Type.Shape = nil
				}
			}
		}
	}
}

// verdict is the comparison of one value.
type verdict struct {
	Name   string  `json:"name"`
	What   string  `json:"what"` // output, gradient, slope
	Type   string  `json:"type"`
	Got    float64 `json:"got"`  // of a slope; else the element that differs most
	Want   float64 `json:"want"` // likewise
	MaxAbs float64 `json:"max_abs_error"`
	OK     bool    `json:"ok"`
	Note   string  `json:"note,omitempty"`
}

// conclude prints the verdicts and fails with the code for differences unless all are well.
func (s *session) conclude(list []verdict, t *table.Table) error {
	bad := 0
	for _, v := range list {
		if !v.OK {
			bad++
		}
	}
	s.report.set("ok", bad == 0)
	s.report.set("results", list)
	var err error
	switch {
	case s.Bool("json"):
		err = s.print(s.report.encode)
	case !s.quiet || bad > 0:
		err = s.print(func(w io.Writer) error { return s.writeTable(w, t) })
	}
	if err != nil {
		return err
	}
	if bad > 0 {
		if err := s.report.write(); err != nil {
			return err
		}
		return differencesf("%d of %s differ", bad, count(len(list), "value"))
	}
	s.summaryf("%s %s", count(len(list), "value"), plural(len(list), "agrees", "agree"))
	return nil
}

// checkDifferences compares m's gradient with finite differences.
func (s *session) checkDifferences(m *graph.Model) error {
	if s.String("engine") != "interp" {
		return usagef("finite differences are taken with the engine interp, in double precision")
	}
	dims, err := s.dims()
	if err != nil {
		return err
	}
	if err := bindDims(m, dims); err != nil {
		return err
	}
	keep, err := s.keepRuled()
	if err != nil {
		return err
	}
	info, err := prepare(m, keep)
	if err != nil {
		return err
	}
	s.noteDeclared()
	given, err := s.givenInputs(m)
	if err != nil {
		return err
	}
	feed, err := s.feed(m, given, true)
	if err != nil {
		return err
	}
	opt, err := s.checkOptions(m)
	if err != nil {
		return err
	}
	seed, _, err := s.seed()
	if err != nil {
		return err
	}
	wideOpt := interp.Options{Wide: true, Seed: seed}
	plain := m
	if len(m.Functions) > 0 { // calls that were kept for their rules
		if plain, err = extract(m, m.Graph.Inputs, m.Graph.Outputs); err != nil {
			return err
		}
		plain.Functions = m.Functions
		if err := op.Inline(plain, nil); err != nil {
			return err
		}
	}
	forward, err := interp.New(plain, wideOpt)
	if err != nil {
		return err
	}
	outs, err := forward.Run(feed)
	if err != nil {
		return err
	}
	shapes := map[*graph.Value][]int{}
	at := map[*graph.Value]*op.Array{}
	for i, v := range m.Graph.Outputs {
		shapes[v], at[v] = outs[i].Shape, outs[i]
	}
	res, err := autodiff.Gradient(m, info, opt)
	if err != nil {
		return blocked(err)
	}
	if err := op.Inline(m, nil); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(seed, 9))
	if res.Target != nil {
		targets := map[*graph.Value]*op.Array{}
		for i, a := range feed {
			targets[m.Graph.Inputs[i]] = a
		}
		sizes := bindGiven(m, targets)
		bindResult(opt.Of[0].Type.Shape, shapes[opt.Of[0]], sizes)
		if err := randomInputs(m, targets, sizes, seed, indexBound); err != nil {
			return err
		}
		feed = append(feed, targets[res.Target])
	}
	undefined := 0
	for i := range res.Cotangents {
		y := opt.Of[i]
		a := op.NewArray(y.Type.Elem, shapes[y], true)
		for j := range a.F64 {
			a.F64[j] = rng.NormFloat64()
			if t := at[y].Float(j); math.IsNaN(t) || math.IsInf(t, 0) {
				a.F64[j] = 0
				undefined++
			}
		}
		feed = append(feed, a)
	}
	if undefined > 0 {
		s.notef("%s of the outputs %s not finite at this point and left out", count(undefined, "element"), plural(undefined, "is", "are"))
	}
	machine, err := interp.New(m, wideOpt)
	if err != nil {
		return err
	}
	if outs, err = machine.Run(feed); err != nil {
		return err
	}
	diff, err := newDifferences(m, res, opt.Of, feed, seed)
	if err != nil {
		return err
	}
	diff.rounded = roundedConstants(m)
	var list []verdict
	num := func(title string) table.Column { return table.Column{Title: title, Right: true, Fixed: true} }
	t := table.New(table.Column{Title: "value", Fixed: true}, table.Column{Title: "shape", Fixed: true}, num("analytic"), num("numeric"), num("error"), table.Column{Title: ""})
	for _, g := range res.Grads {
		v, err := s.compareSlope(diff, g, outs[slices.Index(m.Graph.Outputs, g.Out)])
		if err != nil {
			return err
		}
		list = append(list, v)
		t.Row(v.Name, g.X.Type.Shape.String(), fmt.Sprintf("%+.8g", v.Got), fmt.Sprintf("%+.8g", v.Want), fmt.Sprintf("%.1e", v.MaxAbs), okText(v.OK))
	}
	return s.conclude(list, t)
}

// bindResult notes the sizes of the symbols in a result's shape, as it turned out.
func bindResult(declared graph.Shape, got []int, sizes map[string]int64) {
	for i, d := range declared {
		if syms := d.Symbols(); i < len(got) && len(syms) == 1 && d.Same(graph.Sym(syms[0])) {
			sizes[syms[0]] = int64(got[i])
		}
	}
}

func okText(ok bool) string {
	if ok {
		return "ok"
	}
	return "DIFFERS"
}

// checkOptions is gradOptions with all inputs that a derivative reaches and all parameters as the default of --wrt, and with cotangents for
// lone scalars too.
func (s *session) checkOptions(m *graph.Model) (autodiff.GradOptions, error) {
	of, err := s.selectOutputs(m)
	if err != nil {
		return autodiff.GradOptions{}, err
	}
	opt, err := s.gradOptionsWrt(m, of, slices.Concat(autodiff.Reached(m, of, autodiff.FloatInputs(m)), autodiff.Params(m, of)))
	opt.Seeds = true
	return opt, err
}

// Steps of finite differences, relative to the size of the elements. Where a step crosses a kink (of a Relu, say)
// a smaller one may not; a wrong gradient disagrees with all of them.
var steps = [...]float64{1e-5, 1e-6, 1e-7}

// compareSlope compares a gradient along a random direction with the difference quotient, to the tolerances asked for.
func (s *session) compareSlope(d *differences, g autodiff.Grad, grad *op.Array) (verdict, error) {
	rtol, atol := slopeTolerance, -1.0
	if s.IsSet("rtol") {
		rtol = s.Float64("rtol")
	}
	if s.IsSet("atol") {
		atol = s.Float64("atol")
	}
	return slopeAgainst(d, g, grad, rtol, atol)
}

// constantUnits is by how many units in the last place of a 16-bit type the terms of a slope may be off: everything is
// computed in double, but the constants that a derivative brings along are stored in the model's types.
const constantUnits = 4

// roundedConstants is the relative error that constants stored in 16 bits bring into the terms of a slope; 0 without any.
func roundedConstants(m *graph.Model) float64 {
	unit := 0.0
	for g := range m.Graph.Graphs() {
		for v := range g.Values() {
			switch v.Type.Elem {
			case graph.Float16:
				unit = max(unit, 1.0/(1<<11))
			case graph.BFloat16:
				unit = max(unit, 1.0/(1<<8))
			}
		}
	}
	return constantUnits * unit
}

// slopeTolerance is the relative tolerance of slopes.
const slopeTolerance = 1e-5

// slopeAgainst compares a gradient along a random direction with the difference quotient. A negative atol stands for what
// rounding can explain.
func slopeAgainst(d *differences, g autodiff.Grad, grad *op.Array, rtol, atol float64) (verdict, error) {
	v := verdict{Name: g.X.Name, What: "slope", Type: g.X.Type.String()}
	sl := d.direction(g.X)
	v.Got = inner(grad, sl.direction)
	for i, step := range steps {
		if err := d.measure(&sl, g.X, step); err != nil {
			return v, err
		}
		e := math.Abs(v.Got - sl.value)
		slack := atol
		if atol < 0 {
			slack = sl.noise + d.rounded*innerAbs(grad, sl.direction)
		}
		ok := e <= rtol*math.Max(math.Abs(v.Got), math.Abs(sl.value))+slack // false for NaN
		if i == 0 || ok {
			v.Want, v.MaxAbs, v.OK = sl.value, e, ok
		}
		if ok {
			break
		}
	}
	return v, nil
}
