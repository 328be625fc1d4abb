package autodiff

import (
	"gradtool/graph"
	"gradtool/graph/op"
)

// JacobianBlock is the derivative of one output with respect to one value.
type JacobianBlock struct {
	Y, X *graph.Value
	Out  *graph.Value // the new graph output, of Y's shape followed by X's
	Zero bool         // Y does not depend on X
}

// JacobianResult tells what Jacobian added.
type JacobianResult struct {
	Blocks []JacobianBlock // by output, then by value
	// Forward tells that columns were computed, by the forward mode, rather than rows by the reverse mode.
	Forward bool
	naming
	Added int // nodes added
}

// Jacobian appends whole Jacobians to m: for each output y in opt.Of and each x in opt.Wrt an output <y>_<x>_jacobian of y's
// shape followed by x's. A Loop runs over the elements of the smaller side, those of the values if they are known to be fewer
// than those of the outputs, else those of the outputs, and takes one column or row each time by a seed that is 1
// there. The conditions on m are those of [Gradient]; opt.Loss, Seeds and HVP are not used.
func Jacobian(m *graph.Model, info *op.Info, opt GradOptions) (*JacobianResult, error) {
	g := m.Graph
	op.InlineIfs(m, info)
	before, first := len(g.Nodes), m.NextID()
	b := op.NewBuilder(g, info)
	b.Role = graph.RoleBackward
	of, wrt, err := choose(m, opt.Of, opt.Wrt)
	if err != nil {
		return nil, err
	}
	res := &JacobianResult{Forward: fewer(wrt, of)}
	if err := opt.probe(b, of, wrt, res.Forward); err != nil {
		return nil, err
	}
	blocks := make([][]*graph.Value, len(of))
	for i := range blocks {
		blocks[i] = make([]*graph.Value, len(wrt))
	}
	if res.Forward {
		b.Role = graph.RoleTangent
		err = columns(b, of, wrt, opt, blocks)
	} else {
		err = jacobianRows(b, of, wrt, opt, blocks)
	}
	if err != nil {
		return nil, err
	}
	for i, y := range of {
		for j, x := range wrt {
			name := y.Name + "_" + x.Name + "_jacobian"
			b.Prefix = name
			shape := b.Concat(0, b.Shape(y), b.Shape(x))
			v, zero := blocks[i][j], blocks[i][j] == nil
			if zero {
				v = b.Full(shape, y.Type.Elem, 0)
			} else {
				v = b.Reshape(v, shape)
			}
			res.Blocks = append(res.Blocks, JacobianBlock{y, x, res.output(b, v, name), zero})
		}
	}
	dropDead(g, first) // constants that a rule asked for in vain
	res.Added = len(g.Nodes) - before
	return res, b.Err
}

// fewer reports whether xs are known to have fewer elements than ys.
func fewer(xs, ys []*graph.Value) bool {
	total := func(list []*graph.Value) graph.Dim {
		n := graph.Known(0)
		for _, v := range list {
			n = n.Add(v.Type.Shape.Size())
		}
		return n
	}
	return total(xs).Less(total(ys))
}

// seeds adds a Loop over the elements of v, the body of which gets a value like v that is 1 at one element and 0 elsewhere. It
// returns the stacks of what the body returns; where that is nil, so is the stack.
func seeds(b *op.Builder, v *graph.Value, body func(b *op.Builder, seed *graph.Value) ([]*graph.Value, error)) ([]*graph.Value, error) {
	n := b.Op("Size", []*graph.Value{v})
	if size, ok := v.Type.Shape.Size().Int(); ok {
		n = b.IntScalar(size)
	}
	places := b.Op("Range", []*graph.Value{b.IntScalar(0), n, b.IntScalar(1)})
	shape := b.Shape(v)
	var outs []*graph.Value
	var err error
	loop := b.Loop(n, nil, nil, nil, func(b *op.Builder, i *graph.Value, _ []*graph.Value) op.LoopBody {
		seed := b.Reshape(b.Cast(b.Binary("Equal", places, i), v.Type.Elem), shape)
		outs, err = body(b, seed)
		var r op.LoopBody
		for _, y := range outs {
			if y != nil {
				r.Stack = append(r.Stack, y)
			}
		}
		return r
	})
	if err != nil {
		return nil, err
	}
	stacks := make([]*graph.Value, len(outs))
	k := 0
	for i, y := range outs {
		if y != nil {
			stacks[i] = loop.Out[k]
			k++
		}
	}
	if k == 0 {
		b.G.Remove(loop)
	}
	return stacks, b.Err
}

// jacobianRows computes rows by the reverse mode.
func jacobianRows(b *op.Builder, of, wrt []*graph.Value, opt GradOptions, blocks [][]*graph.Value) error {
	for i, y := range of {
		b.Prefix = y.Name + "_jacobian"
		stacks, err := seeds(b, y, func(s *op.Builder, ct *graph.Value) ([]*graph.Value, error) {
			return reverseIn(s, b.G, []Seed{{y, ct}}, wrt, opt.Loop, opt.Policy)
		})
		if err != nil {
			return err
		}
		copy(blocks[i], stacks)
	}
	return nil
}

// columns computes columns by the forward mode, which a transposition makes rows.
func columns(b *op.Builder, of, wrt []*graph.Value, opt GradOptions, blocks [][]*graph.Value) error {
	for j, x := range wrt {
		b.Prefix = x.Name + "_jacobian"
		stacks, err := seeds(b, x, func(s *op.Builder, t *graph.Value) ([]*graph.Value, error) {
			return forwardIn(s, b.G, []Tangent{{x, t}}, of, opt.Policy)
		})
		if err != nil {
			return err
		}
		for i, v := range stacks {
			if v != nil {
				size := func(v *graph.Value) *graph.Value {
					if n, ok := v.Type.Shape.Size().Int(); ok {
						return b.Ints(n)
					}
					return b.ReshapeTo(b.Op("Size", []*graph.Value{v}), 1)
				}
				blocks[i][j] = b.Transpose(b.Reshape(v, b.Concat(0, size(x), size(of[i]))), 1, 0)
			}
		}
	}
	return nil
}
