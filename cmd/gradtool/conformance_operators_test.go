package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gradtool/autodiff"
	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
	"gradtool/graph/op/schema"
)

// TestConformanceOperators runs the rule of every operator over its samples, in float64.
//
// First order: for small samples the whole Jacobian, by columns of central differences and by rows of the VJP; else slopes along
// a random direction of each operand. Forms: the sample is written in every version of its operator that can
// say it, upgraded again, and must have the same gradient. Second order: the gradient's own gradient, with respect to operands
// and cotangents, against slopes. Types: in float16, bfloat16 and double, where the operator's schema has them, gradient
// graphs are valid and gradients have their operand's type. The table is logged (scripts/conformance).
func TestConformanceOperators(t *testing.T) {
	if testing.Short() {
		t.Skip("about a thousand Jacobians")
	}
	t.Logf("%-28s %-20s %7s %7s %7s  %s", "operator", "forms", "samples", "first", "second", "types")
	all := conformance{types: map[graph.DataType]int{}}
	operators := 0
	for _, d := range op.All() {
		r := autodiff.Lookup(op.Key{Domain: d.Domain, Name: d.Name})
		if r == nil || r.Kind != autodiff.HasVJP && r.Kind != autodiff.Decomposed {
			continue
		}
		c := conformance{types: map[graph.DataType]int{}}
		for i, s := range d.Samples {
			if s.NoGrad != "" {
				c.exempt = append(c.exempt, s.NoGrad)
				continue
			}
			t.Run(d.Name+"/"+s.Title(i), func(t *testing.T) {
				c.samples++
				if err := c.sample(d, s); err != nil {
					t.Error(err)
				}
			})
		}
		if c.first == 0 && len(c.exempt) == 0 {
			t.Errorf("%s: no sample shows its derivative", d.Name)
		}
		operators++
		all.add(c)
		t.Logf("%-28s %-20s %7d %7s %7s  %s", op.Key{Domain: d.Domain, Name: d.Name}, c.formList(d), c.samples, ratio(c.first, c.samples), ratio(c.second, c.samples), c.typeList()+c.exemptions())
	}
	t.Logf("%d operators: %d samples, of which %d with a differentiable operand agree in first order (%d whole Jacobians) and %d in second; %d other forms; %s",
		operators, all.samples, all.first, all.jacobians, all.second, all.otherForms, all.typeList())
}

// conformance counts what holds of one operator's samples.
type conformance struct {
	samples, first, second int
	jacobians, otherForms  int
	forms                  []int // versions in which some sample was written
	types                  map[graph.DataType]int
	exempt                 []string // why samples that were left out have no derivative to compare
}

// exemptions lists why samples were left out.
func (c *conformance) exemptions() string {
	slices.Sort(c.exempt)
	if list := slices.Compact(c.exempt); len(list) > 0 {
		return "; left out: " + strings.Join(list, ", ")
	}
	return ""
}

func (c *conformance) add(b conformance) {
	c.samples, c.first, c.second = c.samples+b.samples, c.first+b.first, c.second+b.second
	c.jacobians, c.otherForms = c.jacobians+b.jacobians, c.otherForms+b.otherForms
	for k, n := range b.types {
		c.types[k] += n
	}
}

func ratio(a, b int) string {
	if a == b {
		return fmt.Sprint(a)
	}
	return fmt.Sprintf("%d/%d", a, b)
}

// formList lists the versions of the operator that were tried, out of all.
func (c *conformance) formList(d *op.Def) string {
	slices.Sort(c.forms)
	return fmt.Sprintf("%s of %d", versionList(c.forms), len(schema.Versions(d.Domain, d.Name)))
}

var testedTypes = [...]graph.DataType{graph.Float16, graph.BFloat16, graph.Float, graph.Double}

func (c *conformance) typeList() string {
	var parts []string
	for _, e := range testedTypes {
		if n := c.types[e]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", e, n))
		}
	}
	return strings.Join(parts, ", ")
}

// sample runs one sample through everything.
func (c *conformance) sample(d *op.Def, s op.Sample) error {
	base, err := newSampleRun(d, s, 0)
	if err != nil {
		return err
	}
	if len(base.wrt) == 0 { // nothing to differentiate, no word about any order
		c.samples--
		return nil
	}
	jacobian, err := base.firstOrder()
	if err != nil {
		return fmt.Errorf("first order: %w", err)
	}
	c.first++
	if jacobian {
		c.jacobians++
	}
	c.types[graph.Float]++
	grads, err := base.gradients()
	if err != nil {
		return err
	}
	for _, v := range schema.Versions(d.Domain, d.Name) {
		other, err := newSampleRun(d, s, int64(v.Since))
		var illegal *op.OpsetError
		if d.Domain != "" || errors.As(err, &illegal) {
			continue // this version cannot say it
		}
		if err != nil {
			return fmt.Errorf("opset %d: %w", v.Since, err)
		}
		got, err := other.gradients()
		if err != nil {
			return fmt.Errorf("opset %d: %w", v.Since, err)
		}
		if err := sameGradients(got, grads); err != nil {
			return fmt.Errorf("opset %d: %w", v.Since, err)
		}
		c.otherForms++
		if !slices.Contains(c.forms, v.Since) {
			c.forms = append(c.forms, v.Since)
		}
	}
	if err := base.secondOrder(); err != nil {
		return fmt.Errorf("second order: %w", err)
	}
	c.second++
	for _, elem := range testedTypes {
		if elem == graph.Float {
			continue
		}
		if ok, err := typedGradient(d, inElem(s, elem)); err != nil {
			return fmt.Errorf("in %s: %w", elem, err)
		} else if ok {
			c.types[elem]++
		}
	}
	return nil
}

// sampleRun is a sample's model with its gradient, and a point in float64.
type sampleRun struct {
	m    *graph.Model
	info *op.Info
	feed []*op.Array // by input
	of   []*graph.Value
	wrt  []*graph.Value
	res  *autodiff.GradResult
}

// newSampleRun builds the model, by way of the form of an opset unless it is 0, and appends its gradient.
func newSampleRun(d *op.Def, s op.Sample, opset int64) (*sampleRun, error) {
	m, feed, err := op.SampleModel(d, s, 3, "")
	if err != nil {
		return nil, err
	}
	if opset > 0 {
		if err := op.SetOpset(m, opset); err != nil {
			return nil, err
		}
		if err := op.Upgrade(m); err != nil {
			return nil, err
		}
	}
	r := &sampleRun{m: m}
	if r.info, err = op.Infer(m); err != nil {
		return nil, err
	}
	r.of = autodiff.FloatOutputs(m)
	for i, a := range feed {
		feed[i] = wide(a)
	}
	r.feed = feed
	free := autodiff.FloatInputs(m)
	for _, v := range m.Graph.Inits {
		if v.Type.Elem.IsDifferentiable() {
			free = append(free, v)
		}
	}
	if len(r.of) > 0 {
		r.wrt = autodiff.Reached(m, r.of, free)
	}
	if len(r.wrt) == 0 {
		return r, nil
	}
	return r, r.differentiate(r.of, r.wrt)
}

// differentiate appends the gradient of some outputs, and gives the cotangents random values.
func (r *sampleRun) differentiate(of, wrt []*graph.Value) error {
	machine, err := interp.New(r.m, interp.Options{Wide: true})
	if err != nil {
		return err
	}
	outs, err := machine.Run(r.feed)
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(4, 4))
	at := map[*graph.Value]*op.Array{}
	for i, y := range r.m.Graph.Outputs {
		at[y] = outs[i]
	}
	if r.res, err = autodiff.Gradient(r.m, r.info, autodiff.GradOptions{Of: of, Wrt: wrt, Seeds: true}); err != nil {
		return err
	}
	for _, y := range of {
		ct := op.NewArray(y.Type.Elem, at[y].Shape, true)
		for j := range ct.F64 {
			if x := at[y].Float(j); !math.IsInf(x, 0) && !math.IsNaN(x) {
				ct.F64[j] = rng.Float64()*2 - 1
			}
		}
		r.feed = append(r.feed, ct)
	}
	return nil
}

// gradients evaluates the gradients at the point.
func (r *sampleRun) gradients() ([]*op.Array, error) {
	machine, err := interp.New(r.m, interp.Options{Wide: true})
	if err != nil {
		return nil, err
	}
	outs, err := machine.Run(r.feed)
	if err != nil {
		return nil, err
	}
	var grads []*op.Array
	for _, g := range r.res.Grads {
		grads = append(grads, outs[slices.Index(r.m.Graph.Outputs, g.Out)])
	}
	return grads, nil
}

// sameGradients compares two ways to the same gradients.
func sameGradients(got, want []*op.Array) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d gradients, want %d", len(got), len(want))
	}
	for i, w := range want {
		for j := range w.Len() {
			if a, b := got[i].Float(j), w.Float(j); !(math.Abs(a-b) <= 1e-6*(1+math.Abs(b))) { // scalars that were float32 attributes
				return fmt.Errorf("gradient %d, element %d: %g, in the newest form %g", i, j, a, b)
			}
		}
	}
	return nil
}

// smallJacobian is how many elements operands and results of a whole Jacobian have together.
const smallJacobian = 48

// firstOrder compares the VJP with central differences and tells whether that was the whole Jacobian.
func (r *sampleRun) firstOrder() (whole bool, err error) {
	d, err := newDifferences(r.m, r.res, r.of, r.feed, 0)
	if err != nil {
		return false, err
	}
	size := 0
	for _, w := range d.weights {
		size += w.Len()
	}
	for _, x := range r.wrt {
		size += d.feed[d.at[x]].Len()
	}
	if size > smallJacobian {
		bad, err := compareAt(r.m, r.res, r.of, r.feed, 1e-7)
		if err == nil && bad != nil {
			err = fmt.Errorf("gradient of %s: slope %.9g, want %.9g", bad.Name, bad.Got, bad.Want)
		}
		return false, err
	}
	return true, r.jacobian(d)
}

// jacobian compares all entries: row k is the VJP of unit cotangent k, column j a central difference along element j.
func (r *sampleRun) jacobian(d *differences) error {
	first := len(r.m.Graph.Inputs) - len(r.res.Cotangents)
	for i := range r.res.Cotangents {
		for k := range d.weights[i].Len() {
			unit := func(at int) *op.Array {
				ct := op.NewArray(d.weights[at].Elem, d.weights[at].Shape, true)
				if at == i {
					ct.F64[k] = 1
				}
				return ct
			}
			row := *r
			row.feed = slices.Clone(r.feed)
			for at := range r.res.Cotangents {
				row.feed[first+at] = unit(at)
				d.weights[at] = unit(at)
			}
			grads, err := row.gradients()
			if err != nil {
				return err
			}
			for g, x := range r.wrt {
				for j := range grads[g].Len() {
					got := grads[g].Float(j)
					want, err := d.partial(x, j)
					if err != nil {
						return err
					}
					if !(math.Abs(got-want) <= 1e-5*(1+math.Abs(want))) {
						return fmt.Errorf("derivative of element %d of output %d by element %d of %s: %.9g, want %.9g", k, i, j, x.Name, got, want)
					}
				}
			}
		}
	}
	return nil
}

// partial returns the central difference of the objective along element j of x.
func (d *differences) partial(x *graph.Value, j int) (float64, error) {
	const h = 1e-6
	base := d.feed[d.at[x]]
	defer func() { d.feed[d.at[x]] = base }()
	var f [2]float64
	for k, sign := range []float64{1, -1} {
		moved := base.Clone()
		moved.F64[j] += sign * h
		d.feed[d.at[x]] = moved
		v, _, err := d.objective()
		if err != nil {
			return 0, err
		}
		f[k] = v
	}
	return (f[0] - f[1]) / (2 * h), nil
}

// secondOrder compares the gradient of the gradients, by operands and cotangents, with slopes.
func (r *sampleRun) secondOrder() error {
	var of []*graph.Value
	for _, g := range r.res.Grads {
		if !g.Zero {
			of = append(of, g.Out)
		}
	}
	wrt := autodiff.Reached(r.m, of, append(slices.Clone(r.wrt), r.res.Cotangents...))
	if len(wrt) == 0 {
		return nil
	}
	if err := r.differentiate(of, wrt); err != nil {
		return err
	}
	bad, err := compareAt(r.m, r.res, of, r.feed, 1e-7)
	if err == nil && bad != nil {
		err = fmt.Errorf("derivative of the gradient by %s: slope %.9g, want %.9g", bad.Name, bad.Got, bad.Want)
	}
	return err
}

// inElem returns s with its float32 operands in another type.
func inElem(s op.Sample, elem graph.DataType) op.Sample {
	s.In = slices.Clone(s.In)
	for i, a := range s.In {
		if a.Elem == graph.Float {
			s.In[i] = a.As(elem)
		}
	}
	return s
}

// typedGradient builds a sample's gradient and checks the types; ok is false where the operator does not take the sample's types.
func typedGradient(d *op.Def, s op.Sample) (ok bool, err error) {
	m, _, err := op.SampleModel(d, s, 3, "")
	if err != nil {
		return false, nil
	}
	info, err := op.Infer(m)
	if err != nil || op.Verify(m) != nil {
		return false, nil
	}
	of := autodiff.FloatOutputs(m)
	if len(of) == 0 {
		return false, nil
	}
	wrt := autodiff.Reached(m, of, append(autodiff.FloatInputs(m), autodiff.Params(m, of)...))
	if len(wrt) == 0 {
		return false, nil
	}
	res, err := autodiff.Gradient(m, info, autodiff.GradOptions{Of: of, Wrt: wrt, Seeds: true})
	if err != nil {
		return false, err
	}
	for _, g := range res.Grads {
		if g.Out.Type.Elem != g.X.Type.Elem {
			return false, fmt.Errorf("the gradient of %s %s is %s", g.X.Type.Elem, g.X.Name, g.Out.Type.Elem)
		}
	}
	return true, op.Verify(m)
}
