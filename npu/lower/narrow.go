package lower

import (
	"gradtool/graph"
	"gradtool/graph/op"
)

// typeAttrs are the attributes that name an element type.
var typeAttrs = []string{"to", "dtype", "output_dtype", "output_datatype", "stash_type", "precision"}

// Narrow gives every value of type double the type float, in m's graph and its subgraphs, and returns how many there are. Constants are rounded;
// inputs and outputs change their type too.
func Narrow(m *graph.Model) (int, error) {
	n := 0
	for g := range m.Graph.Graphs() {
		for v := range g.Values() {
			if v.Type.IsTensor() && v.Type.Elem == graph.Double {
				v.Type.Elem = graph.Float
				n++
			}
			if v.Init != nil && v.Init.Elem == graph.Double {
				t, err := narrowed(v.Init)
				if err != nil {
					return n, err
				}
				v.Init = t
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
				t, err := narrowed(a.T)
				if err != nil {
					return n, err
				}
				k.SetAttr(graph.TensorAttr(a.Name, t))
				n++
			}
		}
	}
	return n, nil
}

// narrowed returns t in float.
func narrowed(t *graph.Tensor) (*graph.Tensor, error) {
	a, err := op.FromTensor(t, false)
	if err != nil {
		return nil, err
	}
	out := op.NewArray(graph.Float, a.Shape, false)
	for i := range out.F32 {
		out.F32[i] = float32(a.Float(i))
	}
	w := out.Tensor()
	w.Name = t.Name
	return w, nil
}
