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
		for {
			pushed := f.push(source, sink, unlimited)
			if pushed == 0 {
				break
			}
			sum += pushed
		}
	}
	return sum
}

// label sets levels by distance from the source and reports whether the sink has one.
func (f *network) label(source, sink int32) bool {
	for v := range f.level {
		f.level[v] = -1
	}
	f.level[source] = 0
	f.queue = append(f.queue[:0], source)
	for k := 0; k < len(f.queue); k++ {
		v := f.queue[k]
		for _, e := range f.head[v] {
			if w := f.to[e]; f.room[e] > 0 && f.level[w] < 0 {
				f.level[w] = f.level[v] + 1
				f.queue = append(f.queue, w)
			}
		}
	}
	return f.level[sink] >= 0
}

// push sends flow from v to the sink along levels.
func (f *network) push(v, sink int32, most int64) int64 {
	if v == sink {
		return most
	}
	for ; f.next[v] < len(f.head[v]); f.next[v]++ {
		e := f.head[v][f.next[v]]
		w := f.to[e]
		if f.room[e] == 0 || f.level[w] != f.level[v]+1 {
			continue
		}
		if sent := f.push(w, sink, min(most, f.room[e])); sent > 0 {
			f.room[e] -= sent
			f.room[e^1] += sent
			return sent
		}
	}
	return 0
}

// reach marks the nodes that a further flow could reach: after maximum, the source's side of a minimum cut.
func (f *network) reach(source int32) []bool {
	f.label(source, source)
	mark := make([]bool, len(f.level))
	for v, l := range f.level {
		mark[v] = l >= 0
	}
	return mark
}
