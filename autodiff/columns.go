package autodiff

import (
	"errors"

	"gradtool/graph"
)

func columnRules() []Rule {
	return []Rule{{Name: "Col2Im", Kind: HasVJP, VJP: col2imVJP, Check: checkCol2Im}}
}

// checkCol2Im refuses blocks whose sizes only run time tells: their number decides how many slices the rule takes.
func checkCol2Im(n *graph.Node) error {
	if v := n.Operand(2); v != nil && readsInput(v) {
		return errors.New("block_shape is not known")
	}
	return nil
}

// col2imVJP is the rule of adding blocks up to an image: every block gets what it covers of the cotangent.
func col2imVJP(c *Ctx) []*graph.Value {
	x, g := c.X(0), c.Ct(0)
	block, ok := c.numbers(c.X(2))
	if !ok || len(block) != len(c.Y(0).Type.Shape)-2 {
		if c.Err == nil {
			c.Err = errors.New("block_shape is not known")
		}
		return nil
	}
	w := newWindow(c.Node, graph.ShapeOf(block...))
	g, inner := w.pad(c, g)
	var parts []*graph.Value
	inner.eachTap(func(tap []int64) { parts = append(parts, c.ReshapeTo(inner.tap(c, g, tap), 0, 0, 1, -1)) })
	return one(c.Reshape(c.Concat(2, parts...), c.Shape(x)))
}
