package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gradtool/autodiff"
	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
)

// slope is the derivative of a model's objective along one direction of one value, by finite differences.
type slope struct {
	direction *op.Array
	value     float64
	step      float64 // the step it was taken with
	noise     float64 // how far off rounding alone can have put it
}

// differences takes finite differences of the objective of a model with a gradient: its loss or, without
// one, the sum of its differentiated outputs, each in inner product with its cotangent.
type differences struct {
	machine *interp.Machine // of the forward part; wrt values are its inputs
	feed    []*op.Array     // by input of the forward part
	at      map[*graph.Value]int
	weights []*op.Array // by output; nil for a weight of 1
	names   []string    // of the outputs
	rng     *rand.Rand
	rounded float64 // relative error of terms that stored constants explain
}

// newDifferences prepares differences of m's objective with respect to the values of res, at the point that
// feed gives by input of m. of are the differentiated outputs.
func newDifferences(m *graph.Model, res *autodiff.GradResult, of []*graph.Value, feed []*op.Array, seed uint64) (*differences, error) {
	outs := of
	d := &differences{at: map[*graph.Value]int{}, rng: rand.New(rand.NewPCG(seed, 3))}
	if res.Loss != nil {
		outs = []*graph.Value{res.Loss}
	}
	for i := range outs {
		var w *op.Array
		if i < len(res.Cotangents) {
			w = feed[slices.Index(m.Graph.Inputs, res.Cotangents[i])]
		}
		d.weights = append(d.weights, w)
		d.names = append(d.names, outs[i].Name)
	}
	free := slices.Clone(m.Graph.Inputs)
	for _, g := range res.Grads {
		if !slices.Contains(free, g.X) {
			free = append(free, g.X)
		}
	}
	part, err := extract(m, free, outs)
	if err != nil {
		return nil, err
	}
	if d.machine, err = interp.New(part, interp.Options{Wide: true, Seed: seed}); err != nil {
		return nil, err
	}
	for i, v := range free {
		d.at[v] = i
		var a *op.Array
		switch {
		case i < len(feed) && feed[i] != nil:
			a = wide(feed[i])
		case v.Init != nil:
			if a, err = op.FromTensor(v.Init, true); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("finite differences with respect to %q: it is computed by a node, so it cannot be varied alone; only inputs and initializers can", v.Name)
		}
		d.feed = append(d.feed, a)
	}
	return d, nil
}

// wide returns a with its floats in float64.
func wide(a *op.Array) *op.Array {
	if a.F32 == nil {
		return a
	}
	w := op.NewArray(a.Elem, a.Shape, true)
	for i, x := range a.F32 {
		w.F64[i] = float64(x)
	}
	return w
}

// direction returns a slope of x that is yet to be measured, along a random direction.
func (d *differences) direction(x *graph.Value) slope {
	s := slope{direction: op.NewArray(d.feed[d.at[x]].Elem, d.feed[d.at[x]].Shape, true)}
	for j := range s.direction.F64 {
		s.direction.F64[j] = d.rng.NormFloat64()
	}
	return s
}

// measure takes the slope of x along its direction, by central differences with a step relative to the size
// of x's elements. Away from kinks the truncation error falls with the square of the step and the rounding error grows
// with its inverse: 1e-5 balances the two in float64.
func (d *differences) measure(s *slope, x *graph.Value, relStep float64) error {
	i := d.at[x]
	base := d.feed[i]
	s.step = relStep * math.Max(statsOf(base).meanAbs, 1e-2)
	defer func() { d.feed[i] = base }()
	var at [2]float64
	size := 0.0
	for k, sign := range []float64{1, -1} {
		moved := base.Clone()
		for j := range moved.F64 {
			moved.F64[j] += sign * s.step * s.direction.F64[j]
		}
		d.feed[i] = moved
		v, sz, err := d.objective()
		if err != nil {
			return err
		}
		at[k], size = v, math.Max(size, sz)
	}
	s.value = (at[0] - at[1]) / (2 * s.step)
	s.noise = size * 1e-14 / s.step
	return nil
}

// objective returns the objective at the present point, and the sum of the magnitudes of its terms. Terms of weight zero
// take no part, even if they are not finite.
func (d *differences) objective() (value, size float64, err error) {
	outs, err := d.machine.Run(d.feed)
	if err != nil {
		return 0, 0, err
	}
	for i, a := range outs {
		w := d.weights[i]
		if w != nil && !slices.Equal(w.Shape, a.Shape) {
			return 0, 0, hint(fmt.Errorf("output %q has the shape %v at one point and %v nearby, so it has no derivative", d.names[i], w.Shape, a.Shape), "choose other outputs with --of")
		}
		for j := range a.Len() {
			t := a.Float(j)
			if w != nil {
				if w.Float(j) == 0 {
					continue
				}
				t *= w.Float(j)
			}
			value += t
			size += math.Abs(t)
		}
	}
	return value, size, nil
}

// extract returns a model that computes the values outs of m's main graph from the values free, which become its
// inputs in that order. Other initializers stay initializers.
func extract(m *graph.Model, free, outs []*graph.Value) (*graph.Model, error) {
	to := &graph.Model{IRVersion: m.IRVersion, Opsets: slices.Clone(m.Opsets), File: m.File}
	to.Graph = to.NewGraph(m.Graph.Name)
	c := &graph.Cloner{To: to, Values: map[*graph.Value]*graph.Value{}, KeepTypes: true}
	for _, v := range free {
		c.Values[v] = to.Graph.AddInput(to.Fresh(v.Name), v.Type)
	}
	needed := map[*graph.Value]bool{}
	for _, v := range outs {
		needed[v] = true
	}
	var nodes []*graph.Node
	for _, n := range slices.Backward(m.Graph.Nodes) {
		if !slices.ContainsFunc(n.Out, func(v *graph.Value) bool { return v != nil && needed[v] && c.Values[v] == nil }) {
			continue
		}
		nodes = append(nodes, n)
		for _, v := range slices.Concat(n.In, n.Captures()) {
			if v != nil {
				needed[v] = true
			}
		}
	}
	for _, v := range m.Graph.Inits {
		if needed[v] && c.Values[v] == nil {
			w := to.Graph.AddInit(to.Fresh(v.Name), v.Init)
			w.Type = v.Type
			c.Values[v] = w
		}
	}
	for _, n := range slices.Backward(nodes) {
		k, err := c.Node(to.Graph, n)
		if err != nil {
			return nil, err
		}
		to.Graph.Append(k)
	}
	for _, v := range outs {
		w := c.Values[v]
		if w == nil {
			return nil, fmt.Errorf("value %q is defined by nothing", v.Name)
		}
		to.Graph.AddOutput(w)
	}
	return to, nil
}

// slopes returns one slope per gradient of res.
func slopes(m *graph.Model, res *autodiff.GradResult, of []*graph.Value, feed []*op.Array) ([]slope, error) {
	d, err := newDifferences(m, res, of, feed, 0)
	if err != nil {
		return nil, err
	}
	var out []slope
	for _, g := range res.Grads {
		s := d.direction(g.X)
		if err := d.measure(&s, g.X, steps[0]); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}
