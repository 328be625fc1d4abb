package batch

import (
	"errors"
	"fmt"
	"strconv"

	"gradtool/graph"
	"gradtool/graph/op"
)

// Options says how to divide.
type Options struct {
	Parts int    // of the batch
	Dim   string // the symbol that the batch is, anywhere in the inputs; "": the leading axis of the inputs
}

// Border is a node that is computed for the whole batch though it reads values that are there in parts.
type Border struct {
	Node string // label
	Why  string
}

// Result is what Split did.
type Result struct {
	Axis    string   // the symbol or size of the batch
	Parts   int      // at most as many as the batch has samples
	Divided int      // nodes that are now computed in parts
	Joined  []string // names of values that are computed in parts and joined, outputs included
	Borders []Border // in the order of the graph
	Summed  int      // values that are sums of what the parts give: rounded in another order
}

// MetaParts is the key of the model's metadata under which Split notes the number of parts.
const MetaParts = "gradtool.parts"

// Errors of graphs that are not divided.
var (
	ErrNoBatch = errors.New("no input has a batch: a leading axis of two or more, or the dimension that was named")
	ErrNothing = errors.New("no node treats the samples of the batch alike")
	ErrTwice   = errors.New("the graph is computed by parts of its batch already")
)

// Split computes the main graph of m by parts of its batch. The model must be sorted, canonical and inferred; it is sorted
// afterwards. The error is [ErrNoBatch] or [ErrNothing] where there is nothing to divide, [ErrTwice] where that was done.
func Split(m *graph.Model, info *op.Info, opt Options) (*Result, error) {
	if opt.Parts < 2 {
		return nil, fmt.Errorf("%d parts: want 2 or more", opt.Parts)
	}
	if m.Meta.Get(MetaParts) != "" {
		return nil, ErrTwice
	}
	seeds, n := seeds(m.Graph, opt.Dim)
	return split(m, info, opt, seeds, n)
}

// split is Split for a batch of n that comes in by the inputs given.
func split(m *graph.Model, info *op.Info, opt Options, seeds []origin, n graph.Dim) (*Result, error) {
	if len(seeds) == 0 {
		return nil, ErrNoBatch
	}
	e := newEmitter(m, info, n, opt.Parts)
	for _, s := range seeds {
		e.seed[s.value] = s.at
	}
	e.first = seeds[0]
	e.ends = make([]*graph.Value, e.parts+1)
	if err := e.run(); err != nil {
		return nil, err
	}
	if e.res.Divided == 0 {
		return nil, fmt.Errorf("the batch %s: %w", n, ErrNothing)
	}
	m.Meta.Set(MetaParts, strconv.Itoa(e.parts))
	return e.res, nil
}

// origin is an input with the batch in it.
type origin struct {
	value *graph.Value
	at    *place
}

// seeds returns the inputs that the batch comes in by, and its size. The batch is the symbol named or, with "", the size that most
// inputs have as a leading axis, of several the first: one of a symbol if there is any, else one of at least two. Each input with a
// leading axis of that size has it. Inputs with a default are parameters.
func seeds(g *graph.Graph, symbol string) (list []origin, n graph.Dim) {
	axes := func(v *graph.Value) graph.Shape { // where the batch may be
		switch s := v.Type.Shape; {
		case v.Init != nil || !v.Type.IsTensor() || len(s) == 0:
			return nil
		case symbol == "":
			return s[:1]
		default:
			return s
		}
	}
	found := symbol != ""
	if found {
		n = graph.Sym(symbol)
	}
	for _, symbolic := range []bool{true, false} {
		if found {
			break
		}
		most := 0
		for _, v := range g.Inputs {
			for _, d := range axes(v) {
				k, known := d.Int()
				if d.IsUnknown() || d.IsSymbolic() != symbolic || known && k < 2 {
					continue
				}
				same := 0
				for _, w := range g.Inputs {
					if s := axes(w); len(s) > 0 && s[0].Equal(d) {
						same++
					}
				}
				if same > most {
					n, found, most = d, true, same
				}
			}
		}
	}
	if !found {
		return nil, n
	}
	for _, v := range g.Inputs {
		for i, d := range axes(v) {
			if d.Equal(n) {
				list = append(list, origin{v, plain(i)})
				break
			}
		}
	}
	return list, n
}
