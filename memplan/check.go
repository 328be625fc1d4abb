package memplan

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"gradtool/graph"
	"gradtool/graph/op"
)

// Check replays a plan on the graph it is for, node by node in the graph's order, and reports everything that is wrong. It
// shares nothing with planning but the operator table: it keeps track of whose bytes lie where. A result takes its bytes from
// all values that lie there; an operand whose bytes were taken before it is read, and an output whose bytes are not its own in
// the end, are errors. So are places outside of the arena or not aligned, sizes that do not fit the type, results of one node that
// overlap each other, results over operands that the operator does not allow or the plan does not mention, and values that
// are neither placed nor excepted. The types of values must be known.
func Check(g *graph.Graph, p *Plan) error {
	if p.Schema != PlanSchema {
		return fmt.Errorf("the plan's schema is %q, want %q", p.Schema, PlanSchema)
	}
	p, err := p.flat()
	if err != nil {
		return err
	}
	return errors.Join(check(g, p, false)...)
}

// check replays a plan. body says that it is one of a subgraph, whose inputs lie in the arena from the beginning on and may be
// written over.
func check(g *graph.Graph, p *Plan, body bool) []error {
	c := &checker{g: g, p: p, body: body, slots: map[string]Slot{}, excepted: map[string]bool{}, pairs: map[[2]string]bool{}, state: map[string]string{}}
	c.read()
	for i, v := range g.Inputs {
		if body {
			c.enter(v)
			for _, w := range g.Inputs[:i] {
				if s, t := c.slots[v.Name], c.slots[w.Name]; overlaps(s.At, s.Bytes, t.At, t.Bytes) {
					c.say("inputs %q and %q overlap", w.Name, v.Name)
				}
			}
		}
	}
	for i, n := range g.Nodes {
		c.step(i, n)
	}
	for _, v := range g.Outputs {
		c.reads(v, "the end")
	}
	c.unused()
	return c.bad
}

// enter gives an input of a body its bytes.
func (c *checker) enter(v *graph.Value) {
	s, ok := c.slots[v.Name]
	if !ok {
		if !c.excepted[v.Name] {
			c.say("the plan has no place for input %q", v.Name)
		}
		return
	}
	c.seen++
	if size := byteSize(v.Type); size != s.Bytes {
		c.say("input %q is %s, which takes %d bytes, the plan says %d", v.Name, v.Type, size, s.Bytes)
	}
	c.take(s.At, s.Bytes, v)
}

// inner checks the plans of a node's subgraphs.
func (c *checker) inner(where string, n *graph.Node, w Space) {
	subs := n.Subgraphs()
	if len(w.Bodies) != len(subs) {
		c.say("%s has %d subgraphs, its workspace plans for %d", where, len(subs), len(w.Bodies))
		return
	}
	for i, b := range w.Bodies {
		p := &Plan{Schema: PlanSchema, Arena: w.Bytes, Align: c.p.Align, Steps: b.Steps, Values: b.Values, Workspace: b.Workspace, InPlace: b.InPlace, Outside: b.Outside}
		for _, err := range check(subs[i], p, true) {
			c.say("%s, subgraph %q: %w", where, subs[i].Name, err)
		}
	}
}

// checker replays the plan of one graph.
type checker struct {
	g        *graph.Graph
	p        *Plan
	body     bool // the graph is a subgraph
	slots    map[string]Slot
	spaces   map[int]Space
	excepted map[string]bool
	pairs    map[[2]string]bool // in place, as the plan says
	state    map[string]string  // output -> input that it is written over
	lost     map[string]bool    // inputs that were written over
	regions  []region           // what lies in the arena, by offset, disjoint
	seen     int                // slots met
	bad      []error
}

// region is a part of the arena with the values whose bytes it is; several if they are views of each other.
type region struct {
	low, high int64
	owners    []*graph.Value
}

func (c *checker) say(format string, args ...any) { c.bad = append(c.bad, fmt.Errorf(format, args...)) }

// read looks the plan over and indexes it.
func (c *checker) read() {
	p := c.p
	if p.Steps != len(c.g.Nodes) {
		c.say("the plan has %d steps, the graph %d nodes", p.Steps, len(c.g.Nodes))
	}
	for _, s := range p.Values {
		if _, ok := c.slots[s.Name]; ok {
			c.say("the plan places %q twice", s.Name)
		}
		c.slots[s.Name] = s
		c.bounds(fmt.Sprintf("value %q", s.Name), s.At, s.Bytes)
	}
	c.spaces = map[int]Space{}
	for _, s := range p.Workspace {
		if _, ok := c.spaces[s.Step]; ok || s.Step < 0 || s.Step >= len(c.g.Nodes) {
			c.say("the plan has a workspace for step %d, which does not exist or has one", s.Step)
		}
		c.spaces[s.Step] = s
		c.bounds(fmt.Sprintf("workspace of step %d", s.Step), s.At, s.Bytes)
	}
	for _, x := range p.InPlace {
		c.pairs[x] = true
	}
	c.lost = map[string]bool{}
	for _, x := range p.State {
		c.state[x[1]] = x[0]
	}
	for _, o := range p.Outside {
		c.excepted[o.Name] = true
	}
}

func (c *checker) bounds(what string, at, bytes int64) {
	if at < 0 || bytes < 0 || at > c.p.Arena || bytes > c.p.Arena-at {
		c.say("%s: bytes [%d, %d) are outside the arena of %d", what, at, at+bytes, c.p.Arena)
	}
	if c.p.Align > 1 && at%c.p.Align != 0 {
		c.say("%s: offset %d is no multiple of %d", what, at, c.p.Align)
	}
}

// step replays node n.
func (c *checker) step(i int, n *graph.Node) {
	where := fmt.Sprintf("step %d, node %s", i, n.Label())
	reads := slices.Clone(n.In)
	reads = append(reads, n.Captures()...)
	for _, v := range reads {
		if v != nil {
			c.reads(v, where)
		}
	}
	if w, ok := c.spaces[i]; ok {
		if len(n.Subgraphs()) == 0 {
			c.say("%s has a workspace but no subgraph", where)
		}
		c.inner(where, n, w)
		for _, v := range reads {
			if v == nil {
				continue
			}
			if s, ok := c.slots[v.Name]; ok && c.holder(v) && overlaps(s.At, s.Bytes, w.At, w.Bytes) {
				c.say("%s: its workspace overlaps its operand %q", where, v.Name)
			}
		}
		c.take(w.At, w.Bytes, nil)
	}
	for _, y := range n.Out {
		if y != nil {
			c.result(where, i, n, y)
		}
	}
	for j, y := range n.Out { // all results exist side by side
		if y == nil {
			continue
		}
		s, ok := c.slots[y.Name]
		if !ok {
			continue
		}
		if w, has := c.spaces[i]; has && overlaps(s.At, s.Bytes, w.At, w.Bytes) {
			c.say("%s: its workspace overlaps its result %q", where, y.Name)
		}
		for _, z := range n.Out[j+1:] {
			if z == nil {
				continue
			}
			if t, ok := c.slots[z.Name]; ok && overlaps(s.At, s.Bytes, t.At, t.Bytes) {
				c.say("%s: results %q and %q overlap", where, y.Name, z.Name)
			}
		}
	}
}

// holder reports whether v is something that the arena has to hold: what a node of the graph computes or, in a subgraph, an input.
func (c *checker) holder(v *graph.Value) bool {
	return v.Graph == c.g && (v.Def != nil || c.body && v.Init == nil)
}

// reads checks that v's bytes are v's.
func (c *checker) reads(v *graph.Value, where string) {
	if !c.holder(v) {
		if c.lost[v.Name] && v.Graph == c.g {
			c.say("%s reads input %q, which was written over", where, v.Name)
		}
		return
	}
	if base := c.elsewhere(v); base != nil {
		if c.lost[base.Name] {
			c.say("%s reads %q, a view of input %q, which was written over", where, v.Name, base.Name)
		}
		return
	}
	s, ok := c.slots[v.Name]
	if !ok || s.Bytes == 0 {
		return // excepted, or reported where it is made
	}
	k := c.find(s.At)
	if k < len(c.regions) && c.regions[k].low == s.At && c.regions[k].high == s.At+s.Bytes && slices.Contains(c.regions[k].owners, v) {
		return
	}
	var thieves []string
	for _, r := range c.regions {
		if r.low < s.At+s.Bytes && s.At < r.high {
			for _, o := range r.owners {
				thieves = append(thieves, fmt.Sprintf("%q", o.Name))
			}
		}
	}
	c.say("%s reads %q, whose bytes [%d, %d) were taken by %s", where, v.Name, s.At, s.At+s.Bytes, strings.Join(append(thieves, "others")[:1], ""))
}

// elsewhere returns the input or constant that v is, or is a view of and not placed; nil for what must lie in the arena.
func (c *checker) elsewhere(v *graph.Value) *graph.Value {
	for {
		if !c.holder(v) || v.Def != nil && len(v.Def.In) == 0 && op.KindOf(v.Def) == op.KindConstant {
			return v
		}
		if _, placed := c.slots[v.Name]; placed || c.excepted[v.Name] || c.state[v.Name] != "" {
			return nil
		}
		if v.Def == nil {
			return nil
		}
		if d := op.Of(v.Def); v.Index != 0 || !d.Has(op.View) || v.Def.Operand(0) == nil {
			return nil
		}
		v = v.Def.Operand(0)
	}
}

// result enters what node n makes.
func (c *checker) result(where string, i int, n *graph.Node, y *graph.Value) {
	if in, ok := c.state[y.Name]; ok {
		c.overInput(where, n, y, in)
		return
	}
	s, ok := c.slots[y.Name]
	if !ok {
		base := c.elsewhere(y)
		switch {
		case c.excepted[y.Name]:
		case base == nil:
			c.say("%s: the plan has no place for its result %q", where, y.Name)
		case base != y && y.IsOutput() && !c.body: // a subgraph's outputs are copied
			c.say("%s: output %q would be the caller's %q", where, y.Name, base.Name)
		}
		return
	}
	c.seen++
	if s.First != i {
		c.say("%s makes %q, the plan says step %d does", where, y.Name, s.First)
	}
	if size := byteSize(y.Type); size != s.Bytes {
		c.say("%s: %q is %s, which takes %d bytes, the plan says %d", where, y.Name, y.Type, size, s.Bytes)
	}
	if s.Bytes == 0 {
		return
	}
	if op.Of(n).Has(op.View) && y.Index == 0 {
		if x := n.Operand(0); x != nil && c.holder(x) {
			if t, ok := c.slots[x.Name]; ok && t.At == s.At && t.Bytes == s.Bytes {
				if k := c.find(s.At); k < len(c.regions) && slices.Contains(c.regions[k].owners, x) {
					c.regions[k].owners = append(c.regions[k].owners, y)
					return
				}
			}
		}
	}
	c.overOperands(where, n, y, s)
	c.take(s.At, s.Bytes, y)
}

// overOperands checks y against the operands that it is written over.
func (c *checker) overOperands(where string, n *graph.Node, y *graph.Value, s Slot) {
	for j, x := range n.In {
		if x == nil || !c.holder(x) {
			continue
		}
		t, ok := c.slots[x.Name]
		if !ok || !overlaps(t.At, t.Bytes, s.At, s.Bytes) {
			continue
		}
		declared := c.pairs[[2]string{x.Name, y.Name}]
		for _, w := range n.In { // one view of the operand may stand for another
			if w != nil {
				if u, ok := c.slots[w.Name]; ok && u.At == t.At && u.Bytes == t.Bytes {
					declared = declared || c.pairs[[2]string{w.Name, y.Name}]
				}
			}
		}
		switch {
		case !declared:
			c.say("%s: result %q overlaps operand %q, which the plan does not mention", where, y.Name, x.Name)
		case t.At != s.At || t.Bytes != s.Bytes || y.Index != 0:
			c.say("%s: result %q is shifted against operand %q", where, y.Name, x.Name)
		case !writesOver(n, j, y):
			c.say("%s: %s does not let result %q be written over operand %q", where, n.Op, y.Name, x.Name)
		}
	}
	for _, x := range n.Captures() {
		if t, ok := c.slots[x.Name]; ok && c.holder(x) && overlaps(t.At, t.Bytes, s.At, s.Bytes) {
			c.say("%s: result %q overlaps %q, which a subgraph reads", where, y.Name, x.Name)
		}
	}
}

// writesOver reports whether the operator computes element i of result y from no other element of operand j than i, so that one
// may be written over the other.
func writesOver(n *graph.Node, j int, y *graph.Value) bool {
	x := n.In[j]
	if n.Is("ScatterND") || n.Is("ScatterElements") {
		return j == 0
	}
	if x.Type.Elem.Bits() != y.Type.Elem.Bits() || !y.Type.Shape.Size().Equal(x.Type.Shape.Size()) {
		return false
	}
	switch {
	case op.Of(n).Has(op.Elementwise):
		return true
	case n.Is("Dropout"):
		return j == 0 && n.Operand(2) == nil
	case n.Is("BatchNormalization"):
		return j == 0 && n.Int("training_mode", 0) == 0
	}
	return j == 0 && (n.Is("QuantizeLinear") || n.Is("DequantizeLinear"))
}

// overInput checks an optimizer's result that takes the place of an input.
func (c *checker) overInput(where string, n *graph.Node, y *graph.Value, in string) {
	k := slices.IndexFunc(n.In, func(x *graph.Value) bool { return x != nil && x.Name == in })
	if k < 0 || n.In[k].Def != nil || n.In[k].Graph != c.g || !n.In[k].IsInput() || n.In[k].IsOutput() {
		c.say("%s: %q is to be written over %q, which is no input that it reads", where, y.Name, in)
		return
	}
	if y.Name != in+"_next" || !writesOver(n, k, y) {
		c.say("%s: %q cannot be written over input %q", where, y.Name, in)
	}
	if c.lost[in] {
		c.say("%s: input %q is written over twice", where, in)
	}
	c.lost[in] = true
	c.seen++
}

// take gives bytes to y (nil: to a workspace): whoever had some of them has lost them.
func (c *checker) take(at, bytes int64, y *graph.Value) {
	if bytes == 0 {
		return
	}
	k := c.find(at)
	end := k
	for end < len(c.regions) && c.regions[end].low < at+bytes {
		end++
	}
	c.regions = slices.Delete(c.regions, k, end)
	if y != nil {
		c.regions = slices.Insert(c.regions, k, region{at, at + bytes, []*graph.Value{y}})
	}
}

// find returns the first region that ends behind offset at.
func (c *checker) find(at int64) int {
	return sort.Search(len(c.regions), func(k int) bool { return c.regions[k].high > at })
}

// unused reports what the plan has and the graph has not.
func (c *checker) unused() {
	if want := len(c.p.Values) + len(c.p.State); c.seen != want {
		c.say("the plan has places for %d values, the graph computes %d of them", want, c.seen)
	}
}

func overlaps(at, n, at2, n2 int64) bool { return at < at2+n2 && at2 < at+n && n > 0 && n2 > 0 }

// byteSize returns the bytes of a tensor's elements as they lie in memory, -1 where that is not known.
func byteSize(t graph.Type) int64 {
	dims, ok := t.Shape.Ints()
	if !ok || !t.IsTensor() || t.Elem.Bits() == 0 {
		return -1
	}
	return (&graph.Tensor{Elem: t.Elem, Dims: dims}).ByteLen()
}
