package lower

import (
	"fmt"
	"math"

	"gradtool/graph"
	"gradtool/graph/op"
)

// typeAttrs are the attributes that name an element type.
var typeAttrs = []string{"to", "dtype", "output_dtype", "output_datatype", "stash_type", "precision"}

// Narrow gives every value of type double the type float, in m's graph and its subgraphs, and returns how many there are. Constants are rounded;
// inputs and outputs change their type too. It tells which constants have numbers too large for float, which become infinite, or too small, which
// become 0.
func Narrow(m *graph.Model) (n int, lost []string, err error) {
	note := func(name string, large, tiny int) {
		switch {
		case large > 0 && tiny > 0:
			lost = append(lost, fmt.Sprintf("%q (%d become infinite, %d become 0)", name, large, tiny))
		case large > 0:
			lost = append(lost, fmt.Sprintf("%q (%d become infinite)", name, large))
		case tiny > 0:
			lost = append(lost, fmt.Sprintf("%q (%d become 0)", name, tiny))
		}
	}
	for g := range m.Graph.Graphs() {
		for v := range g.Values() {
			if v.Type.IsTensor() && v.Type.Elem == graph.Double {
				v.Type.Elem = graph.Float
				n++
			}
			if v.Init != nil && v.Init.Elem == graph.Double {
				t, large, tiny, err := narrowed(v.Init)
				if err != nil {
					return n, lost, err
				}
				v.Init = t
				note(v.Name, large, tiny)
			}
		}
		for _, k := range g.Nodes {
			for _, name := range typeAttrs {
				if graph.DataType(k.Int(name, 0)) == graph.Double {
					k.SetAttr(graph.IntAttr(name, int64(graph.Float)))
					n++
				}
			}
			for _, a := range k.Attrs {
				if a.T == nil || a.T.Elem != graph.Double {
					continue
				}
				t, large, tiny, err := narrowed(a.T)
				if err != nil {
					return n, lost, err
				}
				k.SetAttr(graph.TensorAttr(a.Name, t))
				if len(k.Out) > 0 && k.Out[0] != nil {
					note(k.Out[0].Name, large, tiny)
				}
				n++
			}
		}
	}
	return n, lost, nil
}

// narrowed returns t in float, and how many of its numbers are too large for it, and too small.
func narrowed(t *graph.Tensor) (narrow *graph.Tensor, large, tiny int, err error) {
	a, err := op.FromTensor(t, false)
	if err != nil {
		return nil, 0, 0, err
	}
	out := op.NewArray(graph.Float, a.Shape, false)
	for i := range out.F32 {
		x := a.Float(i)
		y := float32(x)
		out.F32[i] = y
		switch {
		case math.IsInf(float64(y), 0) && !math.IsInf(x, 0):
			large++
		case y == 0 && x != 0:
			tiny++
		}
	}
	w := out.Tensor()
	w.Name = t.Name
	return w, large, tiny, nil
}
