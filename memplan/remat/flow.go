package remat

// network is a flow network with integer capacities. Maximum flow is Dinic's: blocking flows along shortest paths.
type network struct {
	head  [][]int32 // by node, the edges that leave it
	to    []int32
	room  []int64 // by edge; the edge back is the one with the last bit flipped
	level []int32
	next  []int
	queue []int32
}

// unlimited is a capacity that no flow fills.
const unlimited = int64(1) << 61

func newNetwork(nodes int) *network {
	return &network{head: make([][]int32, nodes), level: make([]int32, nodes), next: make([]int, nodes)}
}

// edge adds an edge and returns its number.
func (f *network) edge(from, to int32, room int64) int32 {
	e := int32(len(f.to))
	f.to = append(f.to, to, from)
	f.room = append(f.room, room, 0)
	f.head[from] = append(f.head[from], e)
	f.head[to] = append(f.head[to], e+1)
	return e
}

// shrink takes back edges added last, until there are as many capacities as rooms.
func (f *network) shrink(rooms int) {
	for e := len(f.to) - 1; e >= rooms; e-- {
		from := f.to[e^1]
		f.head[from] = f.head[from][:len(f.head[from])-1]
	}
	f.to, f.room = f.to[:rooms], f.room[:rooms]
}

// maximum returns the value of a maximum flow; room is what it leaves.
func (f *network) maximum(source, sink int32) int64 {
	var sum int64
	for f.label(source, sink) {
		clear(f.next)
		sum += f.push(source, sink, unlimited)
	}
	return sum
}

// label sets levels by distance to the sink, up to that of the source, and reports whether the source has one.
func (f *network) label(source, sink int32) bool {
	for v := range f.level {
		f.level[v] = -1
	}
	f.level[sink] = 0
	f.queue = append(f.queue[:0], sink)
	for k := 0; k < len(f.queue); k++ {
		v := f.queue[k]
		for _, e := range f.head[v] {
			if w := f.to[e]; f.room[e^1] > 0 && f.level[w] < 0 {
				if f.level[w] = f.level[v] + 1; w == source {
					return true
				}
				f.queue = append(f.queue, w)
			}
		}
	}
	return false
}

// push sends flow, at most so much, from v to the sink along levels: a blocking flow where v is the source.
func (f *network) push(v, sink int32, most int64) int64 {
	if v == sink {
		return most
	}
	var sum int64
	for ; f.next[v] < len(f.head[v]); f.next[v]++ {
		e := f.head[v][f.next[v]]
		w := f.to[e]
		if f.room[e] == 0 || f.level[w] != f.level[v]-1 {
			continue
		}
		sent := f.push(w, sink, min(most-sum, f.room[e]))
		f.room[e] -= sent
		f.room[e^1] += sent
		if sum += sent; sum == most {
			break
		}
	}
	return sum
}

// reach marks the nodes that a further flow could reach: after maximum, the source's side of a minimum cut, the smallest one.
func (f *network) reach(source int32) []bool {
	mark := make([]bool, len(f.level))
	mark[source] = true
	f.queue = append(f.queue[:0], source)
	for k := 0; k < len(f.queue); k++ {
		for _, e := range f.head[f.queue[k]] {
			if w := f.to[e]; f.room[e] > 0 && !mark[w] {
				mark[w] = true
				f.queue = append(f.queue, w)
			}
		}
	}
	return mark
}
