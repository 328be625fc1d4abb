package op

import (
	"slices"

	"gradtool/graph"
)

func inferSuppress(c *InferCtx) error {
	for i := range 2 {
		if s := c.Shape(i); s != nil && len(s) != 3 {
			return c.Errorf("operand %d has shape %s, expected rank 3", i, s)
		}
	}
	c.Set(0, graph.Int64, graph.Shape{graph.Unknown(), graph.Known(3)})
	return nil
}

// box is a rectangle by its edges.
type box struct{ x0, x1, y0, y1 float32 }

// boxOf reads a box, given as two opposite corners (y, x), or as its centre (x, y), width and height.
func boxOf(v [4]float32, centred bool) box {
	if centred {
		w, h := v[2]/2, v[3]/2
		return box{v[0] - w, v[0] + w, v[1] - h, v[1] + h}
	}
	return box{min(v[1], v[3]), max(v[1], v[3]), min(v[0], v[2]), max(v[0], v[2])}
}

func (b box) area() float32 { return (b.x1 - b.x0) * (b.y1 - b.y0) }

// overlaps reports whether the intersection of two boxes over their union is greater than t. Boxes without area overlap
// nothing. It is computed in float32, as runtimes do, since rounding decides.
func (b box) overlaps(o box, t float32) bool {
	w, h := min(b.x1, o.x1)-max(b.x0, o.x0), min(b.y1, o.y1)-max(b.y0, o.y0)
	if w <= 0 || h <= 0 || b.area() <= 0 || o.area() <= 0 {
		return false
	}
	both := w * h
	union := b.area() + o.area() - both
	return union > 0 && both/union > t
}

// evalSuppress chooses boxes of each image and class in the order of their scores, equal ones in that of their
// indices; a box that overlaps a chosen one too much is left out. Results are triples of image, class and box.
func evalSuppress(c *EvalCtx) error {
	boxes, scores := c.Arg(0), c.Arg(1)
	if boxes.Rank() != 3 || boxes.Shape[2] != 4 || scores.Rank() != 3 || scores.Shape[0] != boxes.Shape[0] || scores.Shape[2] != boxes.Shape[1] {
		return c.Errorf("operands are %s and %s, expected [images, boxes, 4] and [images, classes, boxes]", boxes.Type(), scores.Type())
	}
	limit := int64(0)
	if v := c.Ints(2); len(v) > 0 {
		limit = v[0]
	}
	threshold := float32(0)
	if a := c.Arg(3); a != nil && a.Len() > 0 {
		threshold = float32(a.Float(0))
	}
	least := c.Arg(4)
	centred := c.Node.Int("center_point_box", 0) != 0
	n, classes := boxes.Shape[1], scores.Shape[1]
	var chosen []int64
	for image := range boxes.Shape[0] {
		all := make([]box, n)
		for i := range all {
			var v [4]float32
			for k := range v {
				v[k] = float32(boxes.Float((image*n+i)*4 + k))
			}
			all[i] = boxOf(v, centred)
		}
		for class := range classes {
			score := func(i int) float64 { return scores.Float((image*classes+class)*n + i) }
			for _, i := range chooseBoxes(all, score, least, limit, threshold) {
				chosen = append(chosen, int64(image), int64(class), int64(i))
			}
		}
	}
	y := c.New(graph.Int64, []int{len(chosen) / 3, 3})
	copy(y.I64, chosen)
	c.Set(0, y)
	return nil
}

// chooseBoxes returns the indices of the chosen boxes of one image and class.
func chooseBoxes(all []box, score func(int) float64, least *Array, limit int64, threshold float32) []int {
	var order []int
	for i := range all {
		if least == nil || least.Len() == 0 || score(i) > least.Float(0) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch a, b := score(i), score(j); {
		case a > b:
			return -1
		case a < b:
			return 1
		}
		return 0
	})
	var out []int
	for _, i := range order {
		if int64(len(out)) >= limit {
			break
		}
		if !slices.ContainsFunc(out, func(j int) bool { return all[i].overlaps(all[j], threshold) }) {
			out = append(out, i)
		}
	}
	return out
}
