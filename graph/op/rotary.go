package op

import "gradtool/graph"

// rotaryDef is RotaryEmbedding: pairs of elements of each head, the halves of its first part or, interleaved,
// neighbours, are turned by angles whose cosines and sines are given by position.
func rotaryDef() Def {
	heads := graph.IntAttr("num_heads", 2)
	inter := graph.IntAttr("interleaved", 1)
	partial := graph.IntAttr("rotary_embedding_dim", 2)
	positions := TV(graph.Int64, []int{2, 3}, 0, 3, 1, 2, 2, 4)
	return Def{
		Name: "RotaryEmbedding", Infer: sameAsFirst, Eval: evalRotary, Cost: perElement(3),
		Samples: []Sample{
			{In: []Arg{F(2, 2, 3, 4), F(2, 3, 2), F(2, 3, 2)}},
			{Name: "heads in the last axis", In: []Arg{F(2, 3, 8), F(2, 3, 2), F(2, 3, 2)}, Attrs: []*graph.Attr{heads}},
			{Name: "interleaved, positions", In: []Arg{F(2, 2, 3, 4), F(5, 2), F(5, 2), positions}, Attrs: []*graph.Attr{inter}},
			{Name: "partial, positions", In: []Arg{F(2, 3, 8), F(5, 1), F(5, 1), positions.Variable()}, Attrs: []*graph.Attr{heads, partial}},
		},
	}
}

func evalRotary(c *EvalCtx) error {
	x, n := c.Arg(0), c.Node
	if x.Rank() != 4 && (x.Rank() != 3 || n.Int("num_heads", 0) < 1) {
		return c.Errorf("operand X has shape %v, expected rank 4, or 3 and the attribute num_heads", x.Shape)
	}
	h := headsOf(x, n.Int("num_heads", 0))
	cos, sin, positions := floats64(c.Arg(1)), floats64(c.Arg(2)), c.Ints(3)
	half := h.size / 2
	if r := int(n.Int("rotary_embedding_dim", 0)); r > 0 {
		half = r / 2
	}
	cache := c.Arg(1).Shape
	if 2*half > h.size || len(cache) == 0 || cache[len(cache)-1] != half || len(sin) != len(cos) {
		return c.Errorf("cos_cache and sin_cache have shapes %v and %v, expected %d columns", cache, c.Arg(2).Shape, half)
	}
	rows := len(cos) / max(half, 1)
	y := &heads{h.batch, h.heads, h.length, h.size, append([]float64{}, h.v...)}
	for b := range h.batch {
		for t := range h.length {
			row := (b*h.length + t) % max(rows, 1)
			if positions != nil {
				row = int(positions[b*h.length+t])
			}
			if row < 0 || row >= rows {
				return c.Errorf("position %d is outside the %d rows of the caches", row, rows)
			}
			for i := range h.heads {
				v := y.at(b, i)[t*h.size:][:h.size]
				for j := range half {
					p, q := j, j+half
					if n.Int("interleaved", 0) != 0 {
						p, q = 2*j, 2*j+1
					}
					cj, sj := cos[row*half+j], sin[row*half+j]
					v[p], v[q] = cj*v[p]-sj*v[q], sj*v[p]+cj*v[q]
				}
			}
		}
	}
	c.Set(0, y.array(c, x.Elem, x.Rank() == 3))
	return nil
}
