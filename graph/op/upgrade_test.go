package op_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
	"gradtool/graph/op/schema"
)

// upgradeCase is one node in an old form with what it becomes.
type upgradeCase struct {
	name  string
	opset int64
	op    string
	in    []op.Arg
	attrs []*graph.Attr
	outs  int       // 0 means 1
	ops   string    // operators after the upgrade, without constants
	want  []float64 // result 0, if the test evaluates
}

func seq(n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = float64(i)
	}
	return v
}

func upgradeCases() []upgradeCase {
	x6 := op.FV([]int{2, 3}, 0, 1, 2, 3, 4, 5)
	x4 := op.FV([]int{1, 1, 2, 2}, 1, 2, 3, 4)
	ints := graph.IntsAttr
	return []upgradeCase{
		{"squeeze", 11, "Squeeze", []op.Arg{op.FV([]int{1, 2}, 7, 8)}, []*graph.Attr{ints("axes", 0)}, 0, "Squeeze", []float64{7, 8}},
		{"squeeze all", 11, "Squeeze", []op.Arg{op.FV([]int{1, 2}, 7, 8)}, nil, 0, "Squeeze", []float64{7, 8}},
		{"unsqueeze", 9, "Unsqueeze", []op.Arg{x6}, []*graph.Attr{ints("axes", 0, 3)}, 0, "Unsqueeze", seq(6)},
		{"sum", 12, "ReduceSum", []op.Arg{x6}, []*graph.Attr{ints("axes", 1)}, 0, "ReduceSum", []float64{3, 12}},
		{"sum of no axes", 12, "ReduceSum", []op.Arg{x6}, []*graph.Attr{ints("axes"), graph.IntAttr("keepdims", 0)}, 0, "ReduceSum", []float64{15}},
		{"mean", 13, "ReduceMean", []op.Arg{x6}, []*graph.Attr{ints("axes", 0)}, 0, "ReduceMean", []float64{1.5, 2.5, 3.5}},
		{"slice", 9, "Slice", []op.Arg{x6}, []*graph.Attr{ints("starts", 1), ints("ends", 3), ints("axes", 1)}, 0, "Slice", []float64{1, 2, 4, 5}},
		{"slice of first axes", 1, "Slice", []op.Arg{x6}, []*graph.Attr{ints("starts", 1), ints("ends", 2)}, 0, "Slice", []float64{3, 4, 5}},
		{"topk", 1, "TopK", []op.Arg{x6}, []*graph.Attr{graph.IntAttr("k", 1)}, 2, "TopK", []float64{2, 5}},
		{"pad 1", 1, "Pad", []op.Arg{op.FV([]int{2}, 1, 2)}, []*graph.Attr{ints("paddings", 1, 0), graph.FloatAttr("value", 9)}, 0, "Pad", []float64{9, 1, 2}},
		{"pad 2", 2, "Pad", []op.Arg{op.FV([]int{2}, 1, 2)}, []*graph.Attr{ints("pads", 0, 1), graph.FloatAttr("value", 0)}, 0, "Pad", []float64{1, 2, 0}},
		{"clip", 6, "Clip", []op.Arg{x6}, []*graph.Attr{graph.FloatAttr("min", 1), graph.FloatAttr("max", 4)}, 0, "Clip", []float64{1, 1, 2, 3, 4, 4}},
		{"clip one side", 1, "Clip", []op.Arg{x6}, []*graph.Attr{graph.FloatAttr("max", 4)}, 0, "Clip", []float64{0, 1, 2, 3, 4, 4}},
		{"clip nothing", 6, "Clip", []op.Arg{x6}, []*graph.Attr{graph.FloatAttr("max", math.MaxFloat32)}, 0, "Clip", seq(6)},
		{"split", 2, "Split", []op.Arg{x6}, []*graph.Attr{ints("split", 1, 2), graph.IntAttr("axis", 1)}, 2, "Split", []float64{0, 3}},
		{"split evenly", 13, "Split", []op.Arg{x6}, nil, 2, "Split", []float64{0, 1, 2}},
		{"split 1", 1, "Split", []op.Arg{x6, op.FV([]int{2}, 1, 1)}, nil, 2, "Cast Split", []float64{0, 1, 2}},
		{"tile", 1, "Tile", []op.Arg{op.FV([]int{1, 2}, 1, 2), op.FV([]int{}, 2), op.FV([]int{}, 1)}, nil, 0,
			"Cast Reshape Concat Shape Size Cast Reshape OneHot Reshape Tile", []float64{1, 2, 1, 2}},
		{"reshape", 1, "Reshape", []op.Arg{x6}, []*graph.Attr{ints("shape", 3, 2), ints("consumed_inputs", 0)}, 0, "Reshape", seq(6)},
		{"dft", 17, "DFT", []op.Arg{op.FV([]int{1, 2, 1}, 1, 2)}, nil, 0, "DFT", nil},
		{"concat", 1, "Concat", []op.Arg{x6, x6}, nil, 0, "Concat", []float64{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}},
		{"cast", 1, "Cast", []op.Arg{x6}, []*graph.Attr{graph.StringAttr("to", "INT32")}, 0, "Cast", seq(6)},
		{"selu", 1, "Selu", []op.Arg{op.FV([]int{1}, 1)}, nil, 0, "Selu", []float64{float64(float32(1.0507))}},
		{"relu", 1, "Relu", []op.Arg{op.FV([]int{2}, -1, 1)}, []*graph.Attr{ints("consumed_inputs", 1)}, 0, "Relu", []float64{0, 1}},
		{"lppool", 1, "LpPool", []op.Arg{x4}, []*graph.Attr{ints("kernel_shape", 2, 2), graph.FloatAttr("p", 1)}, 0, "LpPool", []float64{10}},
		{"scatter", 9, "Scatter", []op.Arg{x6, op.TV(graph.Int64, []int{1, 1}, 2), op.FV([]int{1, 1}, 9)}, []*graph.Attr{graph.IntAttr("axis", 1)}, 0,
			"ScatterElements", []float64{0, 1, 9, 3, 4, 5}},
		{"scatter deprecated", 11, "Scatter", []op.Arg{x6, op.TV(graph.Int64, []int{1, 1}, 1), op.FV([]int{1, 1}, 9)}, nil, 0,
			"ScatterElements", []float64{0, 1, 2, 9, 4, 5}},
		{"grid sample", 16, "GridSample", []op.Arg{x4, op.FV([]int{1, 1, 1, 2}, 0, 0)}, []*graph.Attr{graph.StringAttr("mode", "bilinear")}, 0, "GridSample", []float64{2.5}},
		{"roi align", 10, "RoiAlign", []op.Arg{x4, op.FV([]int{1, 4}, 0, 0, 1, 1), op.TV(graph.Int64, []int{1}, 0)}, nil, 0, "RoiAlign", nil},
		{"gru", 1, "GRU", []op.Arg{op.F(1, 1, 2), op.F(1, 3, 2), op.F(1, 3, 1)}, []*graph.Attr{graph.IntAttr("hidden_size", 1), graph.IntAttr("output_sequence", 1), graph.StringAttr("direction", "foward")}, 2, "GRU", nil},

		{"add", 6, "Add", []op.Arg{x6, x6}, nil, 0, "Add", []float64{0, 2, 4, 6, 8, 10}},
		{"add at the end", 6, "Add", []op.Arg{x6, op.FV([]int{3}, 10, 20, 30)}, []*graph.Attr{graph.IntAttr("broadcast", 1)}, 0, "Add", []float64{10, 21, 32, 13, 24, 35}},
		{"add at an axis", 6, "Add", []op.Arg{x6, op.FV([]int{2}, 10, 20)}, []*graph.Attr{graph.IntAttr("broadcast", 1), graph.IntAttr("axis", 0)}, 0, "Unsqueeze Add", []float64{10, 11, 12, 23, 24, 25}},
		{"gemm", 6, "Gemm", []op.Arg{op.FV([]int{1, 1}, 2), op.FV([]int{1, 2}, 3, 4), op.FV([]int{2}, 1, 1)}, []*graph.Attr{graph.IntAttr("broadcast", 1)}, 0, "Gemm", []float64{7, 9}},
		{"prelu", 6, "PRelu", []op.Arg{op.FV([]int{1, 2, 2}, -1, 1, -2, 2), op.FV([]int{2}, 3, 5)}, nil, 0, "Unsqueeze PRelu", []float64{-3, 1, -10, 2}},

		{"softmax of all", 11, "Softmax", []op.Arg{op.FV([]int{1, 2, 2}, 0, 0, 0, 0)}, nil, 0, "Flatten Softmax Reshape", []float64{.25, .25, .25, .25}},
		{"softmax of the last axis", 12, "Softmax", []op.Arg{op.FV([]int{2, 2}, 0, 0, 1, 1)}, nil, 0, "Softmax", []float64{.5, .5, .5, .5}},
		{"softmax of channels", 12, "Softmax", []op.Arg{op.FV([]int{1, 2, 1, 1}, 3, 3)}, nil, 0, "Softmax", []float64{.5, .5}},
		{"hardmax", 1, "Hardmax", []op.Arg{op.FV([]int{2, 2}, 0, 3, 2, 1)}, []*graph.Attr{graph.IntAttr("axis", 0)}, 0, "Flatten Hardmax Reshape", []float64{0, 1, 0, 0}},

		{"batch norm", 6, "BatchNormalization", batchNorm(), []*graph.Attr{graph.IntAttr("is_test", 1), graph.FloatAttr("epsilon", 0)}, 0, "BatchNormalization", []float64{.5, 1, 1.5, 2}},
		{"batch norm 9", 9, "BatchNormalization", batchNorm(), []*graph.Attr{graph.FloatAttr("epsilon", 0)}, 0, "BatchNormalization", []float64{.5, 1, 1.5, 2}},
		{"batch norm per element", 7, "BatchNormalization", []op.Arg{op.FV([]int{1, 2, 1}, 3, 5), op.FV([]int{2, 1}, 1, 2), op.FV([]int{2, 1}, 0, 1), op.FV([]int{2, 1}, 1, 1), op.FV([]int{2, 1}, 4, 1)},
			[]*graph.Attr{graph.IntAttr("spatial", 0), graph.FloatAttr("epsilon", 0)}, 0, "Add Sqrt Div Sub Mul Add", []float64{1, 9}},
		{"batch norm training", 9, "BatchNormalization", batchNorm(), []*graph.Attr{graph.FloatAttr("epsilon", 0)}, 5, "ReduceMean Squeeze Sub Mul ReduceMean BatchNormalization", nil},
		{"group norm", 18, "GroupNormalization", []op.Arg{op.FV([]int{1, 4, 1}, 0, 2, 0, 2), op.FV([]int{2}, 1, 10), op.FV([]int{2}, 0, 5)},
			[]*graph.Attr{graph.IntAttr("num_groups", 2), graph.FloatAttr("epsilon", 0)}, 0, "Div Concat Unsqueeze Expand Reshape Unsqueeze Expand Reshape GroupNormalization", []float64{-1, 1, -5, 15}},
		{"dropout", 6, "Dropout", []op.Arg{x6}, []*graph.Attr{graph.IntAttr("is_test", 1), graph.FloatAttr("ratio", .3)}, 0, "Dropout", seq(6)},
		{"dropout with mask", 7, "Dropout", []op.Arg{x6}, nil, 2, "Dropout CastLike", seq(6)},
		{"dropout training", 1, "Dropout", []op.Arg{x6}, nil, 0, "Dropout", nil},

		{"upsample 1", 1, "Upsample", []op.Arg{x4}, []*graph.Attr{graph.FloatAttr("height_scale", 1), graph.FloatAttr("width_scale", 2)}, 0, "Resize", []float64{1, 1, 2, 2, 3, 3, 4, 4}},
		{"upsample 7", 7, "Upsample", []op.Arg{x4}, []*graph.Attr{graph.FloatsAttr("scales", 1, 1, 1, 2), graph.StringAttr("mode", "linear")}, 0, "Resize", []float64{1, 1.5, 2, 2, 3, 3.5, 4, 4}},
		{"upsample 9", 9, "Upsample", []op.Arg{x4, op.FV([]int{4}, 1, 1, 2, 1)}, nil, 0, "Resize", []float64{1, 2, 1, 2, 3, 4, 3, 4}},
		{"upsample 11", 11, "Upsample", []op.Arg{x4, op.FV([]int{4}, 1, 1, 2, 1)}, nil, 0, "Resize", []float64{1, 2, 1, 2, 3, 4, 3, 4}},
		{"resize 10", 10, "Resize", []op.Arg{x4, op.FV([]int{4}, 1, 1, 1, 2)}, nil, 0, "Resize", []float64{1, 1, 2, 2, 3, 3, 4, 4}},
		{"resize 10 down", 10, "Resize", []op.Arg{op.FV([]int{1, 1, 1, 4}, 1, 2, 3, 4), op.FV([]int{4}, 1, 1, 1, .75).Constant()}, nil, 0, "Resize", []float64{1, 3, 4}},
		{"resize 10 both ways", 10, "Resize", []op.Arg{op.FV([]int{1, 1, 1, 4}, 1, 2, 3, 4), op.FV([]int{4}, 1, 1, 2, .75).Constant()}, nil, 0, "Resize Resize", []float64{1, 3, 4, 1, 3, 4}},
		{"layer norm of a runtime", 11, "LayerNormalization", []op.Arg{x6, op.FV([]int{3}, 1, 1, 1)}, []*graph.Attr{graph.FloatAttr("epsion", 1)}, 0, "LayerNormalization", nil},
		{"resize 11 half pixel", 11, "Resize", []op.Arg{x4, {}, op.FV([]int{4}, 1, 1, 1, 2)},
			[]*graph.Attr{graph.StringAttr("coordinate_transformation_mode", "tf_half_pixel_for_nn"), graph.StringAttr("nearest_mode", "floor")}, 0, "Resize", []float64{1, 1, 2, 2, 3, 3, 4, 4}},
	}
}

func batchNorm() []op.Arg {
	return []op.Arg{op.FV([]int{1, 1, 4}, 1, 2, 3, 4), op.FV([]int{1}, 1), op.FV([]int{1}, 0), op.FV([]int{1}, 0), op.FV([]int{1}, 4)}
}

// model builds a model of one node with operands as inputs, constants as initializers. Every result is an output.
func (c upgradeCase) model(t *testing.T) (*graph.Model, []*op.Array) {
	t.Helper()
	m := graph.NewModel("test", c.opset)
	g := m.Graph
	var feeds []*op.Array
	var in []*graph.Value
	for i, a := range c.in {
		if a.Shape == nil && a.Values == nil && a.Elem == graph.Undefined {
			in = append(in, nil)
			continue
		}
		arr := op.NewArray(a.Elem, a.Shape, false)
		for j := range arr.Len() {
			x := float64(j%5) - 2
			if a.Values != nil {
				x = a.Values[j]
			}
			if arr.I64 != nil {
				arr.I64[j] = int64(x)
			} else {
				arr.SetFloat(j, x)
			}
		}
		name := fmt.Sprintf("in%d", i)
		if a.Const {
			in = append(in, g.AddInit(name, arr.Tensor()))
			continue
		}
		in = append(in, g.AddInput(name, arr.Type()))
		feeds = append(feeds, arr)
	}
	var outs []string
	for i := range max(c.outs, 1) {
		outs = append(outs, fmt.Sprintf("out%d", i))
	}
	n := g.NewNode("", c.op, in, outs, c.attrs...)
	n.Name = "node"
	g.Append(n)
	for _, v := range n.Out {
		g.AddOutput(v)
	}
	return m, feeds
}

func TestUpgrade(t *testing.T) {
	for _, c := range upgradeCases() {
		t.Run(c.name, func(t *testing.T) {
			m, feeds := c.model(t)
			outs := append([]*graph.Value{}, m.Graph.Outputs...)
			if err := op.Upgrade(m); err != nil {
				t.Fatal(err)
			}
			var ops []string
			for _, n := range m.Graph.Nodes {
				if !n.Is("Constant") {
					ops = append(ops, n.Op)
				}
			}
			if got := strings.Join(ops, " "); got != c.ops {
				t.Errorf("operators are\n\t%s, want\n\t%s", got, c.ops)
			}
			if m.Opset("") != max(c.opset, 21) || m.Origin != c.opset {
				t.Errorf("opset %d, origin %d", m.Opset(""), m.Origin)
			}
			for i, v := range m.Graph.Outputs {
				if v != outs[i] || v.Name != fmt.Sprintf("out%d", i) || v.Def == nil || v.Def.Result(v.Index) != v || v.Def.Graph != m.Graph {
					t.Errorf("output %d is %q of %v, not the result it was", i, v.Name, v.Def)
				}
			}
			checkNewest(t, m)
			before := len(m.Graph.Nodes)
			if err := op.Upgrade(m); err != nil || len(m.Graph.Nodes) != before {
				t.Errorf("a second upgrade gives %d nodes, want %d; error %v", len(m.Graph.Nodes), before, err)
			}
			if c.want == nil {
				return
			}
			mach, err := interp.New(m, interp.Options{})
			if err != nil {
				t.Skipf("not evaluated: %v", err)
			}
			got, err := mach.Run(feeds)
			if err != nil {
				t.Fatal(err)
			}
			if got[0].Len() != len(c.want) {
				t.Fatalf("got %v, want %v", got[0], c.want)
			}
			for i, w := range c.want {
				if math.Abs(got[0].Float(i)-w) > 1e-5 {
					t.Fatalf("got %v, want %v", got[0], c.want)
				}
			}
		})
	}
}

// checkNewest fails unless the newest schema of its operator accepts every node, and the same at the model's opset.
func checkNewest(t *testing.T, m *graph.Model) {
	t.Helper()
	for n := range m.Graph.AllNodes() {
		vs := schema.Versions(n.Domain, n.Op)
		if len(vs) == 0 {
			t.Errorf("node %s: unknown operator", n.Label())
			continue
		}
		for _, problem := range vs[len(vs)-1].Accepts(op.SchemaNode(n)) {
			t.Errorf("node %s: %s", n.Label(), problem)
		}
	}
}

func TestUpgradeErrors(t *testing.T) {
	m := graph.NewModel("test", 11)
	g := m.Graph
	x := g.AddInput("x", graph.TensorOf(graph.Float, graph.ShapeOf(1, 1, 2, 2)))
	s := g.AddInput("s", graph.TensorOf(graph.Float, graph.ShapeOf(4)))
	for i, mode := range []string{"linear", "cubic"} {
		n := g.NewNode("", "Resize", []*graph.Value{x, nil, s}, []string{fmt.Sprint("y", i)},
			graph.StringAttr("mode", mode), graph.StringAttr("coordinate_transformation_mode", "tf_half_pixel_for_nn"))
		g.Append(n)
		g.AddOutput(n.Out[0])
	}
	err := op.Upgrade(m)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`"y0" (Resize)`, `"y1" (Resize)`, "tf_half_pixel_for_nn", "opset 13"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
}

// TestUpgradeUnknownRank upgrades nodes whose operands have no known rank: the rewriting is done at run time.
func TestUpgradeUnknownRank(t *testing.T) {
	for _, c := range upgradeCases() {
		if c.want == nil || c.name == "batch norm training" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			m, feeds := c.model(t)
			for _, v := range m.Graph.Inputs {
				v.Type.Shape = nil
			}
			if err := op.Upgrade(m); err != nil {
				t.Fatal(err)
			}
			checkNewest(t, m)
			mach, err := interp.New(m, interp.Options{})
			if err != nil {
				t.Skipf("not evaluated: %v", err)
			}
			got, err := mach.Run(feeds)
			if err != nil {
				t.Fatal(err)
			}
			for i, w := range c.want {
				if math.Abs(got[0].Float(i)-w) > 1e-5 {
					t.Fatalf("got %v, want %v", got[0], c.want)
				}
			}
		})
	}
}
