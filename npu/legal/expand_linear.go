package legal

import (
	"math/bits"

	"gradtool/graph"
	"gradtool/graph/op"
)

// linearExpansions holds operators that are a product with a known matrix, and others that pick known elements.
func linearExpansions() map[string]expansion {
	return map[string]expansion{"DFT": expandDFT, "QLinearMatMul": expandQLinearMatMul, "Compress": expandCompress, "Det": expandDet}
}

// maxDet bounds the matrices whose determinants are written out.
const maxDet = 6

// expandDet expands determinants along rows. That of the first rows and a set of columns is the sum over the columns of the set of the row's
// element times the determinant of the rows before and the other columns; each set is computed once.
func expandDet(_ *op.Info, n *graph.Node) (func(b *op.Builder) []*graph.Value, error) {
	x, err := sizes(n.In[0])
	if err != nil {
		return nil, err
	}
	rank := int64(len(x))
	size := x[rank-1]
	if size < 1 || size > maxDet {
		return nil, unsupported("matrices of %d rows; %d are the most", size, maxDet)
	}
	return func(b *op.Builder) []*graph.Value {
		at := func(row, column int64) *graph.Value {
			return b.Gather(b.Gather(n.In[0], b.IntScalar(row), rank-2), b.IntScalar(column), rank-2)
		}
		minors := map[int]*graph.Value{} // by set of columns, as bits
		for row := range size {
			next := map[int]*graph.Value{}
			for set := range 1 << size {
				if int64(bits.OnesCount(uint(set))) != row+1 {
					continue
				}
				before := 0 // columns of the set in front
				for c := range size {
					if set>>c&1 == 0 {
						continue
					}
					term := at(row, c)
					if m := minors[set&^(1<<c)]; m != nil {
						term = b.Mul(term, m)
					}
					// Along the last of its rows a determinant alternates, with plus at the right end.
					switch odd := (int(row)-before)%2 != 0; {
					case next[set] == nil && odd:
						next[set] = b.Neg(term)
					case next[set] == nil:
						next[set] = term
					case odd:
						next[set] = b.Sub(next[set], term)
					default:
						next[set] = b.Add(next[set], term)
					}
					before++
				}
			}
			minors = next
		}
		return []*graph.Value{minors[1<<size-1]}
	}, nil
}

// maxMatrix bounds the elements of the matrix of a transform.
const maxMatrix = 1 << 22

// expandDFT multiplies the signal's axis, with the parts of its elements, by the matrix of the transform, which the evaluator
// gives for the unit vectors.
func expandDFT(info *op.Info, n *graph.Node) (func(b *op.Builder) []*graph.Value, error) {
	x, y, err := sizesOfTwo(n.In[0], n.Out[0])
	if err != nil {
		return nil, err
	}
	rank := int64(len(x))
	in := make([]*op.Array, 3)
	for i := 1; i < len(n.In); i++ {
		if n.In[i] == nil {
			continue
		}
		if in[i] = info.Const(n.In[i]); in[i] == nil {
			return nil, unsupported("operand %d is known at run time only", i)
		}
	}
	axis := rank - 2
	if in[2] != nil {
		if axis = in[2].I64[0]; axis < 0 {
			axis += rank
		}
	}
	if device(n.In[0].Type.Elem) != graph.Float || axis < 0 || axis > rank-2 {
		return nil, unsupported("elements of type %s along axis %d", n.In[0].Type.Elem, axis)
	}
	from, to := x[axis]*x[rank-1], y[axis]*y[rank-1]
	if from < 1 || to < 1 || from > maxMatrix || to > maxMatrix/from {
		return nil, unsupported("a transform of %d elements", x[axis])
	}
	units := op.NewArray(graph.Float, []int{int(from), int(x[axis]), int(x[rank-1])}, false)
	for i := range int(from) {
		units.F32[i*int(from)+i] = 1
	}
	in[0], in[2] = units, op.Ints(1).WithShape(nil)
	c := &op.EvalCtx{Node: n, In: in, Out: make([]*op.Array, 1)}
	if err := c.Eval(op.Of(n)); err != nil {
		return nil, unsupported("%v", err)
	}
	return func(b *op.Builder) []*graph.Value {
		// The axis comes next to the parts, and goes back.
		there, back := make([]int64, 0, rank), make([]int64, rank)
		for i := range rank {
			if i != axis && i != rank-1 {
				there = append(there, i)
			}
		}
		there = append(there, axis, rank-1)
		shape := make([]int64, 0, rank)
		for i, p := range there {
			back[p] = int64(i)
			shape = append(shape, y[p])
		}
		v := b.Transpose(b.Cast(n.In[0], graph.Float), there...)
		w := b.Const(graph.Floats([]int64{from, to}, c.Out[0].F32...))
		v = b.ReshapeTo(b.MatMul(b.ReshapeTo(v, -1, from), w), shape...)
		return []*graph.Value{b.Cast(b.Transpose(v, back...), n.In[0].Type.Elem)}
	}, nil
}

// expandQLinearMatMul multiplies codes in integers and scales the sums; scales and zero points of the first operand are by row.
func expandQLinearMatMul(_ *op.Info, n *graph.Node) (func(b *op.Builder) []*graph.Value, error) {
	for _, i := range []int{1, 2} {
		if len(n.In[i].Type.Shape) > 1 {
			return nil, unsupported("scales of rank %d", len(n.In[i].Type.Shape))
		}
	}
	return func(b *op.Builder) []*graph.Value {
		sum := b.Cast(b.Op("MatMulInteger", []*graph.Value{n.In[0], n.In[3], n.In[2], n.In[5]}), graph.Float)
		rows := n.In[1]
		if s, ok := rows.Type.Shape.Ints(); ok && len(s) == 1 && s[0] > 1 {
			rows = b.Unsqueeze(rows, 1)
		}
		q := b.Mul(sum, b.Div(b.Mul(rows, n.In[4]), n.In[6]))
		return []*graph.Value{code(b, q, b.Cast(n.In[7], graph.Float), n.Out[0].Type.Elem)}
	}, nil
}

// expandCompress gathers what a known condition selects.
func expandCompress(info *op.Info, n *graph.Node) (func(b *op.Builder) []*graph.Value, error) {
	cond := info.Const(n.In[1])
	if cond == nil {
		return nil, unsupported("the condition is known at run time only")
	}
	var list []int64
	for i := range cond.Len() {
		if cond.Float(i) != 0 {
			list = append(list, int64(i))
		}
	}
	if len(list) == 0 {
		return nil, unsupported("nothing is selected")
	}
	return func(b *op.Builder) []*graph.Value {
		x, axis := n.In[0], n.Int("axis", 0)
		if !n.HasAttr("axis") {
			x = b.ReshapeTo(x, -1)
		}
		return []*graph.Value{b.Gather(x, b.Ints(list...), axis)}
	}, nil
}
