package remat

import "slices"

// segments returns sequences in which the part of the graph's own order up to its peak is cut in pieces, of which only what
// crosses from one to the next is kept; a piece is computed again as a whole when something in it is read first (Chen, Xu,
// Zhang and Guestrin, "Training Deep Nets with Sublinear Memory Cost", 2016). Pieces hold about the same memory and begin
// where little crosses. Some sequences have pieces of pieces: a piece is first computed again up to its end with only what
// crosses between its parts kept, then each part as it is read, so that memory is that of the cube root of the length in
// a chain.
func segments(g *Graph) [][]int32 {
	u, err := Simulate(g, g.Order)
	if err != nil {
		return nil
	}
	c := newCutter(g, u.At)
	var list [][]int32
	for n := 2; n <= c.end/4 && n <= mostPieces; n = max(n+1, n*3/2) {
		list = append(list, c.sequence(n, 1))
	}
	for n := 2; n <= mostPieces; n *= 2 {
		for parts := 2; parts <= 8 && n*parts <= c.end/4; parts *= 2 {
			list = append(list, c.sequence(n, parts))
		}
	}
	return list
}

// mostPieces is into how many pieces a graph is cut at most.
const mostPieces = 256

// cutter cuts the steps [0, end] of the graph's own order.
type cutter struct {
	g       *Graph
	end     int
	step    []int32 // by node
	last    []int32 // by node, its last reader up to end, its own step if there is none
	crosses []int64 // by step, the memory that crosses from it to the next
	made    []int64 // by step, the memory of all results up to it
	inner   []int32 // by node, the part that it is in
	outer   []int32 // by node, the piece
	rank    []int8  // by node: 2 if it crosses from piece to piece, 1 from part to part, 0 else
}

func newCutter(g *Graph, end int) *cutter {
	n := len(g.Names)
	c := &cutter{g: g, end: end, step: make([]int32, n), last: make([]int32, n), crosses: make([]int64, end+1), made: make([]int64, end+1),
		inner: make([]int32, n), outer: make([]int32, n), rank: make([]int8, n)}
	for s, v := range g.Order {
		c.step[v], c.last[v] = int32(s), int32(s)
		if s > end {
			continue
		}
		for _, p := range g.Parents[v] {
			c.last[p] = int32(s)
		}
	}
	var sum int64
	for s, v := range g.Order[:end+1] {
		sum += g.Memory[v]
		c.made[s] = sum
		c.crosses[s] += g.Memory[v]
		if last := c.last[v]; int(last) <= end {
			c.crosses[last] -= g.Memory[v]
		}
	}
	var live int64
	for s, d := range c.crosses {
		live += d
		c.crosses[s] = live
	}
	return c
}

// cuts returns steps behind which n pieces end, but for the last.
func (c *cutter) cuts(n int) []int32 {
	total := c.made[c.end]
	at := func(k, n int) int {
		i, _ := slices.BinarySearch(c.made, int64(float64(float64(total)*float64(k)/float64(n))))
		return min(i, c.end)
	}
	var list []int32
	for k := 1; k < n; k++ {
		best := -1
		for s := at(4*k-1, 4*n); s <= at(4*k+1, 4*n); s++ {
			if best < 0 || c.crosses[s] < c.crosses[best] {
				best = s
			}
		}
		if len(list) == 0 || int(list[len(list)-1]) < best {
			list = append(list, int32(best))
		}
	}
	return list
}

// sequence returns the one with n pieces of so many parts.
func (c *cutter) sequence(n, parts int) []int32 {
	g := c.g
	cuts := c.cuts(n * parts)
	clear(c.rank)
	piece, part := int32(0), int32(0)
	for s, v := range g.Order[:c.end+1] {
		c.inner[v], c.outer[v] = part, piece
		if int(part) < len(cuts) && int32(s) == cuts[part] {
			if part++; int(part)%parts == 0 {
				piece++
			}
		}
	}
	for _, v := range g.Order[:c.end+1] {
		last := g.Order[c.last[v]]
		switch {
		case c.outer[last] > c.outer[v] || c.outer[v] == piece && c.inner[v] == part:
			c.rank[v] = 2
		case c.inner[last] > c.inner[v]:
			c.rank[v] = 1
		}
	}
	dropped := make([]bool, len(g.Names))
	list := make([]int32, 0, 2*len(g.Names))
	var again []int32
	var fetch func(v int32)
	fetch = func(v int32) {
		for _, p := range g.Parents[v] {
			if dropped[p] {
				dropped[p] = false
				fetch(p)
				list = append(list, p)
				again = append(again, p)
			}
		}
	}
	for s, v := range g.Order {
		if s > c.end {
			for _, p := range g.Parents[v] {
				if !dropped[p] {
					continue
				}
				again = append(again[:0], p)
				dropped[p] = false
				fetch(p)
				list = append(list, p)
				for _, u := range again {
					dropped[u] = c.inner[u] != c.inner[p] && (c.rank[u] == 0 || c.outer[u] != c.outer[p])
				}
			}
		}
		list = append(list, v)
		if s == c.end {
			for _, u := range g.Order[:c.end+1] {
				dropped[u] = c.rank[u] < 2 && !g.once(u)
			}
		}
	}
	return list
}
