package memplan

import (
	"slices"

	"gradtool/graph"
)

// guesses are the sizes at which peaks of symbolic graphs are looked for.
var guesses = [...]int64{1, 2, 4, 8, 16, 32, 64, 128, 512, 4096}

// PeakTerms returns what the order given needs, with views and results in place, as expressions over the symbols that dims does
// not name: bytes alive at the steps that are the peak for some size of those symbols, all of the same size. The peak for a
// size is the largest of them, as far as the sizes tried tell.
func PeakTerms(g *graph.Graph, dims map[string]int64) ([]graph.Dim, error) {
	var terms []graph.Dim
	for _, guess := range guesses {
		l, err := Analyze(g, nil, Options{Dims: dims, Guess: guess})
		if err != nil {
			return nil, err
		}
		sum := graph.Known(0)
		for _, b := range l.Buffers {
			if b.First <= l.At && l.At <= b.Last && b.Node == nil {
				sum = sum.Add(b.Size.Eval(dims))
			}
		}
		if !sum.IsUnknown() && !slices.ContainsFunc(terms, func(d graph.Dim) bool { return d.Same(sum) }) {
			terms = append(terms, sum)
		}
	}
	return terms, nil
}
