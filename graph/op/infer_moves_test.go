package op_test

import (
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
)

// TestShapeArithmetic follows sizes through the chains of small integer tensors that exporters write.
func TestShapeArithmetic(t *testing.T) {
	type B struct {
		*op.Builder
		x *graph.Value // float[N,S,8]
	}
	scalar := func(b B, axis int64) *graph.Value {
		return b.Gather(b.Op("Shape", []*graph.Value{b.x}), b.IntScalar(axis), 0)
	}
	ops := func(v ...*graph.Value) []*graph.Value { return v }
	tests := []struct {
		name  string
		build func(b B) *graph.Value
		want  string // the shape of the value
	}{
		{"heads split by gathered sizes", func(b B) *graph.Value {
			shape := b.Concat(0, b.Unsqueeze(scalar(b, 0), 0), b.Unsqueeze(scalar(b, 1), 0), b.Ints(2, -1))
			return b.Op("Reshape", ops(b.x, shape))
		}, "[N,S,2,4]"},
		{"left over from symbolic sizes", func(b B) *graph.Value {
			return b.Op("Reshape", ops(b.x, b.Concat(0, b.Unsqueeze(b.Op("Size", ops(b.x)), 0), b.Ints(-1))))
		}, "[8*N*S,1]"},
		{"left over divides exactly", func(b B) *graph.Value {
			return b.ReshapeTo(b.Transpose(b.x, 1, 0, 2), 0, -1)
		}, "[S,8*N]"},
		{"two axes merged", func(b B) *graph.Value {
			n := b.Mul(scalar(b, 0), scalar(b, 1))
			return b.Op("Reshape", ops(b.x, b.Concat(0, b.Unsqueeze(n, 0), b.Ints(-1))))
		}, "[N*S,8]"},
		{"half along an axis", func(b B) *graph.Value {
			half := b.Unsqueeze(b.Div(scalar(b, 1), b.IntScalar(2)), 0)
			return b.Slice(b.x, b.Ints(0), half, b.Ints(1), nil)
		}, "[N,floor(S/2),8]"},
		{"all but the first", func(b B) *graph.Value {
			return b.Slice(b.x, b.Ints(1), b.Ints(1<<62), b.Ints(-1), nil)
		}, "[N,S,7]"},
		{"prefix of a table", func(b B) *graph.Value {
			table := b.Const(graph.Floats([]int64{4, 2}, 0, 1, 2, 3, 4, 5, 6, 7))
			return b.Slice(table, b.Ints(0), b.Unsqueeze(scalar(b, 1), 0), b.Ints(0), nil)
		}, "[min(S, 4),2]"},
		{"shape parted and joined", func(b B) *graph.Value {
			parts := b.Node("Split", ops(b.Op("Shape", ops(b.x)), b.Ints(1, 2)), 2).Out
			return b.Op("Reshape", ops(b.x, b.Concat(0, parts[1], parts[0])))
		}, "[S,8,N]"},
		{"an element of the shape replaced", func(b B) *graph.Value {
			shape := b.Op("ScatterElements", ops(b.Op("Shape", ops(b.x)), b.Ints(1), b.Ints(1)))
			return b.Full(shape, graph.Float, 0)
		}, "[N,1,8]"},
		{"shape by tuples", func(b B) *graph.Value {
			index := b.Unsqueeze(b.Ints(2, 0), 1)
			return b.Full(b.Op("GatherND", ops(b.Op("Shape", ops(b.x)), index)), graph.Float, 0)
		}, "[8,N]"},
		{"pads in the order of another framework", func(b B) *graph.Value {
			// Pads of the last axis first, two by two, reversed by a reshape, a reversing slice and a transpose.
			pads := b.Concat(0, b.Ints(1, 2), b.Unsqueeze(scalar(b, 0), 0), b.Ints(3, 0, 0))
			rows := b.Slice(b.ReshapeTo(pads, -1, 2), b.Ints(-1), b.Ints(-1<<62), b.Ints(0), b.Ints(-1))
			return b.Op("Pad", ops(b.x, b.ReshapeTo(b.Transpose(rows, 1, 0), -1)))
		}, "[N,N + S + 3,11]"},
		{"a size repeated", func(b B) *graph.Value {
			n := b.Unsqueeze(scalar(b, 1), 0)
			return b.Concat(1, b.Full(b.Op("Tile", ops(n, b.Ints(2))), graph.Float, 0), b.Full(b.Op("Expand", ops(n, b.Ints(2))), graph.Float, 0))
		}, "[S,2*S]"},
		{"axes of size one squeezed", func(b B) *graph.Value {
			return b.Squeeze(b.Op("Gather", ops(b.x, b.Ints(-1)), graph.IntAttr("axis", 1)), 1)
		}, "[N,8]"},
		{"positions in a tensor of ones", func(b B) *graph.Value {
			ones := b.Full(b.Unsqueeze(scalar(b, 1), 0), graph.Int64, 1)
			return b.Squeeze(b.Transpose(b.Op("NonZero", ops(ones)), 1, 0), 1)
		}, "[S]"},
		{"uneven parts", func(b B) *graph.Value {
			return b.Node("Split", ops(b.x), 2, graph.IntAttr("axis", 1), graph.IntAttr("num_outputs", 2)).Out[1]
		}, "[N,S - floor((S + 1)/2),8]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := graph.NewModel("m", op.SampleOpset)
			x := m.Graph.AddInput("x", graph.TensorOf(graph.Float, graph.Shape{graph.Sym("N"), graph.Sym("S"), graph.Known(8)}))
			info, err := op.Infer(m)
			if err != nil {
				t.Fatal(err)
			}
			b := op.NewBuilder(m.Graph, info)
			y := tt.build(B{b, x})
			if b.Err != nil {
				t.Fatal(b.Err)
			}
			if got := y.Type.Shape.String(); got != tt.want {
				t.Errorf("shape %s, want %s", got, tt.want)
			}
		})
	}
}

// TestImpossibleNodes lists nodes that inference must refuse, since they fail whatever is fed.
func TestImpossibleNodes(t *testing.T) {
	x := op.F(2, 3)
	tests := []struct {
		op    string
		in    []op.Arg
		attrs []*graph.Attr
		outs  int
	}{
		{"Reshape", []op.Arg{x, op.I(4, -1)}, nil, 1},
		{"Reshape", []op.Arg{x, op.I(-1, -1)}, nil, 1},
		{"Reshape", []op.Arg{x, op.I(6, 1, 0)}, nil, 1},
		{"Reshape", []op.Arg{x, op.I(7)}, nil, 1},
		{"Squeeze", []op.Arg{x, op.I(0)}, nil, 1},
		{"Squeeze", []op.Arg{x, op.I(2)}, nil, 1},
		{"Unsqueeze", []op.Arg{x, op.I(0, 0)}, nil, 1},
		{"Flatten", []op.Arg{x}, []*graph.Attr{graph.IntAttr("axis", 3)}, 1},
		{"Expand", []op.Arg{x, op.I(2, 2)}, nil, 1},
		{"Tile", []op.Arg{x, op.I(2)}, nil, 1},
		{"Transpose", []op.Arg{x}, []*graph.Attr{graph.IntsAttr("perm", 0, 0)}, 1},
		{"Concat", []op.Arg{x, op.F(3, 3)}, []*graph.Attr{graph.IntAttr("axis", 1)}, 1},
		{"Split", []op.Arg{x, op.I(1, 3)}, []*graph.Attr{graph.IntAttr("axis", 1)}, 2},
		{"Slice", []op.Arg{x, op.I(0), op.I(1), op.I(2)}, nil, 1},
		{"Slice", []op.Arg{x, op.I(0), op.I(1), op.I(0), op.I(0)}, nil, 1},
		{"Pad", []op.Arg{x, op.I(1, 1)}, nil, 1},
		{"Pad", []op.Arg{x, op.I(-3, 0, 0, 0)}, nil, 1},
		{"DepthToSpace", []op.Arg{op.F(1, 3, 2, 2)}, []*graph.Attr{graph.IntAttr("blocksize", 2)}, 1},
		{"GatherND", []op.Arg{x, op.TV(graph.Int64, []int{1, 3}, 0, 0, 0)}, nil, 1},
		{"TopK", []op.Arg{x, op.I(4)}, nil, 2},
	}
	for _, tt := range tests {
		t.Run(tt.op, func(t *testing.T) {
			d := op.Lookup(op.Key{Name: tt.op})
			m, feed, err := op.SampleModel(d, op.Sample{In: tt.in, Attrs: tt.attrs, Outs: tt.outs}, 1, "")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := op.Infer(m); err == nil {
				t.Errorf("%v: no error", tt.in[1:])
			}
			// Evaluation refuses it too, without a panic.
			n := m.Graph.Nodes[0]
			c := &op.EvalCtx{Node: n, Out: make([]*op.Array, len(n.Out))}
			for i, v := range n.In {
				if v.Init != nil {
					a, err := op.FromTensor(v.Init, false)
					if err != nil {
						t.Fatal(err)
					}
					c.In = append(c.In, a)
				} else {
					c.In = append(c.In, feed[i])
				}
			}
			if err := d.Eval(c); err == nil {
				t.Errorf("%v: evaluated to %v", tt.in[1:], c.Out[0])
			}
		})
	}
}
