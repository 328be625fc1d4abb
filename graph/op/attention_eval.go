package op

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"gradtool/graph"
)

// heads is a tensor laid out [batch, heads, length, size], in float64.
type heads struct {
	batch, heads, length, size int
	v                          []float64
}

// at returns the matrix [length, size] of one head.
func (h *heads) at(b, head int) []float64 {
	n := h.length * h.size
	return h.v[(b*h.heads+head)*n:][:n]
}

// headsOf reads a tensor of rank 4, or of rank 3 with the given number of heads in its last axis.
func headsOf(a *Array, n int64) *heads {
	s, v := a.Shape, floats64(a)
	if len(s) == 4 {
		return &heads{s[0], s[1], s[2], s[3], v}
	}
	h := &heads{s[0], int(n), s[1], s[2] / int(n), make([]float64, len(v))}
	row := h.length * s[2]
	for b := range h.batch {
		copy(h.v[b*row:], swapRows(v[b*row:(b+1)*row], h.length, h.heads, h.size))
	}
	return h
}

// array returns h as a tensor of rank 4 or, packed, of rank 3.
func (h *heads) array(c *EvalCtx, elem graph.DataType, packed bool) *Array {
	a := c.New(elem, []int{h.batch, h.heads, h.length, h.size})
	v := h.v
	if packed {
		a = c.New(elem, []int{h.batch, h.length, h.heads * h.size})
		v = make([]float64, len(h.v))
		row := h.heads * h.length * h.size
		for b := range h.batch {
			copy(v[b*row:], swapRows(h.v[b*row:(b+1)*row], h.heads, h.length, h.size))
		}
	}
	for i, x := range v {
		a.SetFloat(i, x)
	}
	return a
}

// after returns past and h joined along the length.
func (h *heads) after(past *Array) *heads {
	if past == nil {
		return h
	}
	p := headsOf(past, int64(h.heads))
	out := &heads{h.batch, h.heads, p.length + h.length, h.size, make([]float64, 0, len(p.v)+len(h.v))}
	for b := range h.batch {
		for i := range h.heads {
			out.v = append(append(out.v, p.at(b, i)...), h.at(b, i)...)
		}
	}
	return out
}

// evalAttention computes softmax(softcap(scale·Q·Kᵀ) + bias)·V; a row with nothing to attend to gives zeros.
func evalAttention(c *EvalCtx) error {
	n := c.Node
	form := attentionForm{packed: c.Arg(0).Rank() == 3, qHeads: n.Int("q_num_heads", 0), heads: n.Int("kv_num_heads", 0)}
	for i := range 3 {
		if a := c.Arg(i); a.Rank() != 4 && !(a.Rank() == 3 && form.qHeads > 0 && form.heads > 0) || (a.Rank() == 3) != form.packed {
			return c.Errorf("operand %d has shape %v, expected rank 4, or 3 for all and the numbers of heads as attributes", i, a.Shape)
		}
	}
	q := headsOf(c.Arg(0), form.qHeads)
	k, v := headsOf(c.Arg(1), form.heads).after(c.Arg(4)), headsOf(c.Arg(2), form.heads).after(c.Arg(5))
	if k.heads < 1 || q.heads%k.heads != 0 || v.heads != k.heads || q.size != k.size || k.length != v.length {
		return c.Errorf("operands Q, K, V of shapes %v, %v, %v do not fit", c.Arg(0).Shape, c.Arg(1).Shape, c.Arg(2).Shape)
	}
	scores := &heads{q.batch, q.heads, q.length, k.length, scratch[float64](q.batch, q.heads, q.length, k.length)}
	scale := n.Float("scale", 1/math.Sqrt(float64(q.size)))
	general := func(rows, cols int, d []float64) blas64.General {
		return blas64.General{Rows: rows, Cols: cols, Stride: max(cols, 1), Data: d}
	}
	group := q.heads / k.heads
	some := q.length > 0 && k.length > 0
	for b := range q.batch {
		for h := range q.heads {
			if some && q.size > 0 {
				blas64.Gemm(blas.NoTrans, blas.Trans, scale, general(q.length, q.size, q.at(b, h)),
					general(k.length, k.size, k.at(b, h/group)), 0, general(q.length, k.length, scores.at(b, h)))
			}
		}
	}
	shown := append([]float64{}, scores.v...)
	mode := n.Int("qk_matmul_output_mode", 0)
	if softcap := n.Float("softcap", 0); softcap > 0 {
		for i, x := range scores.v {
			scores.v[i] = softcap * math.Tanh(x/softcap)
		}
	}
	if mode == 1 {
		copy(shown, scores.v)
	}
	bias, err := attentionBias(c, scores)
	if err != nil {
		return err
	}
	for i := range scores.v {
		scores.v[i] += bias[i]
	}
	if mode == 2 {
		copy(shown, scores.v)
	}
	for at := 0; at < len(bias); at += k.length {
		row := scores.v[at : at+k.length]
		if math.IsInf(maxOfRun(bias, at, k.length, 1), -1) {
			clear(row)
			continue
		}
		softmaxRun(row, row, 0, len(row), 1)
	}
	if mode == 3 {
		copy(shown, scores.v)
	}
	y := &heads{q.batch, q.heads, q.length, v.size, scratch[float64](q.batch, q.heads, q.length, v.size)}
	for b := range q.batch {
		for h := range q.heads {
			if some && v.size > 0 {
				blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, general(q.length, k.length, scores.at(b, h)),
					general(v.length, v.size, v.at(b, h/group)), 0, general(q.length, v.size, y.at(b, h)))
			}
		}
	}
	scores.v = shown
	c.Set(0, y.array(c, c.Arg(0).Elem, form.packed))
	c.Set(1, k.array(c, c.Arg(1).Elem, false))
	c.Set(2, v.array(c, c.Arg(2).Elem, false))
	c.Set(3, scores.array(c, c.Arg(0).Elem, false))
	return nil
}

// attentionBias returns what is added to the scores: the mask, and -inf where a key is not to be seen.
func attentionBias(c *EvalCtx, s *heads) ([]float64, error) {
	n, inf := c.Node, math.Inf(-1)
	bias := make([]float64, len(s.v))
	if mask := c.Arg(3); mask != nil {
		if err := addMask(c, mask, s, bias); err != nil {
			return nil, err
		}
	}
	lens := c.Ints(6)
	if lens != nil && len(lens) != s.batch {
		return nil, c.Errorf("nonpad_kv_seqlen has %d elements for a batch of %d", len(lens), s.batch)
	}
	causal := n.Int("is_causal", 0) != 0
	left, right := n.Int("left_window_size", -1), n.Int("right_window_size", -1)
	i := 0
	for b := range s.batch {
		offset := int64(0)
		switch past := c.Arg(4); {
		case past != nil:
			offset = int64(past.Shape[2])
		case lens != nil:
			offset = lens[b] - int64(s.length)
		}
		for range s.heads {
			for row := range s.length {
				p := int64(row) + offset
				for j := range int64(s.size) {
					if causal && j > p || left >= 0 && j < p-left || right >= 0 && j > p+right || lens != nil && j >= lens[b] {
						bias[i] = inf
					}
					i++
				}
			}
		}
	}
	return bias, nil
}

// addMask adds a mask, which broadcasts to the scores but for a last axis that may be shorter: keys beyond it are not seen.
func addMask(c *EvalCtx, mask *Array, s *heads, bias []float64) error {
	width := s.size
	if r := mask.Rank(); r > 0 {
		width = min(width, mask.Shape[r-1])
	}
	p, err := broadcastTo([]int{s.batch, s.heads, s.length, width}, mask.Shape)
	if err != nil {
		return err
	}
	p.runs(0, s.batch*s.heads*s.length*width, func(to, n int, at []int) {
		for i := range n {
			from := at[0]
			if p.advances(0) {
				from += i
			}
			x := mask.Float(from)
			if mask.Elem == graph.Bool {
				x = math.Inf(-1)
				if mask.I64[from] != 0 {
					x = 0
				}
			}
			bias[(to+i)/max(width, 1)*s.size+(to+i)%max(width, 1)] += x
		}
	})
	for row := 0; row < len(bias); row += s.size {
		for j := width; j < s.size; j++ {
			bias[row+j] = math.Inf(-1)
		}
	}
	return nil
}
