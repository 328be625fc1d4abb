package op

import (
	"fmt"

	"gradtool/graph"
)

// resizeAdapters bring Upsample and early Resize to Resize with all modes explicit.
func resizeAdapters(add addAdapter) {
	add(7, upgradeUpsample7, "Upsample")
	add(9, func(u *upgrader, n *graph.Node) error { return u.attrIn(n, "scales", 1) }, "Upsample")
	add(10, upgradeUpsample10, "Upsample")
	add(11, upgradeResize10, "Resize")
	add(13, upgradeResize13, "Resize")
}

// upgradeUpsample7 turns the factors of the two last axes into one factor per axis, and the name of the linear mode.
func upgradeUpsample7(u *upgrader, n *graph.Node) error {
	if err := refuse(n, "height_scale", "width_scale", "mode"); err != nil {
		return err
	}
	if n.HasAttr("height_scale") || n.HasAttr("width_scale") {
		h, w := n.Float("height_scale", 1), n.Float("width_scale", 1)
		n.DeleteAttr("height_scale")
		n.DeleteAttr("width_scale")
		n.SetAttr(graph.FloatsAttr("scales", 1, 1, float32(h), float32(w)))
	}
	if n.Str("mode", "") == "bilinear" {
		n.SetAttr(graph.StringAttr("mode", "linear"))
	}
	return nil
}

// upgradeUpsample10 turns Upsample into the Resize that maps coordinates alike.
func upgradeUpsample10(u *upgrader, n *graph.Node) error {
	if err := u.attrIn(n, "scales", 1); err != nil { // written so against the standard by some exporters
		return err
	}
	n.Op = "Resize"
	if n.Str("mode", "") == "bilinear" {
		n.SetAttr(graph.StringAttr("mode", "linear"))
	}
	return upgradeResize11(u, n)
}

// upgradeResize10 is upgradeResize11 for Resize of opset 10, of which the standard does not say how nearest rounds.
// ONNX Runtime rounds down along axes that grow, as Upsample does, and up along axes that shrink; where both occur
// there are two nodes.
func upgradeResize10(u *upgrader, n *graph.Node) error {
	x, err := need(n, 0)
	if err != nil {
		return err
	}
	scales, err := need(n, 1)
	if err != nil {
		return err
	}
	known := u.info.Const(scales)
	if known == nil || n.Str("mode", "nearest") != "nearest" || n.Attr("mode") != nil && n.Attr("mode").Ref != "" {
		return upgradeResize11(u, n)
	}
	shrink, grow := make([]float32, known.Len()), make([]float32, known.Len())
	shrinks, grows := false, false
	for i := range known.Len() {
		s := float32(known.Float(i))
		shrink[i], grow[i] = min(s, 1), max(s, 1)
		shrinks, grows = shrinks || s < 1, grows || s > 1
	}
	if shrinks && grows {
		attrs := []*graph.Attr{graph.StringAttr("coordinate_transformation_mode", "asymmetric"), graph.StringAttr("nearest_mode", "ceil")}
		n.SetIn(0, u.b.Op("Resize", vals(x, nil, u.b.Const(graph.Floats(nil, shrink...))), attrs...))
		n.SetIn(1, u.b.Const(graph.Floats(nil, grow...)))
	}
	if err := upgradeResize11(u, n); err != nil {
		return err
	}
	if shrinks && !grows {
		n.SetAttr(graph.StringAttr("nearest_mode", "ceil"))
	}
	return nil
}

// upgradeResize11 says how coordinates are mapped, of which there was one way before, and makes room for the operand
// roi.
func upgradeResize11(u *upgrader, n *graph.Node) error {
	scales, err := need(n, 1)
	if err != nil {
		return err
	}
	n.SetIn(1, nil)
	n.SetIn(2, scales)
	n.SetAttr(graph.StringAttr("coordinate_transformation_mode", "asymmetric"))
	n.SetAttr(graph.StringAttr("nearest_mode", "floor"))
	return nil
}

// upgradeResize13 replaces tf_half_pixel_for_nn, x = (i + 1/2) / scale, rounded down, by half_pixel, which is 1/2 less,
// rounded to nearest with ties up.
func upgradeResize13(u *upgrader, n *graph.Node) error {
	if n.Str("coordinate_transformation_mode", "") != "tf_half_pixel_for_nn" {
		return nil
	}
	if mode, near := n.Str("mode", "nearest"), n.Str("nearest_mode", "round_prefer_floor"); mode != "nearest" || near != "floor" {
		return fmt.Errorf("coordinate_transformation_mode tf_half_pixel_for_nn with mode %s and nearest_mode %s", mode, near)
	}
	n.SetAttr(graph.StringAttr("coordinate_transformation_mode", "half_pixel"))
	n.SetAttr(graph.StringAttr("nearest_mode", "round_prefer_ceil"))
	return nil
}
