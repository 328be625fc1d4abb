package recompute

import (
	"gradtool/graph"
	"gradtool/graph/op"
)

// MetaRemat is the key of a node's metadata in which a user says whether its results may be computed again: "keep" that
// they may not, "again" that they may although the operator is random or runs subgraphs.
const (
	MetaRemat = "gradtool.remat"
	markKeep  = "keep"
	markAgain = "again"
)

// Policy says which results are never computed again.
type Policy struct {
	Dots bool                   // those of matrix products and convolutions
	Keep func(*graph.Node) bool // those that a user names; may be nil
}

// keeps reports whether the results of n may not be computed again. A mark on the node decides; without one random operators
// are kept unless a seed pins what they draw, and so are nodes with subgraphs, which may stand for any work, and
// operators that the table does not know.
func (p Policy) keeps(n *graph.Node) bool {
	switch n.Meta.Get(MetaRemat) {
	case markKeep:
		return true
	case markAgain:
		return false
	}
	d := op.Of(n)
	switch {
	case d == nil, len(n.Subgraphs()) > 0:
		return true
	case d.Has(op.Random) && n.Attr("seed") == nil && op.KindOf(n) == op.KindOpaque && !dropsNothing(n):
		return true
	case p.Dots && op.KindOf(n) == op.KindContract:
		return true
	}
	return p.Keep != nil && p.Keep(n)
}

// dropsNothing reports whether n is a Dropout with the constant ratio 0.
func dropsNothing(n *graph.Node) bool {
	v := n.Operand(1)
	if !n.Is("Dropout") || v == nil {
		return false
	}
	t := v.Init
	if t == nil && v.Def != nil && v.Def.Is("Constant") && v.Def.Attr("value") != nil {
		t = v.Def.Attr("value").T
	}
	if t == nil || v.IsInput() {
		return false
	}
	a, err := op.FromTensor(t, false)
	return err == nil && a.IsFloat() && a.Len() == 1 && a.Float(0) == 0
}
