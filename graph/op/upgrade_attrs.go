package op

import (
	"fmt"
	"math"
	"strings"

	"gradtool/graph"
)

// axesAdapters move the attribute axes to operand 1.
func axesAdapters(add addAdapter) {
	axes := func(u *upgrader, n *graph.Node) error {
		if a := n.Attr("axes"); a != nil && a.Ref == "" && len(a.Ints) == 0 && n.Op != "Unsqueeze" {
			n.DeleteAttr("axes") // no axes means all of them; an empty operand would mean it too, but costs a constant
			return nil
		}
		return u.attrIn(n, "axes", 1)
	}
	add(13, axes, "Squeeze", "Unsqueeze", "ReduceSum")
	add(18, axes, "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
		"ReduceProd", "ReduceSumSquare")
}

// operandAdapters move other attributes to operands, or rearrange operands.
func operandAdapters(add addAdapter) {
	add(5, func(u *upgrader, n *graph.Node) error { return u.attrIn(n, "shape", 1) }, "Reshape")
	add(10, func(u *upgrader, n *graph.Node) error {
		for i, name := range []string{"starts", "ends", "axes"} {
			if err := u.attrIn(n, name, i+1); err != nil {
				return err
			}
		}
		return nil
	}, "Slice")
	add(10, upgradeTopK, "TopK")
	add(2, func(u *upgrader, n *graph.Node) error { renameAttr(n, "paddings", "pads"); return nil }, "Pad")
	add(11, upgradePad, "Pad")
	add(11, upgradeClip, "Clip")
	add(2, upgradeSplit1, "Split")
	add(13, func(u *upgrader, n *graph.Node) error { return u.attrIn(n, "split", 1) }, "Split")
	add(18, func(u *upgrader, n *graph.Node) error {
		if n.Operand(1) == nil {
			n.SetAttr(graph.IntAttr("num_outputs", int64(len(n.Out))))
		}
		return nil
	}, "Split")
	add(6, upgradeTile, "Tile")
	add(20, upgradeDFT, "DFT")
}

func renameAttr(n *graph.Node, from, to string) {
	for i, a := range n.Attrs {
		if a.Name == from {
			b := *a
			b.Name, b.Src = to, nil
			n.Attrs[i] = &b
		}
	}
}

// upgradeTopK moves k, an int, to an operand, a vector of one element.
func upgradeTopK(u *upgrader, n *graph.Node) error {
	a := n.Attr("k")
	switch {
	case a == nil:
		return fmt.Errorf("attribute k is missing")
	case a.Ref == "":
		n.SetIn(1, u.b.Ints(a.I))
	default:
		k, err := u.attrConst(a)
		if err != nil {
			return err
		}
		n.SetIn(1, u.b.ReshapeTo(k, 1))
	}
	n.DeleteAttr("k")
	return nil
}

func upgradePad(u *upgrader, n *graph.Node) error {
	x, err := need(n, 0)
	if err != nil {
		return err
	}
	if err := u.attrIn(n, "pads", 1); err != nil {
		return err
	}
	if a := n.Attr("value"); a != nil && a.Ref == "" && a.F == 0 {
		n.DeleteAttr("value") // as without the operand
	}
	return u.attrLike(n, "value", 2, x)
}

// upgradeClip moves the bounds to operands. The widest bounds, which version 6 has as defaults, are left out.
func upgradeClip(u *upgrader, n *graph.Node) error {
	x, err := need(n, 0)
	if err != nil {
		return err
	}
	for i, name := range []string{"min", "max"} {
		if a := n.Attr(name); a != nil && a.Ref == "" && (a.F == math.MaxFloat32 && i == 1 || a.F == -math.MaxFloat32 && i == 0) {
			n.DeleteAttr(name)
		}
		if err := u.attrLike(n, name, i+1, x); err != nil {
			return err
		}
	}
	return nil
}

// upgradeSplit1 undoes version 1's operand split, which is of the type of the data, and its missing default of axis.
func upgradeSplit1(u *upgrader, n *graph.Node) error {
	if !n.HasAttr("axis") {
		n.SetAttr(graph.IntAttr("axis", 0))
	}
	if s := n.Operand(1); s != nil {
		n.DeleteAttr("split")
		n.SetIn(1, u.b.Op("Cast", vals(s), graph.IntAttr("to", int64(graph.Int64))))
	}
	return nil
}

// upgradeTile turns version 1's scalars tiles and axis into the vector of repeats of every axis.
func upgradeTile(u *upgrader, n *graph.Node) error {
	if len(n.In) < 3 {
		return nil // already of the newer form, as some exporters wrote it
	}
	x, tiles, axis := n.In[0], n.In[1], n.In[2]
	if x == nil || tiles == nil || axis == nil {
		return fmt.Errorf("an operand is missing")
	}
	b := u.b
	// repeats[i] = tiles where i = axis, else 1: a one-hot vector with these two values.
	toVector := func(v *graph.Value) *graph.Value {
		return b.ReshapeTo(b.Op("Cast", vals(v), graph.IntAttr("to", int64(graph.Int64))), 1)
	}
	values := b.Concat(0, b.Ints(1), toVector(tiles))
	depth := b.Op("Size", vals(b.Op("Shape", vals(x))))
	hot := b.Op("OneHot", vals(toVector(axis), depth, values))
	n.SetIn(1, b.ReshapeTo(hot, -1))
	n.TrimIn(2)
	return nil
}

// upgradeDFT moves axis, whose default was 1 and is the last but one now, to an operand.
func upgradeDFT(u *upgrader, n *graph.Node) error {
	if !n.HasAttr("axis") {
		n.SetIn(2, u.b.IntScalar(1))
		return nil
	}
	return u.attrIn(n, "axis", 2)
}

// attributeAdapters change attributes only.
func attributeAdapters(add addAdapter) {
	add(4, func(u *upgrader, n *graph.Node) error {
		if !n.HasAttr("axis") {
			n.SetAttr(graph.IntAttr("axis", 1))
		}
		return nil
	}, "Concat")
	add(6, upgradeCast, "Cast")
	add(6, func(u *upgrader, n *graph.Node) error {
		// Version 1 has shorter constants.
		if !n.HasAttr("alpha") {
			n.SetAttr(graph.FloatAttr("alpha", 1.6732))
		}
		if !n.HasAttr("gamma") {
			n.SetAttr(graph.FloatAttr("gamma", 1.0507))
		}
		return nil
	}, "Selu")
	add(2, upgradeNorm, "LpPool", "GlobalLpPool")
	sequence := func(u *upgrader, n *graph.Node) error {
		n.DeleteAttr("output_sequence") // omitted results say it
		return nil
	}
	add(7, sequence, "GRU", "LSTM", "RNN")
	add(3, func(u *upgrader, n *graph.Node) error {
		if n.Str("direction", "") == "foward" { // so spelt in version 1
			n.SetAttr(graph.StringAttr("direction", "forward"))
		}
		return nil
	}, "GRU")
	add(16, func(u *upgrader, n *graph.Node) error {
		if !n.HasAttr("coordinate_transformation_mode") {
			n.SetAttr(graph.StringAttr("coordinate_transformation_mode", "output_half_pixel"))
		}
		return nil
	}, "RoiAlign")
	add(20, func(u *upgrader, n *graph.Node) error {
		if err := refuse(n, "mode"); err != nil {
			return err
		}
		switch n.Str("mode", "") {
		case "bilinear":
			n.SetAttr(graph.StringAttr("mode", "linear"))
		case "bicubic":
			n.SetAttr(graph.StringAttr("mode", "cubic"))
		}
		return nil
	}, "GridSample")
	add(11, func(u *upgrader, n *graph.Node) error { n.Op = "ScatterElements"; return nil }, "Scatter")
	// ConvTranspose: version 11 exchanged the side on which the extra element of an odd total padding goes. Runtimes
	// and the standard's own converter never told the versions apart, so neither does this table.
}

// upgradeCast turns version 1's name of the element type into its number.
func upgradeCast(u *upgrader, n *graph.Node) error {
	if err := refuse(n, "to"); err != nil {
		return err
	}
	a := n.Attr("to")
	if a == nil || a.Type != graph.AttrString {
		return nil // some exporters wrote the number already
	}
	t, ok := graph.ParseDataType(strings.ToLower(a.S))
	if !ok {
		return fmt.Errorf("attribute to is %q, no element type", a.S)
	}
	n.SetAttr(graph.IntAttr("to", int64(t)))
	return nil
}

// upgradeNorm turns the exponent p of pooling from a float into an int.
func upgradeNorm(u *upgrader, n *graph.Node) error {
	if err := refuse(n, "p"); err != nil {
		return err
	}
	a := n.Attr("p")
	if a == nil || a.Type != graph.AttrFloat {
		return nil
	}
	if a.F != float32(int64(a.F)) {
		return fmt.Errorf("p is %g, want a whole number", a.F)
	}
	n.SetAttr(graph.IntAttr("p", int64(a.F)))
	return nil
}
