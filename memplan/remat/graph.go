// Package remat plans rematerialization: given a directed acyclic graph of computations, each with a cost and with a
// result that takes memory while it is kept, it finds a sequence in which results may be dropped and computed again, so
// that the memory in use never exceeds a budget and the total cost is small.
//
// The model is that of Checkmate (Jain et al., "Checkmate: Breaking the Memory Wall with Optimal Tensor
// Rematerialization", MLSys 2020) and Moccasin (Bartan et al., "Moccasin: Efficient Tensor Rematerialization for Neural
// Networks", ICML 2023): at each step of the sequence memory holds the result that is being made and every earlier
// result that this or a later step still reads before it is made anew. Every node is computed at least once.
//
// Effort is counted in steps of work, never in seconds, so that equal input gives equal plans on every machine.
package remat

import (
	"errors"
	"fmt"
)

// Graph is a problem. Nodes are numbers from 0; Parents[v] are those whose results v reads, without repetitions.
type Graph struct {
	IDs     []string // as a file has them, in JSON; may be nil
	Names   []string
	Memory  []int64
	Cost    []int64
	Parents [][]int32
	Order   []int32   // an order in which all can be computed, the one that plans are compared with
	Takes   [][]int32 // those of Parents whose memory the result may take over if this is their last reader; may be nil
	Once    []bool    // nodes that must not be computed again; may be nil
	Extra   []int64   // memory that a node needs while it is computed, beside its result; may be nil
}

// takes returns the operands whose memory v's result may take over.
func (g *Graph) takes(v int32) []int32 {
	if g.Takes == nil {
		return nil
	}
	return g.Takes[v]
}

// extra returns the memory that v needs beside its result while it is computed.
func (g *Graph) extra(v int32) int64 {
	if g.Extra == nil {
		return 0
	}
	return g.Extra[v]
}

// once reports whether v must not be computed again.
func (g *Graph) once(v int32) bool { return g.Once != nil && g.Once[v] }

// saves returns how much less a step needs at best because its result takes over an operand's memory.
func (g *Graph) saves(v int32) int64 {
	var most int64
	for _, p := range g.takes(v) {
		most = max(most, min(g.Memory[p], g.Memory[v]))
	}
	return most
}

// Bounds of the numbers in a graph: sums over sequences with many recomputations stay within an int64.
const (
	limit    = 1 << 50 // memory and cost of a node
	sumLimit = 1 << 55 // of all nodes
)

// Validate reports everything that is wrong with the graph.
func (g *Graph) Validate() error {
	n := len(g.Names)
	if len(g.Memory) != n || len(g.Cost) != n || len(g.Parents) != n {
		return fmt.Errorf("graph has %d names, %d sizes, %d costs and %d lists of parents", n, len(g.Memory), len(g.Cost), len(g.Parents))
	}
	if g.Takes != nil && len(g.Takes) != n || g.Once != nil && len(g.Once) != n || g.Extra != nil && len(g.Extra) != n {
		return fmt.Errorf("graph has %d names, %d lists of operands to take over, %d marks of what is computed once and %d extra sizes",
			n, len(g.Takes), len(g.Once), len(g.Extra))
	}
	if n > 1<<20 {
		return fmt.Errorf("graph has %d nodes, more than %d", n, 1<<20)
	}
	var bad []error
	for v := range n {
		if g.Memory[v] < 0 || g.Memory[v] > limit {
			bad = append(bad, fmt.Errorf("node %q: memory %d, want 0 to %d", g.Names[v], g.Memory[v], int64(limit)))
		}
		if x := g.extra(int32(v)); x < 0 || x > limit {
			bad = append(bad, fmt.Errorf("node %q: extra memory %d, want 0 to %d", g.Names[v], x, int64(limit)))
		}
		if g.Cost[v] < 0 || g.Cost[v] > limit {
			bad = append(bad, fmt.Errorf("node %q: cost %d, want 0 to %d", g.Names[v], g.Cost[v], int64(limit)))
		}
		seen := map[int32]bool{}
		for _, p := range g.Parents[v] {
			switch {
			case p < 0 || int(p) >= n:
				bad = append(bad, fmt.Errorf("node %q reads node %d of %d", g.Names[v], p, n))
			case seen[p]:
				bad = append(bad, fmt.Errorf("node %q reads %q twice", g.Names[v], g.Names[p]))
			}
			seen[p] = true
		}
		for _, p := range g.takes(int32(v)) {
			if !seen[p] {
				bad = append(bad, fmt.Errorf("node %q takes over the memory of node %d, which it does not read", g.Names[v], p))
			}
		}
	}
	if len(bad) > 0 {
		return errors.Join(bad...)
	}
	var memory, cost int64
	for v := range n {
		if memory, cost = memory+g.Memory[v]+g.extra(int32(v)), cost+g.Cost[v]; memory > sumLimit || cost > sumLimit {
			return fmt.Errorf("all memory or all cost is more than %d", int64(sumLimit))
		}
	}
	if len(g.Order) != n {
		return fmt.Errorf("order has %d of %d nodes", len(g.Order), n)
	}
	done := make([]bool, n)
	for _, v := range g.Order {
		if v < 0 || int(v) >= n || done[v] {
			return fmt.Errorf("order names node %d, which does not exist or came before", v)
		}
		for _, p := range g.Parents[v] {
			if !done[p] {
				return fmt.Errorf("order has %q before %q, which it reads", g.Names[v], g.Names[p])
			}
		}
		done[v] = true
	}
	return nil
}

// sort sets Order to the one that the Kahn algorithm gives by generations: all nodes without parents, then all that have
// none left, each generation in the order in which its nodes became free. It fails on a cycle.
func (g *Graph) sort() error {
	children := g.children()
	waits := make([]int, len(g.Names))
	var now []int32
	for v := range g.Parents {
		if waits[v] = len(g.Parents[v]); waits[v] == 0 {
			now = append(now, int32(v))
		}
	}
	g.Order = nil
	for len(now) > 0 {
		g.Order = append(g.Order, now...)
		var next []int32
		for _, v := range now {
			for _, c := range children[v] {
				if waits[c]--; waits[c] == 0 {
					next = append(next, c)
				}
			}
		}
		now = next
	}
	for v, w := range waits {
		if w > 0 {
			return fmt.Errorf("node %q is in a cycle, or reads a node that is", g.Names[v])
		}
	}
	return nil
}

// children returns the readers of each node.
func (g *Graph) children() [][]int32 {
	list := make([][]int32, len(g.Names))
	for v, parents := range g.Parents {
		for _, p := range parents {
			list[p] = append(list[p], int32(v))
		}
	}
	return list
}

// BaseCost is the cost of computing every node once: no plan is cheaper.
func (g *Graph) BaseCost() int64 {
	var sum int64
	for _, c := range g.Cost {
		sum += c
	}
	return sum
}
