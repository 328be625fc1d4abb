package memplan

import (
	"fmt"
	"slices"

	"gradtool/memplan/offset"
)

// Memory is one of the memories that a plan puts values in.
type Memory struct {
	Name     string `json:"name"`
	Capacity int64  `json:"capacity_bytes"` // 0: as many as are wanted
	Bytes    int64  `json:"bytes"`          // what the plan needs of it
	Moved    int64  `json:"moved_bytes"`    // what nodes read and write there

	base int64 // where it begins, with memories one behind the other
}

// Spread assigns places to the buffers of l in several memories, in the order of preference: what moves the most bytes for those that it
// holds is in the first. In the plan returned, offsets count through all memories, one behind the other; Arena is their sum.
func (l *Live) Spread(memories []offset.Memory, effort int64) (*Placed, error) {
	p := &Placed{Live: l, Offset: map[*Buffer]int64{}, Method: "several memories"}
	list, which := l.offsetBuffers()
	moved := l.moved()
	for i, b := range which {
		cost := moved[b]
		list[i].Spill = &cost
	}
	rounded := slices.Clone(memories)
	for k := range rounded { // no offset is beyond the last multiple of Align
		if rounded[k].Capacity -= rounded[k].Capacity % Align; rounded[k].Capacity == 0 && memories[k].Capacity > 0 {
			return nil, fmt.Errorf("memory %q has %d bytes, fewer than the %d that places are apart", memories[k].Name, memories[k].Capacity, Align)
		}
	}
	s, err := offset.SpreadOver(list, rounded, effort)
	if err != nil {
		return nil, err
	}
	if err := offset.CheckSpread(list, rounded, s); err != nil {
		return nil, fmt.Errorf("the plan is wrong, please report this: %w", err)
	}
	p.Spilled, p.SpilledBound = s.Cost, s.Bound
	for k, m := range memories {
		p.Memories = append(p.Memories, Memory{m.Name, m.Capacity, s.Heights[k], 0, p.Arena})
		p.Arena += s.Heights[k]
	}
	for i, b := range which {
		m := &p.Memories[s.Memory[i]]
		p.Offset[b] = m.base + s.Offsets[i]
		m.Moved += moved[b]
	}
	p.Bound = offset.Bound(list)
	return p, nil
}

// moved returns the bytes that nodes write to and read from each buffer. Views move nothing; what a node with subgraphs does in its workspace is
// taken for one pass over it.
func (l *Live) moved() map[*Buffer]int64 {
	moved := map[*Buffer]int64{}
	for _, b := range l.Buffers {
		if b.Node != nil {
			moved[b] = 2 * b.Bytes
		}
	}
	for _, n := range l.Order {
		for _, v := range n.Out {
			if v != nil && viewed(v) == nil && l.Of[v] != nil {
				moved[l.Of[v]] += max(byteSize(v.Type), 0)
			}
		}
		if y := n.Result(0); y != nil && viewed(y) != nil {
			continue
		}
		for _, v := range operands(n) {
			if v != nil && l.Of[v] != nil {
				moved[l.Of[v]] += max(byteSize(v.Type), 0)
			}
		}
	}
	return moved
}

// locate returns the memory of an offset that counts through all of them, and the offset in it. Without several memories there is one
// that has no name.
func (p *Placed) locate(at int64) (memory string, in int64) {
	for k := len(p.Memories) - 1; k >= 0; k-- {
		if m := &p.Memories[k]; at >= m.base && m.Bytes > 0 {
			return m.Name, at - m.base
		}
	}
	if len(p.Memories) > 0 { // of no bytes at all
		return p.Memories[0].Name, at
	}
	return "", at
}

// flat returns the plan with its memories one behind the other in one arena. Places outside of their memory are errors.
func (p *Plan) flat() (*Plan, error) {
	if len(p.Memories) == 0 {
		return p, nil
	}
	base, room := map[string]int64{}, map[string]int64{}
	total := int64(0)
	for _, m := range p.Memories {
		if _, twice := base[m.Name]; twice || m.Name == "" {
			return nil, fmt.Errorf("the plan has a memory with the name %q, which is empty or comes twice", m.Name)
		}
		if m.Bytes < 0 || m.Bytes > p.Arena-total || m.Capacity > 0 && m.Bytes > m.Capacity {
			return nil, fmt.Errorf("the plan has %d bytes in memory %q, which has %d; %d bytes in all", m.Bytes, m.Name, m.Capacity, p.Arena)
		}
		base[m.Name], room[m.Name] = total, m.Bytes
		total += m.Bytes
	}
	if total != p.Arena {
		return nil, fmt.Errorf("the plan has memories of %d bytes, but says %d", total, p.Arena)
	}
	move := func(what, memory string, at *int64, bytes int64) error {
		n, ok := room[memory]
		if !ok {
			return fmt.Errorf("the plan puts %s in memory %q, which it does not have", what, memory)
		}
		if *at < 0 || bytes < 0 || *at > n || bytes > n-*at {
			return fmt.Errorf("the plan puts %s, of %d bytes, at %d, in %d bytes of memory %q", what, bytes, *at, n, memory)
		}
		*at += base[memory]
		return nil
	}
	q := *p
	q.Memories, q.Values, q.Workspace = nil, slices.Clone(p.Values), slices.Clone(p.Workspace)
	for i := range q.Values {
		s := &q.Values[i]
		if err := move(fmt.Sprintf("value %q", s.Name), s.Memory, &s.At, s.Bytes); err != nil {
			return nil, err
		}
	}
	for i := range q.Workspace {
		s := &q.Workspace[i]
		if err := move(fmt.Sprintf("the workspace of %q", s.Result), s.Memory, &s.At, s.Bytes); err != nil {
			return nil, err
		}
	}
	return &q, nil
}
