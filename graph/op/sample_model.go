package op

import (
	"fmt"
	"math/rand/v2"

	"gradtool/graph"
)

// SampleModel returns a model of one node that applies d to the sample's operands, and the arrays to
// feed its inputs. Constant operands are initializers. With hide set the inputs' shapes are unknown
// dimensions of known rank ("rank"), symbols ("symbols", dimensions of equal size sharing one; "empty", only those of size 0) or wholly unknown
// ("all"); "" declares them in full.
func SampleModel(d *Def, s Sample, seed uint64, hide string) (*graph.Model, []*Array, error) {
	m := graph.NewModel("sample", SampleOpset)
	if d.Domain != "" {
		m.SetOpset(d.Domain, 1)
	}
	g := m.Graph
	rng := rand.New(rand.NewPCG(seed, 7))
	var in []*graph.Value
	var feed []*Array
	for i, a := range s.In {
		if a.Elem == graph.Undefined {
			in = append(in, nil)
			continue
		}
		arr := a.array(rng)
		name := fmt.Sprintf("x%d", i)
		if a.Const {
			in = append(in, g.AddInit(name, arr.Tensor()))
			continue
		}
		t := arr.Type()
		switch hide {
		case "rank":
			t.Shape = graph.UnknownShape(len(arr.Shape))
		case "symbols":
			for j, n := range arr.Shape {
				if n != 1 {
					t.Shape[j] = graph.Sym(fmt.Sprintf("N%d", n))
				}
			}
		case "empty":
			for j, n := range arr.Shape {
				if n == 0 {
					t.Shape[j] = graph.Sym("N")
				}
			}
		case "all":
			t.Shape = nil
		}
		in = append(in, g.AddInput(name, t))
		feed = append(feed, arr)
	}
	if s.Build != nil {
		info, err := Infer(m)
		if err != nil {
			return nil, nil, err
		}
		b := NewBuilder(g, info)
		g.SetOutputs(s.Build(b, in)...)
		return m, feed, b.Err
	}
	outs := make([]string, max(s.Outs, 1))
	for i := range outs {
		outs[i] = fmt.Sprintf("y%d", i)
	}
	n := g.NewNode(d.Domain, d.Name, in, outs, s.Attrs...)
	n.Name = "node"
	g.Append(n)
	for _, v := range n.Out {
		g.AddOutput(v)
	}
	return m, feed, nil
}

// SampleOpset is the ai.onnx version in whose form samples are written: the canonical one.
const SampleOpset = 26

// array makes the operand's value.
func (a Arg) array(rng *rand.Rand) *Array {
	out := NewArray(a.Elem, a.Shape, false)
	n := out.Len()
	order := rng.Perm(n)
	for i := range n {
		var x float64
		switch {
		case a.Values != nil:
			x = a.Values[i]
		case a.Apart: // evenly spaced values in random order, each moved by less than a third of the gap
			x = a.Lo + (a.Hi-a.Lo)*(float64(order[i])+0.5+0.3*(rng.Float64()-0.5))/float64(n)
		default:
			x = a.Lo + (a.Hi-a.Lo)*rng.Float64()
		}
		switch {
		case out.IsFloat():
			out.SetFloat(i, x)
		case out.C128 != nil:
			out.C128[i] = complex(x, a.Lo+(a.Hi-a.Lo)*rng.Float64())
		case out.I64 != nil:
			out.I64[i] = int64(x)
		case out.Str != nil:
			out.Str[i] = fmt.Sprint(x)
		}
	}
	return out.Round()
}

// Title names the sample among d's others.
func (s Sample) Title(i int) string {
	if s.Name != "" {
		return s.Name
	}
	return fmt.Sprint(i)
}
