package op

import (
	"fmt"

	"gradtool/graph"
)

// scanAdapters replace Scan of opset 8.
func scanAdapters(add addAdapter) { add(9, upgradeScan, "Scan") }

// upgradeScan writes Scan of opset 8, whose operands carry a batch axis in front, as a Scan over the batch around the
// Scan over the sequence: the outer one has no state and slices and stacks along axis 0. Sequences of different
// lengths (operand 0) have no counterpart.
func upgradeScan(u *upgrader, n *graph.Node) error {
	if n.Operand(0) != nil {
		return fmt.Errorf("sequence lengths per batch entry (operand 0)")
	}
	if err := refuse(n, "num_scan_inputs", "directions"); err != nil {
		return err
	}
	body, scans := n.Attr("body"), int(n.Int("num_scan_inputs", 0))
	in := append([]*graph.Value{}, n.In[min(1, len(n.In)):]...)
	states := len(in) - scans
	if body == nil || body.Type != graph.AttrGraph || scans < 1 || states < 0 || states > len(n.Out) {
		return fmt.Errorf("attributes body and num_scan_inputs do not fit %d operands and %d results", len(n.In), len(n.Out))
	}
	m := n.Graph.Model
	outer := m.NewGraph(m.Fresh(n.Name + "_batch"))
	inner := u.b.For(outer)
	args := make([]*graph.Value, len(in))
	for i, v := range in {
		if v == nil {
			return fmt.Errorf("operand %d is missing", i+1)
		}
		t := v.Type
		if t.IsTensor() && len(t.Shape) > 0 {
			t = graph.TensorOf(t.Elem, t.Shape[1:])
		} else if t.IsTensor() {
			t.Shape = nil
		}
		args[i] = outer.AddInput(m.Fresh(v.Name+"_item"), t)
	}
	attrs := []*graph.Attr{body, graph.IntAttr("num_scan_inputs", int64(scans))}
	if d := n.Ints("directions"); d != nil {
		attrs = append(attrs, graph.IntsAttr("scan_input_directions", d...))
	}
	step := inner.Node("Scan", args, len(n.Out), attrs...)
	outer.SetOutputs(step.Out...)
	n.DeleteAttr("body") // it belongs to the inner node now
	become(n, "Scan", in, graph.IntAttr("num_scan_inputs", int64(len(in))), graph.GraphAttr("body", outer))
	// Omitted results of n need no counterpart but are positional, so they stay.
	return nil
}
