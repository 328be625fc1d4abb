package memplan

import (
	"slices"

	"gradtool/graph"
	"gradtool/memplan/offset"
)

// Align is what offsets in an arena are multiples of: the length of a cache line, which is enough for every
// vector unit too.
const Align = 64

// DefaultEffort is the search for offsets that planning makes, in steps of work: at most about three seconds.
const DefaultEffort = 850_000_000

// Placed is the lives of values with their places in the arena.
type Placed struct {
	*Live
	Offset map[*Buffer]int64 // offsets; buffers without bytes have none
	Arena  int64
	Bound  int64 // no arena for these lives is smaller: the most bytes alive at one step, each buffer rounded up to Align
	Proved bool  // no arena for these lives is smaller than Arena
	Method string

	Memories     []Memory // if there are several, in order of preference; offsets count through them
	Spilled      int64    // then: the bytes that nodes move, for each memory that they are moved behind the first
	SpilledBound int64    // then: no places for these lives have fewer
}

// Place assigns offsets to the buffers of l, with about effort steps of search.
func Place(l *Live, effort int64) (*Placed, error) {
	best, err := l.place(0, min(effort, quickEffort))
	if err != nil {
		return nil, err
	}
	for _, a := range attempts {
		if a.order == 0 && !a.loose && effort > quickEffort && !best.near() {
			p, err := l.place(a.share, effort/100*a.effort)
			if err != nil {
				return nil, err
			}
			best = lower(best, p)
		}
	}
	return best, nil
}

// place assigns offsets with about effort steps of search. Training steps have many small buffers, which the exact search gets lost
// in, though they fit in anywhere: with a share, buffers below the bound divided by it are placed around the others.
func (l *Live) place(share, effort int64) (*Placed, error) {
	list, which := l.offsetBuffers()
	p := &Placed{Live: l, Offset: map[*Buffer]int64{}}
	if len(list) == 0 {
		p.Proved = true
		return p, nil
	}
	var r offset.Result
	var err error
	if share > 0 {
		r, err = inTwo(list, share, effort)
	} else {
		r, err = offset.Solve(list, 0, effort)
	}
	if err != nil {
		return nil, err
	}
	p.Arena, p.Bound, p.Proved, p.Method = r.Height, r.Bound, r.Optimal, r.Method
	for i, b := range which {
		p.Offset[b] = r.Offsets[i]
	}
	return p, nil
}

// offsetBuffers returns the buffers that have bytes, as the search for offsets knows them.
func (l *Live) offsetBuffers() (list []offset.Buffer, which []*Buffer) {
	for _, b := range l.Buffers {
		if b.Bytes == 0 {
			continue
		}
		// Rounded sizes keep every offset a multiple: then the exact search, which works in units, applies.
		size := Aligned(b.Bytes)
		list = append(list, offset.Buffer{ID: b.Name(), Lower: int64(b.First), Upper: int64(b.Last) + 1, Size: size})
		which = append(which, b)
	}
	return list, which
}

// RoundedPeak returns the most bytes alive at one step, each buffer rounded up to Align: no arena for these lives is smaller.
func (l *Live) RoundedPeak() int64 {
	list, _ := l.offsetBuffers()
	return offset.Bound(list)
}

// Aligned returns n rounded up to a multiple of Align: what n bytes take in an arena.
func Aligned(n int64) int64 { return (n + Align - 1) / Align * Align }

// quickEffort is the search for offsets that the greedy orders of a training step take, or quickEach for each buffer if that is
// more.
const (
	quickEffort = 16_000_000
	quickEach   = 16_000
)

// near reports whether the arena is so close to the bound that a longer search is not worth its time: 0.1 %.
func (p *Placed) near() bool { return p.Arena-p.Bound <= p.Bound/1000 }

// lower returns the one with the smaller arena.
func lower(a, b *Placed) *Placed {
	if b.Arena < a.Arena {
		return b
	}
	return a
}

// inTwo places the buffers of at least a share of the bound, then the others around them.
func inTwo(list []offset.Buffer, share, effort int64) (offset.Result, error) {
	bound := offset.Bound(list)
	var large []offset.Buffer
	var which []int
	for i, b := range list {
		if b.Size >= bound/share {
			large, which = append(large, b), append(which, i)
		}
	}
	r, err := offset.Solve(large, 0, effort)
	if err != nil {
		return r, err
	}
	fixed := slices.Clone(list)
	for i, k := range which {
		fixed[k].Fixed = &r.Offsets[i]
	}
	method := r.Method
	r, err = offset.Solve(fixed, 0, effort/10)
	r.Method = method + ", small ones around"
	r.Bound, r.Optimal = bound, r.Height <= bound
	return r, err
}

// Plan is what a plan tells those who run the model. It names values and nodes as the model does: the order is that of the
// nodes in the file.
type Plan struct {
	Schema    string           `json:"schema"` // PlanSchema
	Dims      map[string]int64 `json:"dims"`   // sizes of symbolic dimensions that the plan is for
	Arena     int64            `json:"arena_bytes"`
	Bound     int64            `json:"bound_bytes"`
	Align     int64            `json:"align"`
	Steps     int              `json:"steps"`
	Memories  []Memory         `json:"memories,omitempty"` // if there are several: then arena_bytes is their sum
	Values    []Slot           `json:"values"`             // in order of definition
	Workspace []Space          `json:"workspace"`          // in order of time
	InPlace   [][2]string      `json:"in_place"`           // value written over, value written
	State     [][2]string      `json:"state"`              // input written over, output written
	Outside   []Reason         `json:"outside"`            // what the arena does not hold
}

// Slot is where a value lies, and from which step to which.
type Slot struct {
	Name   string `json:"name"`
	Memory string `json:"memory,omitempty"` // of several, which
	At     int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
	First  int    `json:"first"`
	Last   int    `json:"last"`
}

// Space is the workspace of the node that runs at a step, with what lies in it while one of the node's subgraphs runs.
type Space struct {
	Step   int    `json:"step"`
	Result string `json:"result"`           // the node's first result
	Memory string `json:"memory,omitempty"` // of several, which
	At     int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
	Bodies []Body `json:"bodies"` // one for each subgraph, in the order of the attributes
}

// Body is the plan of a subgraph: for its inputs, from the beginning on, and what its nodes compute. Offsets count from the
// beginning of the workspace, steps from the beginning of the subgraph.
type Body struct {
	Graph     string      `json:"graph"`
	Steps     int         `json:"steps"`
	Values    []Slot      `json:"values"`
	Workspace []Space     `json:"workspace"`
	InPlace   [][2]string `json:"in_place"`
	Outside   []Reason    `json:"outside"`
}

// Reason is a value outside of the arena, and why it is.
type Reason struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// PlanSchema names the form of [Plan] as JSON.
const PlanSchema = "gradtool.memory/1"

// Plan returns p in terms of names. dims are the sizes that symbolic dimensions were given.
func (p *Placed) Plan(dims map[string]int64) *Plan {
	if dims == nil {
		dims = map[string]int64{}
	}
	t := p.table()
	out := &Plan{Schema: PlanSchema, Dims: dims, Arena: p.Arena, Bound: p.Bound, Align: Align, Steps: t.Steps,
		Memories: p.Memories, Values: t.Values, Workspace: t.Workspace, InPlace: t.InPlace, State: [][2]string{}, Outside: t.Outside}
	for _, x := range p.State {
		out.State = append(out.State, [2]string{x.From.Name, x.To.Name})
	}
	return out
}

// table returns the parts that plans of models and of subgraphs have in common.
func (p *Placed) table() Body {
	t := Body{Graph: p.Graph.Name, Steps: len(p.Order), Values: []Slot{}, Workspace: []Space{}, InPlace: [][2]string{}, Outside: []Reason{}}
	last := lastReads(p.Graph, p.Order)
	add := func(v *graph.Value, first int) {
		if b := p.Of[v]; v != nil && b != nil {
			memory, at := p.locate(p.Offset[b])
			t.Values = append(t.Values, Slot{Name: v.Name, Memory: memory, At: at, Bytes: b.Bytes, First: first, Last: max(first, last[v])})
		}
	}
	for _, v := range p.Graph.Inputs {
		add(v, 0)
	}
	for i, n := range p.Order {
		for _, v := range n.Out {
			add(v, i)
		}
	}
	for _, b := range p.Buffers {
		if b.Node == nil {
			continue
		}
		memory, at := p.locate(p.Offset[b])
		s := Space{b.First, firstResult(b.Node), memory, at, b.Bytes, nil}
		for _, body := range p.bodies[b.Node] {
			s.Bodies = append(s.Bodies, body.table())
		}
		t.Workspace = append(t.Workspace, s)
	}
	for _, x := range p.InPlace {
		t.InPlace = append(t.InPlace, [2]string{x.From.Name, x.To.Name})
	}
	for _, x := range p.Outside {
		t.Outside = append(t.Outside, Reason{x.Value.Name, x.Why})
	}
	return t
}

// firstResult returns the name of a node's first result.
func firstResult(n *graph.Node) string {
	for _, v := range n.Out {
		if v != nil {
			return v.Name
		}
	}
	return ""
}

// lastReads returns the last step that reads each value itself; outputs are read behind the last step.
func lastReads(g *graph.Graph, order []*graph.Node) map[*graph.Value]int {
	last := map[*graph.Value]int{}
	for i, n := range order {
		for _, v := range operands(n) {
			if v != nil {
				last[v] = i
			}
		}
	}
	for _, v := range g.Outputs {
		last[v] = len(order) - 1
	}
	return last
}
