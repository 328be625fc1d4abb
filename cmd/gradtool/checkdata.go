package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gradtool/autodiff"
	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/internal/table"
)

// dataset is a folder of expected values.
type dataset struct {
	dir        string
	inputs     []named
	outputs    []named
	cotangents []named
	grads      []named
	tangents   []named
	jvps       []named
	hvps       []named
}

// appended are the derivatives that were appended to a model for a dataset; nil where it asks for none.
type appended struct {
	grad *autodiff.GradResult
	jvp  *autodiff.JVPResult
}

// checkData compares m with the values in dir, or in its folders test_data_set_*.
func (s *session) checkData(m *graph.Model, dir string) error {
	if s.IsSet("loss") || s.IsSet("in") {
		return usagef("--loss and --in do not go with expected values, which bring their own inputs")
	}
	e, err := s.engine()
	if err != nil {
		return err
	}
	dirs, err := datasetDirs(dir)
	if err != nil {
		return err
	}
	var sets []dataset
	for _, d := range dirs {
		set, err := readDataset(m, d)
		if err != nil {
			return err
		}
		sets = append(sets, set)
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
	forward := slices.Clone(m.Graph.Outputs)
	inputs := slices.Clone(m.Graph.Inputs)
	res, err := s.derivativesOf(m, info, sets[0])
	if err == nil {
		err = op.Inline(m, nil) // calls that were kept for their rules
	}
	if err != nil {
		return err
	}
	var list []verdict
	t := table.New(table.Column{Title: "value", Fixed: true}, table.Column{Title: "", Fixed: true}, table.Column{Title: "type", Fixed: true},
		table.Column{Title: "max error", Right: true, Fixed: true}, table.Column{Title: ""}, table.Column{Title: "where"})
	for _, set := range sets {
		feed, err := set.feed(m, inputs, res)
		if err != nil {
			return err
		}
		outs, err := e.run(m, feed, 1)
		if err != nil {
			return err
		}
		add := func(what, name string, got *op.Array, want *op.Array) {
			v := s.compare(what, name, got, want)
			list = append(list, v)
			t.Row(v.Name, v.What, v.Type, fmt.Sprintf("%.1e", v.MaxAbs), okText(v.OK), v.Note)
		}
		for i, x := range set.outputs {
			v := byName(forward, x.name)
			if v == nil && i < len(forward) {
				v = forward[i]
			}
			if v == nil {
				return fmt.Errorf("%s: the model has no output %d", set.dir, i)
			}
			add("output", v.Name, outs[slices.Index(m.Graph.Outputs, v)], x.value)
		}
		for _, x := range set.grads {
			add("gradient", x.name, outs[slices.Index(m.Graph.Outputs, res.gradOf(x.name).Out)], x.value)
		}
		for i, x := range set.jvps {
			add("jvp", x.name, outs[slices.Index(m.Graph.Outputs, res.jvp.Outputs[i].Out)], x.value)
		}
		for _, x := range set.hvps {
			add("hvp", x.name, outs[slices.Index(m.Graph.Outputs, res.gradOf(x.name).HVP)], x.value)
		}
	}
	err = s.conclude(list, t)
	for n := range m.Graph.AllNodes() {
		if op.Of(n).Has(op.Random) {
			return hint(err, "node %s draws random numbers, which differ between programs", n.Label())
		}
	}
	return err
}

// datasetDirs returns the folders with input_K.pb: dir itself, or those named test_data_set_* in it.
func datasetDirs(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var sets []string
	for _, e := range entries {
		switch name := e.Name(); {
		case strings.HasPrefix(name, "output_") && strings.HasSuffix(name, ".pb"):
			return []string{dir}, nil
		case e.IsDir() && strings.HasPrefix(name, "test_data_set_"):
			sets = append(sets, filepath.Join(dir, name))
		}
	}
	if len(sets) == 0 {
		return nil, fmt.Errorf("%s holds neither output_0.pb nor folders test_data_set_K", dir)
	}
	return sets, nil
}

// readDataset reads the values of one folder.
func readDataset(m *graph.Model, dir string) (dataset, error) {
	set := dataset{dir: dir}
	types := func(list []*graph.Value) func(int) graph.Type {
		return func(i int) graph.Type {
			if i < len(list) {
				return list[i].Type
			}
			return graph.Type{}
		}
	}
	tensor := func(int) graph.Type { return graph.Type{Kind: graph.KindTensor} }
	for _, part := range []struct {
		prefix string
		typ    func(int) graph.Type
		to     *[]named
	}{
		{"input", types(m.Graph.Inputs), &set.inputs}, {"output", types(m.Graph.Outputs), &set.outputs},
		{"cotangent", tensor, &set.cotangents}, {"grad", tensor, &set.grads},
		{"tangent", tensor, &set.tangents}, {"jvp", tensor, &set.jvps}, {"hvp", tensor, &set.hvps},
	} {
		for i := 0; ; i++ {
			path := filepath.Join(dir, fmt.Sprintf("%s_%d.pb", part.prefix, i))
			if !fileExists(path) {
				break
			}
			x, err := readProto(path, part.typ(i))
			if err != nil {
				return set, err
			}
			*part.to = append(*part.to, x)
		}
	}
	return set, nil
}

// derivativesOf appends to m what the set expects: the gradients, and products of Hessians with the tangents, of the outputs
// that it has cotangents for; and derivatives of outputs along the tangents.
func (s *session) derivativesOf(m *graph.Model, info *op.Info, set dataset) (appended, error) {
	opt := autodiff.GradOptions{Seeds: true, HVP: len(set.hvps) > 0}
	var jvp autodiff.JVPOptions
	values := slices.Collect(m.Graph.Values())
	var bad []error
	find := func(pool []*graph.Value, x named, what string, list *[]*graph.Value) {
		v := byName(pool, x.name)
		if v == nil {
			bad = append(bad, fmt.Errorf("%s: the %s of %q: the model has no such value", set.dir, what, x.name))
		} else if !slices.Contains(*list, v) {
			*list = append(*list, v)
		}
	}
	for _, x := range set.cotangents {
		find(m.Graph.Outputs, x, "cotangent", &opt.Of)
	}
	for _, x := range slices.Concat(set.grads, set.hvps) {
		find(values, x, "gradient", &opt.Wrt)
	}
	for _, x := range set.tangents {
		find(values, x, "tangent", &jvp.Wrt)
		if opt.HVP {
			find(values, x, "tangent", &opt.Wrt)
		}
	}
	for _, x := range set.jvps {
		find(m.Graph.Outputs, x, "tangent", &jvp.Of)
	}
	if len(opt.Of) == 0 && len(opt.Wrt) > 0 {
		bad = append(bad, fmt.Errorf("%s has gradients but no cotangent_0.pb", set.dir))
	}
	if len(set.tangents) == 0 && len(set.jvps)+len(set.hvps) > 0 {
		bad = append(bad, fmt.Errorf("%s has jvp_0.pb or hvp_0.pb but no tangent_0.pb", set.dir))
	}
	if len(bad) > 0 {
		return appended{}, joinErrors(bad)
	}
	var res appended
	p, err := s.policy(m)
	if err != nil {
		return res, err
	}
	opt.Policy, jvp.Policy = p, p
	if text := s.String("loop"); text != "" {
		if opt.Loop, err = autodiff.ParseLoopPlan(text); err != nil {
			return res, usagef("--loop: %v", err)
		}
	}
	if len(opt.Wrt) > 0 {
		if res.grad, err = autodiff.Gradient(m, info, opt); err != nil {
			return res, blocked(err)
		}
	}
	if len(jvp.Of) > 0 {
		res.jvp, err = autodiff.JVP(m, info, jvp)
	}
	return res, blocked(err)
}

// gradOf returns the gradient with respect to the value of that name.
func (a appended) gradOf(name string) autodiff.Grad {
	for _, g := range a.grad.Grads {
		if g.X.Name == name {
			return g
		}
	}
	return autodiff.Grad{}
}

// given enters the set's cotangents and tangents for the inputs that take them. What has no tangent does not move.
func (a appended) given(set dataset, to map[*graph.Value]*op.Array) error {
	if a.grad != nil {
		for i, ct := range a.grad.Cotangents {
			if i >= len(set.cotangents) {
				return fmt.Errorf("%s: the cotangent %q is missing", set.dir, ct.Name)
			}
			to[ct] = set.cotangents[i].value
		}
		for _, g := range a.grad.Grads {
			if g.Tangent == nil {
				continue
			}
			t := valueOf(set.tangents, g.X.Name)
			if like := valueOf(set.grads, g.X.Name); t == nil && like != nil {
				t = op.NewArray(like.Elem, like.Shape, false)
			}
			to[g.Tangent] = t
		}
	}
	if a.jvp != nil {
		for i, t := range a.jvp.Tangents {
			if i < len(set.tangents) {
				to[t] = set.tangents[i].value
			}
		}
	}
	return nil
}

func valueOf(list []named, name string) *op.Array {
	for _, x := range list {
		if x.name == name {
			return x.value
		}
	}
	return nil
}

func byName(list []*graph.Value, name string) *graph.Value {
	for _, v := range list {
		if v.Name == name && name != "" {
			return v
		}
	}
	return nil
}

// feed returns one value per input of m: those of the forward part by name, else by position, then the cotangents and tangents.
func (set dataset) feed(m *graph.Model, inputs []*graph.Value, res appended) ([]*op.Array, error) {
	given := map[*graph.Value]*op.Array{}
	for i, x := range set.inputs {
		v := byName(inputs, x.name)
		if v == nil && i < len(inputs) {
			v = inputs[i]
		}
		if v == nil {
			return nil, fmt.Errorf("%s: input %d: the model has %s", set.dir, i, count(len(inputs), "input"))
		}
		given[v] = x.value
	}
	if err := res.given(set, given); err != nil {
		return nil, err
	}
	out := make([]*op.Array, len(m.Graph.Inputs))
	for i, v := range m.Graph.Inputs {
		out[i] = given[v]
		if out[i] == nil && v.Init == nil {
			return nil, fmt.Errorf("%s: the input %q is missing", set.dir, v.Name)
		}
	}
	return out, nil
}

// tolerances returns the tolerances for values of an element type: two units in the last place of bfloat16 are
// more than the usual relative one.
func (s *session) tolerances(elem graph.DataType) (rtol, atol float64) {
	rtol, atol = 1e-3, 1e-4
	switch elem {
	case graph.Double, graph.Complex128:
		rtol, atol = 1e-9, 1e-9
	case graph.BFloat16:
		rtol = 1.0 / 128
	}
	if s.IsSet("rtol") {
		rtol = s.Float64("rtol")
	}
	if s.IsSet("atol") {
		atol = s.Float64("atol")
	}
	return rtol, atol
}

// compare compares a computed with an expected value: kind, element type and shape exactly, elements within the
// tolerances, NaN and infinities being equal to themselves.
func (s *session) compare(what, name string, got, want *op.Array) verdict {
	v := verdict{Name: name, What: what, Type: got.Type().String(), OK: true}
	if !got.IsTensor() || !want.IsTensor() {
		return s.compareLists(v, got, want)
	}
	if got.Elem != want.Elem || !slices.Equal(got.Shape, want.Shape) {
		v.OK, v.Note = false, "want "+want.Type().String()
		return v
	}
	if got.Str != nil {
		if i := firstDifference(got.Str, want.Str); i >= 0 {
			v.OK, v.Note = false, fmt.Sprintf("%v: got %q, want %q", position(i, got.Shape), got.Str[i], want.Str[i])
		}
		return v
	}
	rtol, atol := s.tolerances(got.Elem)
	if got.I64 != nil {
		rtol, atol = 0, 0
	}
	worst := -1
	excess := 0.0
	for i := range got.Len() {
		a, b := number(got, i), number(want, i)
		e := distance(a, b)
		if e > v.MaxAbs || math.IsNaN(e) {
			v.MaxAbs = e
		}
		if !(e <= atol+rtol*magnitude(b)) {
			over := e / (atol + rtol*magnitude(b))
			if worst < 0 || over > excess || math.IsNaN(over) {
				worst, excess = i, over
			}
		}
	}
	if worst >= 0 {
		v.OK = false
		v.Got, v.Want = got.Float(worst), want.Float(worst)
		v.Note = fmt.Sprintf("%v: got %.9g, want %.9g", position(worst, got.Shape), v.Got, v.Want)
		// JSON has no NaN.
		for _, x := range []*float64{&v.Got, &v.Want, &v.MaxAbs} {
			if math.IsNaN(*x) || math.IsInf(*x, 0) {
				*x = 0
			}
		}
	}
	return v
}

func (s *session) compareLists(v verdict, got, want *op.Array) verdict {
	if got.Kind != want.Kind || len(got.Seq) != len(want.Seq) {
		v.OK, v.Note = false, fmt.Sprintf("got %s, want %s", got, want)
		return v
	}
	for i := range got.Seq {
		e := s.compare(v.What, v.Name, got.Seq[i], want.Seq[i])
		v.MaxAbs = math.Max(v.MaxAbs, e.MaxAbs)
		if !e.OK && v.OK {
			v.OK, v.Note = false, fmt.Sprintf("element %d: %s", i, e.Note)
		}
	}
	return v
}

func firstDifference(a, b []string) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

func number(a *op.Array, i int) complex128 {
	if a.C128 != nil {
		return a.C128[i]
	}
	return complex(a.Float(i), 0)
}

// distance is |a - b|, 0 for equal infinities and for NaN on both sides, NaN for NaN on one.
func distance(a, b complex128) float64 {
	part := func(x, y float64) float64 {
		if x == y || math.IsNaN(x) && math.IsNaN(y) {
			return 0
		}
		return x - y
	}
	return math.Hypot(part(real(a), real(b)), part(imag(a), imag(b)))
}

func magnitude(a complex128) float64 {
	m := math.Hypot(real(a), imag(a))
	if math.IsNaN(m) || math.IsInf(m, 0) {
		return 0
	}
	return m
}

// position returns the index of element i of a row-major tensor.
func position(i int, shape []int) []int {
	out := make([]int, len(shape))
	for k := len(shape) - 1; k >= 0; k-- {
		out[k] = i % shape[k]
		i /= shape[k]
	}
	return out
}
