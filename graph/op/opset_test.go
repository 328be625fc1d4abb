package op_test

import (
	"errors"
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
)

func TestLowestOpset(t *testing.T) {
	want := map[string]int64{
		"squeeze": 13, "mean": 18, "slice": 10, "topk": 10, "pad 1": 11, "clip": 11, "clip nothing": 6, "split": 13, "split evenly": 18,
		"cast": 6, "scatter": 11, "grid sample": 20, "add": 6, "add at the end": 7, "softmax of all": 11,
		"softmax of the last axis": 12, "batch norm 9": 9, "batch norm": 7, "group norm": 21, "upsample 9": 13, "relu": 1,
		"concat": 1, "dropout": 12, "resize 10": 13,
	}
	for _, c := range upgradeCases() {
		w, ok := want[c.name]
		if !ok {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			m, _ := c.model(t)
			if err := op.Upgrade(m); err != nil {
				t.Fatal(err)
			}
			got, err := op.LowestOpset(m)
			if err != nil || got != w {
				t.Fatalf("got %d, %v, want %d", got, err, w)
			}
			if err := op.SetOpset(m, got); err != nil {
				t.Fatal(err)
			}
			if m.Opset("") != w {
				t.Errorf("opset is %d, want %d", m.Opset(""), w)
			}
			if w > c.opset {
				m, _ := c.model(t)
				if err := op.Upgrade(m); err != nil {
					t.Fatal(err)
				}
				var oe *op.OpsetError
				if err := op.SetOpset(m, c.opset); !errors.As(err, &oe) || len(oe.Nodes) == 0 {
					t.Errorf("SetOpset to %d gives %v, want an OpsetError", c.opset, err)
				}
			}
		})
	}
}

// poolModel is a pooling node of an input of the given size.
func poolModel(opset int64, size int64, attrs ...*graph.Attr) *graph.Model {
	m := graph.NewModel("test", opset)
	x := m.Graph.AddInput("x", graph.TensorOf(graph.Float, graph.ShapeOf(1, 1, size, size)))
	n := m.Graph.NewNode("", "AveragePool", []*graph.Value{x}, []string{"y"}, attrs...)
	m.Graph.Append(n)
	m.Graph.SetOutputs(n.Out[0])
	return m
}

func TestLowestOpsetOfPooling(t *testing.T) {
	ceil, pad := graph.IntAttr("ceil_mode", 1), graph.IntAttr("count_include_pad", 1)
	kernel, strides := graph.IntsAttr("kernel_shape", 3, 3), graph.IntsAttr("strides", 2, 2)
	for name, c := range map[string]struct {
		m    *graph.Model
		want int64
	}{
		"floor":            {poolModel(11, 8, kernel, strides), 11},
		"ceil":             {poolModel(11, 8, kernel, strides, ceil), 11},
		"ceil with pads":   {poolModel(11, 8, kernel, strides, ceil, graph.IntsAttr("pads", 1, 1, 1, 1)), 11},
		"ceil, odd pads":   {poolModel(11, 8, kernel, graph.IntsAttr("strides", 3, 3), ceil, graph.IntsAttr("pads", 1, 1, 1, 1)), 22},
		"ceil that fits":   {poolModel(11, 9, kernel, strides, ceil, pad), 11},
		"ceil, pads count": {poolModel(11, 8, kernel, strides, ceil, pad), 19},
	} {
		t.Run(name, func(t *testing.T) {
			if err := op.Upgrade(c.m); err != nil {
				t.Fatal(err)
			}
			if got, err := op.LowestOpset(c.m); err != nil || got != c.want {
				t.Errorf("got %d, %v, want %d", got, err, c.want)
			}
		})
	}
}

func TestSetOpsetDropsAndSaysDefaults(t *testing.T) {
	m := graph.NewModel("test", 21)
	x := m.Graph.AddInput("x", graph.TensorOf(graph.Float, graph.ShapeOf(2, 3)))
	a := m.Graph.NewNode("", "Cast", []*graph.Value{x}, []string{"a"}, graph.IntAttr("to", int64(graph.Float)), graph.IntAttr("saturate", 1))
	b := m.Graph.NewNode("", "Softmax", []*graph.Value{a.Out[0]}, []string{"b"})
	b.Out[0].Type = x.Type
	m.Graph.Append(a, b)
	m.Graph.SetOutputs(b.Out[0])
	if err := op.SetOpset(m, 12); err != nil {
		t.Fatal(err)
	}
	if a.HasAttr("saturate") || b.Int("axis", 9) != -1 {
		t.Errorf("saturate is left: %v; axis is %d, want -1", a.HasAttr("saturate"), b.Int("axis", 9))
	}
	a.SetAttr(graph.IntAttr("to", int64(graph.BFloat16)))
	a.Out[0].Type = graph.TensorOf(graph.BFloat16, nil)
	m.SetOpset("", 21)
	err := op.SetOpset(m, 12)
	if err == nil || !strings.Contains(err.Error(), "bfloat16") || m.Opset("") != 21 {
		t.Errorf("got %v, opset %d", err, m.Opset(""))
	}
	if err := op.SetOpset(m, 99); err == nil {
		t.Error("opset 99 is accepted")
	}
}
