package graph

import "slices"

// Meta is an ordered list of string pairs, the metadata_props of the standard. Keys written by
// gradtool begin with "gradtool.".
type Meta []MetaEntry

// MetaEntry is one pair of a [Meta].
type MetaEntry struct{ Key, Value string }

// Metadata keys that stages leave on nodes and that later stages and drawings read.
const (
	MetaRole = "gradtool.role" // one of the Role values
	MetaFrom = "gradtool.from" // name of the node that this one stems from
	MetaLoop = "gradtool.loop" // of Loops that were one Loop, or reverse such: one of the Loop values
	// MetaCluster and MetaRule say to which cluster of fuse a node belongs, and what that is; MetaCluster is an id like c1.
	MetaCluster = "gradtool.cluster"
	MetaRule    = "gradtool.cluster.rule"
	// MetaBarrier is on Reshapes to the operand's own shape, worked out from data so that nobody knows it before the data is
	// there: what reads the result is to wait. A scalar gets one axis. On a ConstantOfShape it says that its operand is the sum
	// of the sizes and a zero of that kind. Nothing may be put in a barrier's place.
	MetaBarrier = "gradtool.barrier"
)

// Values of [MetaLoop].
const (
	LoopOuter = "segments" // runs over the segments of the iterations
	LoopInner = "segment"  // runs over the iterations of a segment
)

// Roles of nodes in a training graph, the values of [MetaRole]. A node without one is forward.
const (
	RoleForward   = "forward"
	RoleBackward  = "backward"
	RoleTangent   = "tangent"
	RoleLoss      = "loss"
	RoleOptimizer = "optimizer"
	RoleRecompute = "recompute"
)

// Get returns the value of key, "" without one.
func (m Meta) Get(key string) string {
	for _, e := range m {
		if e.Key == key {
			return e.Value
		}
	}
	return ""
}

// Set gives key the value, in place or at the end.
func (m *Meta) Set(key, value string) {
	for i := range *m {
		if (*m)[i].Key == key {
			(*m)[i].Value = value
			return
		}
	}
	*m = append(*m, MetaEntry{key, value})
}

// Delete removes key.
func (m *Meta) Delete(key string) {
	*m = slices.DeleteFunc(*m, func(e MetaEntry) bool { return e.Key == key })
}
