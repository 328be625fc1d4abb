package op

import (
	"fmt"
	"slices"
	"strings"

	"gradtool/graph"
)

func tfIdfSamples() []Sample {
	i := func(name string, v int64) *graph.Attr { return graph.IntAttr(name, v) }
	common := func(mode string, extra ...*graph.Attr) []*graph.Attr {
		return append([]*graph.Attr{graph.StringAttr("mode", mode), i("min_gram_length", 1), i("max_gram_length", 2), i("max_skip_count", 1),
			graph.IntsAttr("ngram_counts", 0, 2), graph.IntsAttr("ngram_indexes", 0, 1, 2, 3)}, extra...)
	}
	ints := graph.IntsAttr("pool_int64s", 2, 3, 5, 4, 2, 3)
	return []Sample{
		{In: []Arg{I(2, 3, 5, 3, 4, 2)}, Attrs: common("TF", ints)},
		{Name: "rows", In: []Arg{TV(graph.Int32, []int{2, 3}, 2, 3, 5, 3, 4, 2)}, Attrs: common("TFIDF", ints, graph.FloatsAttr("weights", 1, 2, 3, 4))},
		{Name: "strings", In: []Arg{TV(graph.String, []int{4}, 2, 3, 2, 4)}, Attrs: common("IDF", &graph.Attr{Name: "pool_strings", Type: graph.AttrStrings, Strings: []string{"2", "3", "2", "4", "3", "2"}})},
	}
}

func inferTfIdf(c *InferCtx) error {
	width, err := tfIdfWidth(c.Node)
	if err != nil {
		return err
	}
	s := c.Shape(0)
	switch {
	case s == nil:
	case len(s) == 1:
		s = graph.Shape{graph.Known(int64(width))}
	case len(s) == 2:
		s = graph.Shape{s[0], graph.Known(int64(width))}
	default:
		return c.Errorf("the operand must have rank 1 or 2, is %s", c.In(0))
	}
	c.Set(0, graph.Float, s)
	return nil
}

// tfIdfWidth returns the number of counts per row, one more than the largest index.
func tfIdfWidth(n *graph.Node) (int, error) {
	indexes := n.Ints("ngram_indexes")
	if len(indexes) == 0 {
		return 0, fmt.Errorf("attribute ngram_indexes is empty")
	}
	top := slices.Max(indexes)
	if slices.Min(indexes) < 0 || top >= maxElements {
		return 0, fmt.Errorf("attribute ngram_indexes is out of range")
	}
	return int(top) + 1, nil
}

// gramKey joins the words of an n-gram such that different n-grams have different keys.
func gramKey(words []string) string {
	var b strings.Builder
	for _, w := range words {
		fmt.Fprintf(&b, "%d:%s", len(w), w)
	}
	return b.String()
}

// grams returns, by key, the position of each n-gram of the pool. The pool lists all 1-grams, then all
// 2-grams, and so on; ngram_counts says where each begins.
func grams(n *graph.Node) (map[string]int, error) {
	var pool []string
	if a := n.Attr("pool_strings"); a != nil {
		pool = a.Strings
	}
	for _, v := range n.Ints("pool_int64s") {
		pool = append(pool, fmt.Sprint(v))
	}
	out := map[string]int{}
	starts, id := n.Ints("ngram_counts"), 0
	for k, from := range starts {
		to := int64(len(pool))
		if k+1 < len(starts) {
			to = starts[k+1]
		}
		size := int64(k + 1)
		if from < 0 || to < from || to > int64(len(pool)) || (to-from)%size != 0 {
			return nil, fmt.Errorf("attribute ngram_counts does not fit a pool of %d", len(pool))
		}
		for ; from < to; from += size {
			out[gramKey(pool[from:from+size])] = id
			id++
		}
	}
	return out, nil
}

// evalTfIdf counts, row by row, the pool's n-grams whose words stand 1 to max_skip_count + 1 apart. Single words
// are counted once, whatever the skip. Mode IDF takes the n-gram's weight once if it occurs, TFIDF the count times it.
func evalTfIdf(c *EvalCtx) error {
	n, x := c.Node, c.In[0]
	width, err := tfIdfWidth(n)
	if err != nil {
		return err
	}
	pool, err := grams(n)
	if err != nil {
		return err
	}
	if x.Rank() > 2 || x.Rank() == 0 || x.Str == nil && x.I64 == nil {
		return c.Errorf("cannot find n-grams in %s", x.Type())
	}
	rows, cols, shape := 1, x.Shape[x.Rank()-1], []int{width}
	if x.Rank() == 2 {
		rows, shape = x.Shape[0], []int{x.Shape[0], width}
	}
	words := x.Str
	if words == nil {
		words = make([]string, x.Len())
		for i, v := range x.I64 {
			words[i] = fmt.Sprint(v)
		}
	}
	y := c.New(graph.Float, shape)
	indexes := n.Ints("ngram_indexes")
	var weights []float32
	if a := n.Attr("weights"); a != nil {
		weights = a.Floats
	}
	if len(pool) > len(indexes) || weights != nil && len(weights) < len(pool) {
		return c.Errorf("%d n-grams, but %d indexes and %d weights", len(pool), len(indexes), len(weights))
	}
	mode := n.Str("mode", "TF")
	for r := range rows {
		counts := make([]int, len(pool))
		countGrams(counts, pool, words[r*cols:(r+1)*cols], int(n.Int("min_gram_length", 1)), int(n.Int("max_gram_length", 1)), int(n.Int("max_skip_count", 0)))
		for id, count := range counts {
			if count == 0 {
				continue
			}
			v := float64(count)
			if mode == "IDF" {
				v = 1
			}
			if mode != "TF" && weights != nil {
				v *= float64(weights[id])
			}
			at := r*width + int(indexes[id])
			y.SetFloat(at, y.Float(at)+v)
		}
	}
	c.Set(0, y)
	return nil
}

func countGrams(counts []int, pool map[string]int, row []string, least, most, skips int) {
	gram := make([]string, 0, most)
	for distance := 1; distance <= skips+1; distance++ {
		for size := least; size <= most; size++ {
			if size == 1 && distance > 1 {
				continue
			}
			for i := 0; i+(size-1)*distance < len(row); i++ {
				gram = gram[:0]
				for k := range size {
					gram = append(gram, row[i+k*distance])
				}
				if id, ok := pool[gramKey(gram)]; ok {
					counts[id]++
				}
			}
		}
	}
}
