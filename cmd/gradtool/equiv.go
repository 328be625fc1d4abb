package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
	"gradtool/internal/table"
)

// twins are two models that are compared: inputs and outputs go by name.
type twins struct {
	s    *session
	m    [2]*graph.Model
	wide bool // in double precision
	rtol float64
	atol float64 // relative to the largest element of the value
}

// newTwins makes two models ready to run.
func (s *session) newTwins(a, b *graph.Model, wide bool) (*twins, error) {
	t := &twins{s: s, m: [2]*graph.Model{a, b}, wide: wide, rtol: 1e-6, atol: 1e-6}
	if s.IsSet("rtol") {
		t.rtol = s.Float64("rtol")
	}
	if s.IsSet("atol") {
		t.atol = s.Float64("atol")
	}
	for _, m := range t.m {
		if _, err := prepare(m, nil); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// interfaceOf returns how inputs and outputs differ: names, order, types. An input with a default may be missing.
func interfaceOf(a, b *graph.Model) []string {
	var out []string
	for _, x := range []struct {
		what string
		a, b []*graph.Value
	}{{"input", a.Graph.Inputs, b.Graph.Inputs}, {"output", a.Graph.Outputs, b.Graph.Outputs}} {
		for _, v := range x.a {
			w := byName(x.b, v.Name)
			switch {
			case w == nil && (x.what == "output" || v.Init == nil):
				out = append(out, fmt.Sprintf("%s %q (%s) is in the first only", x.what, v.Name, v.Type))
			case w != nil && clash(v.Type, w.Type):
				out = append(out, fmt.Sprintf("%s %q is %s in the first, %s in the second", x.what, v.Name, v.Type, w.Type))
			}
		}
		for _, w := range x.b {
			if byName(x.a, w.Name) == nil && (x.what == "output" || w.Init == nil) {
				out = append(out, fmt.Sprintf("%s %q (%s) is in the second only", x.what, w.Name, w.Type))
			}
		}
		common := func(from, in []*graph.Value) []string {
			var list []string
			for _, v := range from {
				if byName(in, v.Name) != nil {
					list = append(list, v.Name)
				}
			}
			return list
		}
		if p, q := common(x.a, x.b), common(x.b, x.a); !slices.Equal(p, q) {
			out = append(out, fmt.Sprintf("the %ss stand in different orders", x.what))
		}
	}
	return out
}

// clash reports whether two types exclude each other.
func clash(a, b graph.Type) bool {
	if a.Kind == graph.KindUnknown || b.Kind == graph.KindUnknown {
		return false
	}
	if a.Kind != b.Kind || a.Elem != b.Elem && a.Elem != graph.Undefined && b.Elem != graph.Undefined {
		return true
	}
	if a.Shape == nil || b.Shape == nil {
		return false
	}
	if len(a.Shape) != len(b.Shape) {
		return true
	}
	for i := range a.Shape {
		x, ok := a.Shape[i].Int()
		y, ok2 := b.Shape[i].Int()
		if ok && ok2 && x != y {
			return true
		}
	}
	return false
}

// trial is one set of inputs.
type trial struct {
	name string
	dims map[string]int64 // for symbols that the command line gives no size
	fill func(rng *rand.Rand, a *op.Array)
}

// edges are the values at which arithmetic is special.
func edges(elem graph.DataType) []float64 {
	small, large := math.Ldexp(1, -140), math.Ldexp(1.5, 126) // of float: below and near the ends of the normal range
	switch elem {
	case graph.Double:
		small, large = math.Ldexp(1, -1060), math.Ldexp(1.5, 1020)
	case graph.Float16:
		small, large = math.Ldexp(1, -20), 60000
	}
	return []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), small, -small, large, -large, 1, -1}
}

// trials returns the inputs that equivalence is tested on.
func trials() []trial {
	constant := func(x float64) func(*rand.Rand, *op.Array) {
		return func(_ *rand.Rand, a *op.Array) {
			for i := range a.Len() {
				a.SetFloat(i, x)
			}
		}
	}
	some := func(share float64) func(*rand.Rand, *op.Array) {
		return func(rng *rand.Rand, a *op.Array) {
			list := edges(a.Elem)
			for i := range a.Len() {
				if rng.Float64() < share {
					a.SetFloat(i, list[rng.IntN(len(list))])
				}
			}
		}
	}
	return []trial{
		{"random", nil, nil}, {"random again", nil, nil}, {"sizes of 1", map[string]int64{"": 1}, nil},
		{"large", nil, func(rng *rand.Rand, a *op.Array) {
			for i := range a.Len() {
				a.SetFloat(i, 30*a.Float(i))
			}
		}},
		{"zeros", nil, constant(0)}, {"negative zeros", nil, constant(math.Copysign(0, -1))},
		{"some edge values", nil, some(0.02)}, {"edge values", nil, some(1)}, {"empty", map[string]int64{"": 0}, nil},
	}
}

// feeds returns inputs for both models. given has what the command line gives.
func (t *twins) feeds(x trial, seed uint64) ([2][]*op.Array, error) {
	var out [2][]*op.Array
	dims, err := t.s.dims()
	if err != nil {
		return out, err
	}
	sizes := map[string]int64{}
	for _, name := range inputSymbols(t.m[0]) {
		sizes[name] = 3
		if n, ok := x.dims[""]; ok {
			sizes[name] = n
		} else if n, ok := dims[name]; ok {
			sizes[name] = n
		}
	}
	values := map[*graph.Value]*op.Array{}
	if err := randomInputs(t.m[0], values, sizes, seed, indexBound); err != nil {
		return out, err
	}
	rng := rand.New(rand.NewPCG(seed, 77))
	byInput := map[string]*op.Array{}
	for _, v := range t.m[0].Graph.Inputs {
		a := values[v]
		if a == nil {
			continue
		}
		if x.fill != nil && a.IsFloat() {
			x.fill(rng, a)
			a.Round()
		}
		byInput[v.Name] = a
	}
	for i, m := range t.m {
		for _, v := range m.Graph.Inputs {
			a := byInput[v.Name]
			if a == nil && v.Init == nil {
				return out, fmt.Errorf("input %q of one model is missing in the other", v.Name)
			}
			out[i] = append(out[i], a)
		}
	}
	return out, nil
}

// run computes the outputs of both models, by name. If one fails and the other does not, that is a difference, which is told.
func (t *twins) run(feeds [2][]*op.Array, seed uint64) (outs [2]map[string]*op.Array, failed string, err error) {
	var errs [2]error
	for i, m := range t.m {
		machine, err := interp.New(m, interp.Options{Wide: t.wide, Seed: seed})
		if err != nil {
			return outs, "", err
		}
		list, err := machine.Run(feeds[i])
		errs[i] = err
		outs[i] = map[string]*op.Array{}
		for k, a := range list {
			outs[i][m.Graph.Outputs[k].Name] = a
		}
	}
	switch {
	case errs[0] != nil && errs[1] != nil:
		return outs, "neither runs: " + firstLineOf(errs[0]), nil
	case errs[0] != nil:
		return outs, "", differencesf("the first model fails, the second does not: %w", errs[0])
	case errs[1] != nil:
		return outs, "", differencesf("the second model fails, the first does not: %w", errs[1])
	}
	return outs, "", nil
}

func firstLineOf(err error) string {
	text := err.Error()
	for i, c := range text {
		if c == '\n' {
			return text[:i]
		}
	}
	return text
}

// compare compares an output of both models: type and shape exactly, elements within the tolerances; NaN equals NaN, and -0 equals 0
// but is counted.
func (t *twins) compare(name string, want, got *op.Array) verdict {
	v := verdict{Name: name, What: "output", Type: want.Type().String(), OK: true}
	switch {
	case want == nil || got == nil:
		v.OK, v.Note = false, "missing"
		return v
	case !want.IsTensor() || !got.IsTensor():
		return t.s.compareLists(v, got, want)
	case got.Elem != want.Elem || !slices.Equal(got.Shape, want.Shape):
		v.OK, v.Note = false, "the second gives "+got.Type().String()
		return v
	case got.Str != nil:
		if i := firstDifference(got.Str, want.Str); i >= 0 {
			v.OK, v.Note = false, fmt.Sprintf("%v: %q, then %q", position(i, got.Shape), want.Str[i], got.Str[i])
		}
		return v
	}
	rtol, atol := t.rtol, 0.0
	if got.I64 != nil {
		rtol = 0
	} else {
		for i := range want.Len() {
			atol = max(atol, t.atol*magnitude(number(want, i)))
		}
		if t.s.IsSet("atol") {
			atol = t.atol
		}
	}
	zeros := 0
	for i := range got.Len() {
		a, b := number(got, i), number(want, i)
		e := distance(a, b)
		if e > v.MaxAbs || math.IsNaN(e) {
			v.MaxAbs = e
		}
		if v.OK && !(e <= atol+rtol*magnitude(b)) {
			v.OK = false
			v.Note = fmt.Sprintf("%v: %.9g, then %.9g", position(i, got.Shape), want.Float(i), got.Float(i))
		}
		if a == 0 && b == 0 && got.C128 == nil && math.Signbit(got.Float(i)) != math.Signbit(want.Float(i)) {
			zeros++
		}
	}
	if math.IsNaN(v.MaxAbs) || math.IsInf(v.MaxAbs, 0) {
		v.MaxAbs = math.MaxFloat64 // JSON has neither
	}
	if v.OK && zeros > 0 {
		v.Note = count(zeros, "zero") + " of the other sign"
	}
	return v
}

// outputs compares the outputs that both models have.
func (t *twins) outputs(outs [2]map[string]*op.Array) []verdict {
	var list []verdict
	for _, v := range t.m[0].Graph.Outputs {
		if byName(t.m[1].Graph.Outputs, v.Name) != nil {
			list = append(list, t.compare(v.Name, outs[0][v.Name], outs[1][v.Name]))
		}
	}
	return list
}

// checkEquiv compares two models on inputs of many kinds, in double precision.
func (s *session) checkEquiv(a, b *graph.Model) error {
	t, err := s.newTwins(a, b, true)
	if err != nil {
		return err
	}
	for _, m := range t.m {
		for n := range m.Graph.AllNodes() {
			if op.Of(n).Has(op.Random) && n.Op != "Dropout" {
				return hint(fmt.Errorf("node %s draws random numbers, which are not the same in two models", n.Label()), "give the node a seed, or compare the graphs with diff")
			}
		}
	}
	seed, given, err := s.seed()
	if err != nil {
		return err
	}
	if !given {
		seed = 1
	}
	if problems := interfaceOf(a, b); len(problems) > 0 {
		for _, p := range problems {
			s.notef("%s", p)
		}
		return differencesf("inputs or outputs differ")
	}
	var list []verdict
	view := table.New(table.Column{Title: "inputs", Fixed: true}, table.Column{Title: "output", Fixed: true}, table.Column{Title: "type", Fixed: true},
		table.Column{Title: "max error", Right: true, Fixed: true}, table.Column{Title: ""}, table.Column{Title: "first difference"})
	symbols := len(inputSymbols(a)) > 0
	for i, x := range trials() {
		if x.dims != nil && !symbols {
			continue
		}
		feeds, err := t.feeds(x, seed+uint64(i))
		if err != nil {
			return err
		}
		outs, skipped, err := t.run(feeds, seed)
		if err != nil {
			return fmt.Errorf("inputs %q: %w", x.name, err)
		}
		if skipped != "" {
			s.notef("inputs %q: %s", x.name, skipped)
			continue
		}
		for _, v := range t.outputs(outs) {
			v.What = x.name
			list = append(list, v)
			view.Row(x.name, v.Name, v.Type, fmt.Sprintf("%.1e", v.MaxAbs), okText(v.OK), v.Note)
		}
	}
	return s.conclude(list, view)
}
