package memplan

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"

	"gradtool/graph"
	"gradtool/graph/op"
)

// Poison fills bytes of an arena that hold no value.
const Poison = 0xAA

// Arena executes a plan: it is the memory of an evaluation (a Memory of package interp) and holds the planned values
// in one block of exactly the planned size (several memories lie one behind the other), in the widths of their element types. Bytes between the lives of values are
// filled with [Poison]. Whatever does not go as planned is an error: a size, or a value whose bytes another one took before it was
// read. Values that the plan does not place, such as those inside of an operator that was brought to its newest form, stay
// with the machine.
type Arena struct {
	plan   *Plan
	bytes  []byte
	slots  map[*graph.Value]Slot // with offsets from the beginning of the block
	spaces map[*graph.Node]Space
	held   map[*graph.Value]header
	lives  []life // what lies in the arena, by offset, disjoint
	Stored int    // values that were put in the arena
	Beside int    // values that were computed but had no place, without views and constants
}

// header is what of a value does not lie in the arena.
type header struct {
	elem  graph.DataType
	shape []int
	slot  Slot
}

// life is a part of the arena and the values, views of each other, whose bytes it is.
type life struct {
	low, high int64
	owners    []*graph.Value
}

// NewArena returns an arena for one run of g under the plan. It fails if the plan is not for the values of g, as far as their types
// tell.
func NewArena(p *Plan, g *graph.Graph) (*Arena, error) {
	p, err := p.flat()
	if err != nil {
		return nil, err
	}
	if err := p.fits(g); err != nil {
		return nil, err
	}
	a := &Arena{plan: p, bytes: bytes.Repeat([]byte{Poison}, int(p.Arena)), slots: map[*graph.Value]Slot{}, spaces: map[*graph.Node]Space{}, held: map[*graph.Value]header{}}
	a.enter(g, 0, p.Values, p.Workspace)
	return a, nil
}

// enter notes the places of what g computes, whose plan counts offsets from base.
func (a *Arena) enter(g *graph.Graph, base int64, values []Slot, spaces []Space) {
	slots := map[string]Slot{}
	for _, s := range values {
		s.At += base
		slots[s.Name] = s
	}
	bySpace := map[string]Space{}
	for _, s := range spaces {
		s.At += base
		bySpace[s.Result] = s
	}
	for v := range g.Values() {
		if s, ok := slots[v.Name]; ok {
			a.slots[v] = s
		}
	}
	for _, n := range g.Nodes {
		s, ok := bySpace[firstResult(n)]
		if !ok {
			continue
		}
		a.spaces[n] = s
		subs := n.Subgraphs()
		for i, b := range s.Bodies {
			if i < len(subs) {
				a.enter(subs[i], s.At, b.Values, b.Workspace)
			}
		}
	}
}

// fits reports values that g does not compute or that have other sizes, places outside of the arena, and an arena that is
// larger than all values side by side.
func (p *Plan) fits(g *graph.Graph) error {
	all, err := fit(g, p.Values, p.Workspace, p.Arena)
	if err == nil && (p.Arena < 0 || p.Arena > all) {
		err = fmt.Errorf("the plan has an arena of %d bytes for %d bytes of values", p.Arena, all)
	}
	return err
}

// fit is fits for a part of a plan that has size bytes. It returns the bytes of all values side by side.
func fit(g *graph.Graph, values []Slot, spaces []Space, size int64) (all int64, err error) {
	types := map[string]graph.Type{}
	for v := range g.Values() {
		types[v.Name] = v.Type
	}
	var bad []error
	room := func(what string, at, n int64) {
		if at < 0 || n < 0 || at > size || n > size-at || n > math.MaxInt64/4-all {
			bad = append(bad, fmt.Errorf("the plan puts %s, of %d bytes, at %d, in %d bytes", what, n, at, size))
			return
		}
		all += (n + Align - 1) / Align * Align
	}
	for _, s := range values {
		t, ok := types[s.Name]
		if n := byteSize(t); !ok {
			bad = append(bad, fmt.Errorf("the plan has a place for %q, which nothing computes", s.Name))
		} else if n >= 0 && n != s.Bytes {
			bad = append(bad, fmt.Errorf("the plan has %d bytes for %q, which is %s", s.Bytes, s.Name, t))
		}
		room(fmt.Sprintf("value %q", s.Name), s.At, s.Bytes)
	}
	for _, s := range spaces {
		room("the workspace of "+strconv.Quote(s.Result), s.At, s.Bytes)
		for _, n := range g.Nodes {
			if firstResult(n) != s.Result {
				continue
			}
			for i, b := range n.Subgraphs() {
				if i < len(s.Bodies) {
					if _, err := fit(b, s.Bodies[i].Values, s.Bodies[i].Workspace, s.Bytes); err != nil {
						bad = append(bad, err)
					}
				}
			}
		}
	}
	return all, errors.Join(bad...)
}

// Size returns the size of the block.
func (a *Arena) Size() int { return len(a.bytes) }

// Begin makes room for the node's workspace.
func (a *Arena) Begin(n *graph.Node) error {
	if s, ok := a.spaces[n]; ok {
		a.take(s.At, s.Bytes)
		a.poison(s.At, s.At+s.Bytes)
	}
	return nil
}

// Put writes a value to its place.
func (a *Arena) Put(v *graph.Value, x *op.Array) (bool, error) {
	s, ok := a.slots[v]
	if !ok {
		if v.Def != nil && !constant(v) && viewed(v) == nil {
			a.Beside++
		}
		return false, nil
	}
	raw, err := encode(x)
	if err != nil {
		return false, fmt.Errorf("value %q: %w", v.Name, err)
	}
	if int64(len(raw)) != s.Bytes {
		return false, fmt.Errorf("value %q is %s, which takes %d bytes; the plan has %d for it", v.Name, x.Type(), len(raw), s.Bytes)
	}
	a.Stored++
	a.held[v] = header{x.Elem, slices.Clone(x.Shape), s}
	if s.Bytes == 0 {
		return true, nil
	}
	if base := viewed(v); base != nil {
		if l := a.life(base); l != nil && l.low == s.At && l.high == s.At+s.Bytes {
			if !bytes.Equal(a.bytes[l.low:l.high], raw) {
				return false, fmt.Errorf("value %q shares the bytes of %q, but differs", v.Name, base.Name)
			}
			l.owners = append(l.owners, v)
			return true, nil
		}
	}
	k := a.take(s.At, s.Bytes)
	a.lives = slices.Insert(a.lives, k, life{s.At, s.At + s.Bytes, []*graph.Value{v}})
	copy(a.bytes[s.At:], raw)
	return true, nil
}

// Get reads a value from its place.
func (a *Arena) Get(v *graph.Value) (*op.Array, error) {
	h, ok := a.held[v]
	if !ok {
		return nil, fmt.Errorf("value %q is not in the arena", v.Name)
	}
	if h.slot.Bytes > 0 && a.life(v) == nil {
		return nil, fmt.Errorf("value %q: the plan gave its bytes away before it was read", v.Name)
	}
	return decode(h.elem, h.shape, a.bytes[h.slot.At:h.slot.At+h.slot.Bytes])
}

// Drop ends a value's life. Its bytes are poisoned if they are nobody else's.
func (a *Arena) Drop(v *graph.Value) {
	if l := a.life(v); l != nil {
		if l.owners = slices.DeleteFunc(l.owners, func(o *graph.Value) bool { return o == v }); len(l.owners) == 0 {
			a.poison(l.low, l.high)
			k := a.find(l.low)
			a.lives = slices.Delete(a.lives, k, k+1)
		}
	}
	delete(a.held, v)
}

// life returns the part of the arena that v owns, nil if it owns none.
func (a *Arena) life(v *graph.Value) *life {
	h, ok := a.held[v]
	if !ok {
		return nil
	}
	k := a.find(h.slot.At)
	if k == len(a.lives) || a.lives[k].low != h.slot.At || !slices.Contains(a.lives[k].owners, v) {
		return nil
	}
	return &a.lives[k]
}

// take ends all lives in a part of the arena, poisons what they had, and returns where a life there is to be inserted.
func (a *Arena) take(at, n int64) int {
	k := a.find(at)
	end := k
	for ; end < len(a.lives) && a.lives[end].low < at+n; end++ {
		a.poison(a.lives[end].low, a.lives[end].high)
	}
	a.lives = slices.Delete(a.lives, k, end)
	return k
}

// find returns the first life that ends behind offset at.
func (a *Arena) find(at int64) int {
	return sort.Search(len(a.lives), func(k int) bool { return a.lives[k].high > at })
}

func (a *Arena) poison(low, high int64) {
	for i := low; i < high; i++ {
		a.bytes[i] = Poison
	}
}

// encode returns the elements of x as they lie in memory.
func encode(x *op.Array) ([]byte, error) {
	if !x.IsTensor() || x.Str != nil {
		return nil, fmt.Errorf("%s does not fit an arena", x.Type())
	}
	if x.Elem == graph.Float && x.F32 != nil {
		raw := make([]byte, 4*len(x.F32))
		for i, f := range x.F32 {
			binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(f))
		}
		return raw, nil
	}
	return x.Tensor().Data.Bytes()
}

// decode is the inverse of encode.
func decode(elem graph.DataType, shape []int, raw []byte) (*op.Array, error) {
	t := &graph.Tensor{Elem: elem, Data: graph.Bytes(raw)}
	for _, d := range shape {
		t.Dims = append(t.Dims, int64(d))
	}
	return op.FromTensor(t, false)
}
