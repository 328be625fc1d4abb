package wire

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// A segment is a piece of output: a Ref, or literal bytes. While planning, the
// literal bytes skel[lo:hi] are given by lo < hi.
type segment struct {
	ref    Ref
	lit    []byte
	lo, hi int
}

// A planner turns a skeleton back into the whole: it resolves the marks,
// computes the lengths anew, and lists the pieces to write.
type planner struct {
	store *Store
	skel  []byte
	deep  bool // look at every message, not only at those that can hold tensors
	learn bool // take the hashes of messages with an origin instead of comparing
	seen  int  // marks met
	segs  []segment
}

// message appends the segments of skel[lo:hi] and returns their size and
// whether they differ from the skeleton's bytes.
func (p *planner) message(m *message, lo, hi, depth int) (size int64, changed bool, err error) {
	if depth > maxDepth {
		return 0, false, fmt.Errorf("messages are nested more than %d deep", maxDepth)
	}
	spans, from, err := p.marks(lo, hi)
	if err != nil {
		return 0, false, err
	}
	if from != nil && p.original(from, lo, hi) {
		p.segs = append(p.segs, segment{ref: from.ref})
		return from.ref.n, true, nil
	}
	slices.SortFunc(spans, func(a, b Span) int { return int(a.Field - b.Field) })
	start := len(p.segs)
	for pos := lo; pos < hi; {
		e, _ := next(p.skel, pos, hi)
		pos = e.end
		f := m.field(e.num)
		for len(spans) > 0 && (f.name == "" || e.num > spans[0].Field) {
			size += p.span(spans[0])
			spans = spans[1:]
		}
		if len(spans) > 0 && e.num == spans[0].Field {
			return 0, false, fmt.Errorf("a tensor has both a value and a span for field %s", f.name)
		}
		if _, isMark, _ := p.store.mark(e.num, e.typ, p.skel[e.val:e.end]); isMark {
			changed = true
			continue
		}
		if e.typ != protowire.BytesType || f.child == nil || !(f.child.reaches || p.deep) {
			p.literal(e.start, e.end)
			size += int64(e.end - e.start)
			continue
		}
		n, differs, err := p.child(f, e, depth)
		if err != nil {
			return 0, false, err
		}
		size += n
		changed = changed || differs
	}
	for _, sp := range spans {
		size += p.span(sp)
	}
	if !changed {
		p.segs = p.segs[:start]
		p.literal(lo, hi)
	}
	return size, changed, nil
}

// child appends the field e, a message, behind its tag and new length.
func (p *planner) child(f field, e element, depth int) (size int64, changed bool, err error) {
	before, end := len(p.segs), 0
	if before > 0 {
		end = p.segs[before-1].hi
	}
	head := e.start + tagSize(p.skel[e.start:])
	p.literal(e.start, head)
	at := len(p.segs)
	p.segs = append(p.segs, segment{})
	n, changed, err := p.message(f.child, e.val, e.end, depth+1)
	if err != nil {
		return 0, false, fmt.Errorf("%s: %w", f.name, err)
	}
	if !changed {
		if p.segs = p.segs[:before]; before > 0 {
			p.segs[before-1].hi = end
		}
		p.literal(e.start, e.end)
		return int64(e.end - e.start), false, nil
	}
	p.segs[at].lit = protowire.AppendVarint(nil, uint64(n))
	return int64(head-e.start+len(p.segs[at].lit)) + n, true, nil
}

// marks is the span marks of a message and the origin, nil if there is not
// exactly one. It also checks the syntax of the fields.
func (p *planner) marks(lo, hi int) (spans []Span, from *origin, err error) {
	origins := 0
	for pos := lo; pos < hi; {
		e, reason := next(p.skel, pos, hi)
		if reason != "" {
			return nil, nil, &SyntaxError{"output", int64(pos), "", reason}
		}
		pos = e.end
		mk, ok, err := p.store.mark(e.num, e.typ, p.skel[e.val:e.end])
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			continue
		}
		p.seen++
		switch mk.kind {
		case spanMark:
			sp := p.store.spans[mk.index]
			if slices.ContainsFunc(spans, func(o Span) bool { return o.Field == sp.Field }) {
				return nil, nil, fmt.Errorf("a tensor has two spans for field %d", sp.Field)
			}
			spans = append(spans, sp)
		case originMark:
			from = &p.store.origins[mk.index]
			origins++
		}
	}
	if origins > 1 {
		from = nil
	}
	return spans, from, nil
}

// original says that skel[lo:hi] is what the message at from was decoded to.
func (p *planner) original(from *origin, lo, hi int) bool {
	hash := sha256.Sum256(p.skel[lo:hi])
	if p.learn {
		from.hash = hash
		return false
	}
	if hash != from.hash {
		return false
	}
	p.seen += bytes.Count(p.skel[lo:hi], []byte(magic)) - 1
	return true
}

// literal appends skel[lo:hi], to the last segment if that ends at lo.
func (p *planner) literal(lo, hi int) {
	if n := len(p.segs); n > 0 && p.segs[n-1].lo < p.segs[n-1].hi && p.segs[n-1].hi == lo {
		p.segs[n-1].hi = hi
	} else if lo < hi {
		p.segs = append(p.segs, segment{lo: lo, hi: hi})
	}
}

func (p *planner) span(sp Span) int64 {
	head := protowire.AppendTag(nil, sp.Field, protowire.BytesType)
	head = protowire.AppendVarint(head, uint64(sp.Ref.n))
	p.segs = append(p.segs, segment{lit: head}, segment{ref: sp.Ref})
	return int64(len(head)) + sp.Ref.n
}

// plan lists the pieces of the output that the skeleton stands for.
func (s *Store) plan(m *message, skel []byte, learn bool) ([]segment, int64, error) {
	p := &planner{store: s, skel: skel, learn: learn, deep: learn}
	size, _, err := p.message(m, 0, len(skel), 0)
	if err == nil && !p.deep && bytes.Count(skel, []byte(magic)) != p.seen {
		// Origins elsewhere, or a mark that must be reported.
		p = &planner{store: s, skel: skel, deep: true}
		size, _, err = p.message(m, 0, len(skel), 0)
	}
	for i, sg := range p.segs {
		if sg.lo < sg.hi {
			p.segs[i].lit = skel[sg.lo:sg.hi]
		}
	}
	return p.segs, size, err
}

// same says that the segments are the bytes of src. A piece is only looked at
// where it is not the same place of src by itself.
func same(segs []segment, src *Source) bool {
	pos := 0
	for _, sg := range segs {
		if sg.ref.n > 0 {
			if sg.ref.src != src || sg.ref.off != int64(pos) {
				return false
			}
			pos += int(sg.ref.n)
			continue
		}
		if !bytes.HasPrefix(src.data[pos:], sg.lit) {
			return false
		}
		pos += len(sg.lit)
	}
	return pos == len(src.data)
}

// runs joins segments that lie in a row in one source, with the few literal
// bytes between them, so that a part of the output that is a part of the input
// is copied as one piece.
func runs(segs []segment) []segment {
	out := segs[:0:0]
	for _, sg := range segs {
		if n := len(out); n > 0 && out[n-1].ref.src != nil {
			r := &out[n-1].ref
			end := r.off + r.n
			if sg.ref.n > 0 && sg.ref.src == r.src && sg.ref.off == end {
				r.n += sg.ref.n
				continue
			}
			if sg.ref.n == 0 && !r.src.done && bytes.HasPrefix(r.src.data[end:], sg.lit) {
				r.n += int64(len(sg.lit))
				continue
			}
		}
		out = append(out, sg)
	}
	return out
}
