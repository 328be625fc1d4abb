package remat

import "container/heap"

// exactNodes is the size of a graph up to which all sequences are searched.
const exactNodes = 10

// exact returns a sequence of the least cost within the budget, nil if there is none: Dijkstra's algorithm over which
// results are in memory and which have ever been computed. For graphs up to exactNodes.
func exact(g *Graph, budget int64) []int32 {
	n := len(g.Names)
	states := 1 << (2 * n)
	e := &explorer{cost: make([]int64, states), from: make([]int32, states)}
	for s := range e.cost {
		e.cost[s] = unlimited
	}
	reads := make([]int, n)
	for v, parents := range g.Parents {
		for _, p := range parents {
			reads[v] |= 1 << p
		}
	}
	memory := make([]int64, 1<<n)
	for live := 1; live < len(memory); live++ {
		for v := range n {
			if live>>v&1 == 1 {
				memory[live] += g.Memory[v]
			}
		}
	}
	e.reach(0, 0, -1)
	for len(e.open) > 0 {
		p := heap.Pop(&e.open).(path)
		if p.cost > e.cost[p.state] {
			continue
		}
		live, done := p.state>>n, p.state&(1<<n-1)
		if done == 1<<n-1 {
			return e.sequence(p.state, n)
		}
		for v := range n {
			bit := 1 << v
			switch {
			case live&bit != 0:
				e.reach(p.state^bit<<n, p.cost, int32(p.state))
			case reads[v]&^live != 0 || done&bit != 0 && g.once(int32(v)):
			case memory[live|bit]+g.extra(int32(v)) <= budget:
				e.reach((live|bit)<<n|done|bit, p.cost+g.Cost[v], int32(p.state))
			default:
				for _, q := range g.takes(int32(v)) {
					if memory[live|bit]-min(g.Memory[q], g.Memory[v])+g.extra(int32(v)) <= budget {
						e.reach((live|bit)&^(1<<q)<<n|done|bit, p.cost+g.Cost[v], int32(p.state))
					}
				}
			}
		}
	}
	return nil
}

// explorer is the state of the search.
type explorer struct {
	cost []int64
	from []int32
	open paths
}

// path is a way to a state; equal costs go by state, so that the order is one.
type path struct {
	cost  int64
	state int
}

// reach notes a way to a state if it is cheaper than those known.
func (e *explorer) reach(state int, cost int64, from int32) {
	if cost < e.cost[state] {
		e.cost[state], e.from[state] = cost, from
		heap.Push(&e.open, path{cost, state})
	}
}

// sequence follows the way to a state back: a result that enters memory has been computed.
func (e *explorer) sequence(state, n int) []int32 {
	var list []int32
	for e.from[state] >= 0 {
		before := int(e.from[state])
		if made := (state &^ before) >> n; made != 0 {
			v := int32(0)
			for made>>v != 1 {
				v++
			}
			list = append(list, v)
		}
		state = before
	}
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list
}

type paths []path

func (p paths) Len() int { return len(p) }
func (p paths) Less(i, j int) bool {
	return p[i].cost < p[j].cost || p[i].cost == p[j].cost && p[i].state < p[j].state
}
func (p paths) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *paths) Push(x any)   { *p = append(*p, x.(path)) }
func (p *paths) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}
