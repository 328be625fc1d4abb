package op

import (
	"errors"
	"fmt"

	"gradtool/graph"
)

// scanForm is a Scan's attributes in full: its first states operands are carried, the others are sliced.
type scanForm struct {
	body                             *graph.Graph
	states                           int
	inAxes, inDirs, outAxes, outDirs []int64
}

func newScanForm(n *graph.Node) (*scanForm, error) {
	s := &scanForm{body: n.Subgraph("body"), inAxes: n.Ints("scan_input_axes"), inDirs: n.Ints("scan_input_directions"),
		outAxes: n.Ints("scan_output_axes"), outDirs: n.Ints("scan_output_directions")}
	scans := n.Int("num_scan_inputs", 0)
	switch {
	case s.body == nil:
		return nil, errors.New("body must be given")
	case scans < 1 || scans > int64(len(n.In)):
		return nil, fmt.Errorf("num_scan_inputs is %d, want 1 to %d", scans, len(n.In))
	}
	s.states = len(n.In) - int(scans)
	outs := len(s.body.Outputs) - s.states
	switch {
	case len(s.body.Inputs) != len(n.In):
		return nil, fmt.Errorf("the body has %d inputs for %d operands", len(s.body.Inputs), len(n.In))
	case outs < 0 || len(n.Out) > len(s.body.Outputs):
		return nil, fmt.Errorf("the body has %d outputs for %d states and %d results", len(s.body.Outputs), s.states, len(n.Out))
	}
	for _, list := range []struct {
		name string
		vals []int64
		want int
	}{{"scan_input_axes", s.inAxes, int(scans)}, {"scan_input_directions", s.inDirs, int(scans)},
		{"scan_output_axes", s.outAxes, outs}, {"scan_output_directions", s.outDirs, outs}} {
		if list.vals != nil && len(list.vals) != list.want {
			return nil, fmt.Errorf("%s has %d elements, want %d", list.name, len(list.vals), list.want)
		}
	}
	return s, nil
}

// at returns element i of an optional list whose default is 0.
func at(list []int64, i int) int64 {
	if i < len(list) {
		return list[i]
	}
	return 0
}

func (s *scanForm) inAxis(i int) int64     { return at(s.inAxes, i) }
func (s *scanForm) inReversed(i int) bool  { return at(s.inDirs, i) != 0 }
func (s *scanForm) outAxis(i int) int64    { return at(s.outAxes, i) }
func (s *scanForm) outReversed(i int) bool { return at(s.outDirs, i) != 0 }

// inferScan types the body and the results: the final states, and what the body's other outputs give when stacked.
func inferScan(c *InferCtx) error {
	n := c.Node
	s, err := newScanForm(n)
	if err != nil {
		return err
	}
	length := graph.Unknown()
	slices := make([]graph.Type, len(n.In)-s.states)
	for i := range slices {
		t := c.In(s.states + i)
		if !t.IsTensor() {
			continue
		}
		slices[i] = graph.TensorOf(t.Elem, nil)
		if t.Shape == nil {
			continue
		}
		if len(t.Shape) == 0 {
			return c.Errorf("scan input %d is a scalar", i)
		}
		axis, err := normAxis(s.inAxis(i), len(t.Shape))
		if err != nil {
			return c.Errorf("scan input %d: %w", i, err)
		}
		slices[i].Shape = append(append(graph.Shape{}, t.Shape[:axis]...), t.Shape[axis+1:]...)
		var clash bool
		if length, clash = mergeDim(length, t.Shape[axis]); clash {
			return c.Errorf("scan inputs have lengths %s and %s", length, t.Shape[axis])
		}
	}
	l := &bodyInfer{c: c, body: s.body, init: n.In[:s.states]}
	l.prepare = func() {
		for i, t := range slices {
			l.input(s.states+i, t)
		}
	}
	types, bodyErr, err := l.run()
	if err != nil {
		return err
	}
	for k := range types {
		c.SetType(k, types[k])
		if l.invariant(k) {
			c.forwardValue(k, n.In[k])
		}
	}
	for i := s.states; i < len(n.Out); i++ {
		t, err := stackedType(s.body.Outputs[i].Type, s.outAxis(i-s.states), length)
		if err != nil {
			return c.Errorf("output %d of the body: %w", i, err)
		}
		c.SetType(i, t)
	}
	if t, ok := length.Int(); ok && t > 0 {
		return bodyErr
	}
	return nil
}

func evalScan(c *EvalCtx) error {
	s, err := newScanForm(c.Node)
	if err != nil {
		return err
	}
	length := -1
	axes := make([]int, len(c.In)-s.states)
	for i := range axes {
		a := c.In[s.states+i]
		if a == nil || !a.IsTensor() || a.Rank() == 0 {
			return c.Errorf("scan input %d must be a tensor of rank 1 at least", i)
		}
		if axes[i], err = normAxis(s.inAxis(i), a.Rank()); err != nil {
			return err
		}
		if n := a.Shape[axes[i]]; length >= 0 && n != length {
			return c.Errorf("scan inputs have lengths %d and %d", length, n)
		} else {
			length = n
		}
	}
	state := append([]*Array{}, c.In[:s.states]...)
	stacks := make([][]*Array, len(s.body.Outputs)-s.states)
	for t := range length {
		in := append([]*Array{}, state...)
		for i, axis := range axes {
			p := t
			if s.inReversed(i) {
				p = length - 1 - t
			}
			in = append(in, sliceAt(c.In[s.states+i], axis, p))
		}
		out, err := c.Run(s.body, in)
		if err != nil {
			return err
		}
		copy(state, out)
		for j := range stacks {
			stacks[j] = append(stacks[j], out[s.states+j])
		}
	}
	results := state
	for j, list := range stacks {
		if s.outReversed(j) {
			for a, b := 0, len(list)-1; a < b; a, b = a+1, b-1 {
				list[a], list[b] = list[b], list[a]
			}
		}
		a, err := c.stack(list, s.outAxis(j), s.body.Outputs[s.states+j])
		if err != nil {
			return err
		}
		results = append(results, a)
	}
	return c.take(results)
}
