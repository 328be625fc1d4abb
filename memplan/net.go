package memplan

import (
	"errors"
	"fmt"

	"gradtool/graph"
)

// net is what planning needs of a graph, in numbers: nodes, in the graph's order, and storages. A storage is a value with the
// views of it.
type net struct {
	nodes   []*graph.Node
	stores  []store
	of      map[*graph.Value]int32 // storage of each value that has one
	reads   [][]int32              // storages that a node reads, each once
	defs    [][]int32              // storages that a node makes
	over    [][]overwrite          // what a node's results may be written over
	space   []int64                // workspace of a node
	bodies  [][]*Placed            // plans of its subgraphs, which share the workspace
	before  [][]int32              // nodes whose results a node reads
	after   [][]int32              // the other way round
	outside []Outside
	inputs  []int32 // storages of a body's inputs, which live from the beginning
	left    int     // values of bodies that could not be counted
}

// store is one storage.
type store struct {
	values []*graph.Value // in order of definition in the graph; the first one makes it
	size   graph.Dim
	bytes  int64
	def    int32 // node that makes it, -1 for an input
	output bool  // lives to the end
	given  bool  // an input that its successor may take the bytes of; has none in the arena
	uses   []int32
}

// overwrite says that storage to, made by the node, may take the bytes of storage from if that dies.
type overwrite struct{ from, to int32 }

// Options says how to look at a graph.
type Options struct {
	Dims      map[string]int64 // sizes of symbolic dimensions that types have
	Guess     int64            // size of all other symbols, for estimates; 0: such symbols are an error
	NoViews   bool             // views are copies
	NoInPlace bool             // no result takes the bytes of an operand

	symbols map[string]bool // those of the model's inputs: others get their sizes from values
}

// newNet returns the net of g. body says that inputs live in the same memory, as those of loop bodies do.
func newNet(g *graph.Graph, opt Options, body bool) (*net, error) {
	n := &net{nodes: g.Nodes, of: map[*graph.Value]int32{}}
	if opt.symbols == nil {
		opt.symbols = inputSymbols(g)
	}
	s := &sizer{dims: opt.Dims, guess: opt.Guess, symbols: opt.symbols}
	at := make(map[*graph.Node]int32, len(g.Nodes))
	for i, k := range g.Nodes {
		at[k] = int32(i)
	}
	isOut := map[*graph.Value]bool{}
	for _, v := range g.Outputs {
		isOut[v] = true
	}
	lent := lenders(g, isOut, opt) // values whose views must be copies
	if body {
		for _, v := range g.Inputs {
			n.make(v, -1, s)
			if id, ok := n.of[v]; ok {
				n.inputs = append(n.inputs, id)
			}
		}
	} else if !opt.NoInPlace {
		n.give(g, isOut, s)
	}
	beside := map[*graph.Value]bool{} // results that are not placed
	for i, k := range g.Nodes {
		var defs []int32
		for _, v := range k.Out {
			if v == nil {
				continue
			}
			if constant(v) {
				continue
			}
			if x := viewed(v); x != nil && !opt.NoViews && !lent[v] {
				if id, ok := n.of[x]; ok {
					n.of[v] = id
					n.stores[id].values = append(n.stores[id].values, v)
				} else if beside[x] {
					beside[v] = true
					n.outside = append(n.outside, Outside{v, fmt.Sprintf("it is a view of %q, which is not in the arena either", x.Name)})
				}
				continue // a view of what lies elsewhere lies there too
			}
			if n.make(v, int32(i), s) {
				defs = append(defs, n.of[v])
			} else {
				beside[v] = true
			}
		}
		n.defs = append(n.defs, defs)
	}
	n.link(at)
	for v := range isOut {
		if id, ok := n.of[v]; ok {
			n.stores[id].output = true
		}
	}
	if !opt.NoInPlace {
		n.overwrites()
	}
	if err := n.workspaces(opt, s); err != nil {
		return nil, err
	}
	return n, s.err()
}

// inputSymbols returns the symbols in the types of g's inputs.
func inputSymbols(g *graph.Graph) map[string]bool {
	set := map[string]bool{}
	for _, v := range g.Inputs {
		for _, d := range v.Type.Shape {
			for _, name := range d.Symbols() {
				set[name] = true
			}
		}
	}
	return set
}

// lenders returns the views that have to be copies: of inputs and constants, where the view is a graph output.
func lenders(g *graph.Graph, isOut map[*graph.Value]bool, opt Options) map[*graph.Value]bool {
	copies := map[*graph.Value]bool{}
	for _, v := range g.Outputs {
		for x := viewed(v); x != nil && !opt.NoViews; x = viewed(x) {
			if x.Graph != g {
				break
			}
			if x.Def == nil || constant(x) {
				copies[v] = true
				break
			}
			if isOut[x] {
				break
			}
		}
	}
	return copies
}

// make gives v a storage of its own, or notes why it has none.
func (n *net) make(v *graph.Value, def int32, s *sizer) bool {
	size := SizeOf(v.Type)
	large := s.tooLarge(v)
	bytes, ok := s.bytes(size)
	if large || !ok {
		n.outside = append(n.outside, Outside{v, whyOutside(v)})
		return false
	}
	n.of[v] = int32(len(n.stores))
	n.stores = append(n.stores, store{values: []*graph.Value{v}, size: size, bytes: bytes, def: def})
	return true
}

func whyOutside(v *graph.Value) string {
	switch {
	case !v.Type.IsTensor():
		return "it is no tensor: " + v.Type.String()
	case v.Type.Elem == graph.String:
		return "strings have no fixed size"
	}
	return "its size is known only when the model runs: " + v.Type.String()
}

// give enters the inputs that an optimizer writes over. They take no bytes of the arena.
func (n *net) give(g *graph.Graph, isOut map[*graph.Value]bool, s *sizer) {
	next := map[string]*graph.Value{}
	for _, v := range g.Outputs {
		if v.Def != nil {
			next[v.Name] = v
		}
	}
	for _, p := range g.Inputs {
		y := next[p.Name+nextSuffix]
		if y == nil || isOut[p] || !successor(y, p) {
			continue
		}
		size := SizeOf(p.Type)
		if _, ok := s.bytes(size); !ok {
			continue
		}
		n.of[p] = int32(len(n.stores))
		n.stores = append(n.stores, store{values: []*graph.Value{p}, size: size, def: -1, given: true})
	}
}

// operands returns what a node reads, captured values included.
func operands(k *graph.Node) []*graph.Value {
	if c := k.Captures(); len(c) > 0 {
		return append(append([]*graph.Value{}, k.In...), c...)
	}
	return k.In
}

// link fills in who reads what.
func (n *net) link(at map[*graph.Node]int32) {
	n.reads = make([][]int32, len(n.nodes))
	n.before = make([][]int32, len(n.nodes))
	n.after = make([][]int32, len(n.nodes))
	n.over = make([][]overwrite, len(n.nodes))
	n.space = make([]int64, len(n.nodes))
	for i, k := range n.nodes {
		seen := map[int32]bool{}
		nodes := map[int32]bool{}
		note := func(v *graph.Value) {
			if id, ok := n.of[v]; ok && !seen[id] {
				seen[id] = true
				n.reads[i] = append(n.reads[i], id)
				n.stores[id].uses = append(n.stores[id].uses, int32(i))
			}
			if v.Def == nil {
				return
			}
			if p, ok := at[v.Def]; ok && !nodes[p] {
				nodes[p] = true
				n.before[i] = append(n.before[i], p)
				n.after[p] = append(n.after[p], int32(i))
			}
		}
		for _, v := range operands(k) {
			if v != nil {
				note(v)
			}
		}
	}
}

// overwrites fills in what may be written in place.
func (n *net) overwrites() {
	for i, k := range n.nodes {
		y := k.Result(0)
		to, ok := n.of[y]
		if y == nil || !ok || n.stores[to].def != int32(i) || n.stores[to].values[0] != y {
			continue
		}
		for _, x := range overwritable(k) {
			from, ok := n.of[x]
			if !ok || from == to {
				continue
			}
			if s := &n.stores[from]; s.given && !successor(y, s.values[0]) || !s.given && (s.output || s.bytes != n.stores[to].bytes) {
				continue
			}
			if k.Is("ScatterElements") || k.Is("ScatterND") {
				if n.readsTwice(k, from) {
					continue
				}
			}
			n.over[i] = append(n.over[i], overwrite{from, to})
		}
	}
}

// readsTwice reports whether operands of k other than the first lie in the storage.
func (n *net) readsTwice(k *graph.Node, id int32) bool {
	for _, v := range k.In[1:] {
		if v == nil {
			continue
		}
		if other, ok := n.of[v]; ok && other == id {
			return true
		}
	}
	return false
}

// workspaces plans the bodies of nodes, each in its own order. Only one of them runs at a time.
func (n *net) workspaces(opt Options, s *sizer) error {
	n.bodies = make([][]*Placed, len(n.nodes))
	for i, k := range n.nodes {
		for _, b := range k.Subgraphs() {
			in, err := newNet(b, opt, true)
			var unbound *SymbolError
			if errors.As(err, &unbound) {
				s.unbound = append(s.unbound, unbound.Symbols...)
				continue
			}
			if err != nil {
				return fmt.Errorf("node %s: %w", k.Label(), err)
			}
			order := in.given()
			p, err := Place(in.live(b, order, in.simulate(order)), quickEffort)
			if err != nil {
				return fmt.Errorf("node %s: %w", k.Label(), err)
			}
			n.left += len(in.outside) + in.left
			n.bodies[i] = append(n.bodies[i], p)
			n.space[i] = max(n.space[i], p.Arena)
		}
	}
	return nil
}

// given returns the order that the graph has.
func (n *net) given() []int32 {
	order := make([]int32, len(n.nodes))
	for i := range order {
		order[i] = int32(i)
	}
	return order
}
