package op

import (
	"gradtool/graph"
)

func evalIf(c *EvalCtx) error {
	cond := c.Arg(0)
	if cond == nil || len(cond.I64) != 1 {
		return c.Errorf("the condition must be one bool")
	}
	g := c.Node.Subgraph("else_branch")
	if cond.I64[0] != 0 {
		g = c.Node.Subgraph("then_branch")
	}
	out, err := c.Run(g, nil)
	if err != nil {
		return err
	}
	return c.take(out)
}

// take makes the arrays the first results; there must be enough.
func (c *EvalCtx) take(out []*Array) error {
	if len(out) < len(c.Out) {
		return c.Errorf("%d outputs for %d results", len(out), len(c.Out))
	}
	copy(c.Out, out)
	return nil
}

func evalLoop(c *EvalCtx) error {
	body := c.Node.Subgraph("body")
	carried := max(len(c.In)-2, 0)
	if body == nil || len(body.Inputs) != 2+carried || len(body.Outputs) < 1+carried {
		return c.Errorf("the body does not fit the operands")
	}
	trips, limited := int64(0), false
	if m := c.Arg(0); m != nil {
		if len(m.I64) != 1 {
			return c.Errorf("the trip count must be one integer, got %s", m.Type())
		}
		trips, limited = m.I64[0], true
	}
	going := true
	if cond := c.Arg(1); cond != nil {
		if len(cond.I64) != 1 {
			return c.Errorf("the condition must be one bool, got %s", cond.Type())
		}
		going = cond.I64[0] != 0
	}
	state := append([]*Array{}, c.In[min(2, len(c.In)):]...)
	stacks := make([][]*Array, len(body.Outputs)-1-carried)
	for i := int64(0); going && (!limited || i < trips); i++ {
		in := append([]*Array{oneInt(body.Inputs[0], graph.Int64, i), oneInt(body.Inputs[1], graph.Bool, 1)}, state...)
		out, err := c.Run(body, in)
		if err != nil {
			return err
		}
		if len(out[0].I64) != 1 {
			return c.Errorf("the condition that the body returns must be one bool, got %s", out[0].Type())
		}
		going = out[0].I64[0] != 0
		copy(state, out[1:1+carried])
		for j := range stacks {
			stacks[j] = append(stacks[j], out[1+carried+j])
		}
	}
	results := state
	for j, list := range stacks {
		a, err := c.stack(list, 0, body.Outputs[1+carried+j])
		if err != nil {
			return err
		}
		results = append(results, a)
	}
	return c.take(results)
}

// oneInt returns x as an integer or bool of the shape that v is declared with: a scalar or a vector of one element.
func oneInt(v *graph.Value, elem graph.DataType, x int64) *Array {
	a := &Array{Elem: elem, Shape: []int{}, I64: []int64{x}, Kind: graph.KindTensor}
	if v.Type.IsTensor() && len(v.Type.Shape) == 1 {
		a.Shape = []int{1}
	}
	return a
}

// stack joins arrays of one shape along a new axis. Of none at all the result has size 0 there, and the other sizes as
// far as v's type tells them, else 0.
func (c *EvalCtx) stack(list []*Array, axis int64, v *graph.Value) (*Array, error) {
	if len(list) == 0 {
		shape := make([]int, len(v.Type.Shape)+1)
		at, err := normAxis(axis, len(shape))
		if err != nil {
			return nil, err
		}
		for i, j := 0, 0; i < len(shape); i++ {
			if i == at {
				continue
			}
			if n, ok := v.Type.Shape[j].Int(); ok {
				shape[i] = int(n)
			}
			j++
		}
		return c.New(v.Type.Elem, shape), nil
	}
	for _, a := range list {
		if !a.IsTensor() || a.Elem != list[0].Elem || !sameInts(a.Shape, list[0].Shape) {
			return nil, c.Errorf("iterations give %s and %s for %q, which cannot be stacked", list[0].Type(), a.Type(), v.Name)
		}
	}
	at, err := normAxis(axis, len(list[0].Shape)+1)
	if err != nil {
		return nil, err
	}
	first := list[0]
	shape := append(append(append([]int{}, first.Shape[:at]...), len(list)), first.Shape[at:]...)
	out := NewArray(first.Elem, shape, c.Wide)
	outer, inner := prod(first.Shape[:at]), prod(first.Shape[at:])
	for i, a := range list {
		for o := range outer {
			out.copyRun((o*len(list)+i)*inner, a, o*inner, inner)
		}
	}
	return out, nil
}

// sliceAt returns a[..., i, ...] without the axis.
func sliceAt(a *Array, axis, i int) *Array {
	shape := append(append([]int{}, a.Shape[:axis]...), a.Shape[axis+1:]...)
	out := a.NewLike(shape)
	outer, n, inner := prod(a.Shape[:axis]), a.Shape[axis], prod(a.Shape[axis+1:])
	for o := range outer {
		out.copyRun(o*inner, a, (o*n+i)*inner, inner)
	}
	return out
}

func sameInts(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Costs: the work of the nodes inside, as far as their shapes are known.

func costIf(c *CostCtx) float64 {
	return max(BodyCost(c.Node.Subgraph("then_branch")), BodyCost(c.Node.Subgraph("else_branch")))
}

// costLoop counts one iteration unless a result that stacks values tells how many there are.
func costLoop(c *CostCtx) float64 {
	trips := 1
	for i := max(len(c.Node.In)-2, 0); i < len(c.Out); i++ {
		if len(c.Out[i]) > 0 {
			trips = c.Out[i][0]
		}
	}
	return float64(trips) * BodyCost(c.Node.Subgraph("body"))
}

func costScan(c *CostCtx) float64 {
	s, err := newScanForm(c.Node)
	if err != nil || len(c.In) == 0 || s.states >= len(c.In) {
		return 0
	}
	shape := c.In[s.states]
	at, err := normAxis(s.inAxis(0), len(shape))
	if err != nil {
		return 0
	}
	return float64(shape[at]) * BodyCost(s.body)
}

// BodyCost adds up the costs of g's nodes, in floating-point operations; those with open shapes count nothing.
func BodyCost(g *graph.Graph) float64 {
	if g == nil {
		return 0
	}
	sum := 0.0
	for _, n := range g.Nodes {
		d := Of(n)
		if d == nil {
			continue
		}
		c := &CostCtx{Node: n, In: knownShapes(n.In), Out: knownShapes(n.Out)}
		switch {
		case d.Has(Control) && d.Cost != nil:
			sum += d.Cost(c)
		case c.In == nil || c.Out == nil:
		case d.Cost != nil:
			sum += d.Cost(c)
		default:
			sum += c.OutLen(0)
		}
	}
	return sum
}

// knownShapes returns the values' shapes, nil for omitted ones; nil altogether if one is open.
func knownShapes(vals []*graph.Value) [][]int {
	out := make([][]int, len(vals))
	for i, v := range vals {
		if v == nil {
			continue
		}
		s, ok := v.Type.Shape.Ints()
		if !ok || v.Type.Shape == nil {
			return nil
		}
		out[i] = make([]int, len(s))
		for j := range s {
			out[i][j] = int(s[j])
		}
	}
	return out
}
