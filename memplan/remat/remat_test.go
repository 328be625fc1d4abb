package remat

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// genGraph draws a graph of a few nodes.
func genGraph(t *rapid.T, most int) *Graph {
	n := rapid.IntRange(1, most).Draw(t, "n")
	g := &Graph{Parents: make([][]int32, n)}
	for v := range n {
		g.Names = append(g.Names, fmt.Sprint("n", v))
		g.Memory = append(g.Memory, rapid.Int64Range(0, 5).Draw(t, "memory"))
		g.Cost = append(g.Cost, rapid.Int64Range(0, 5).Draw(t, "cost"))
		for p := range v {
			if rapid.IntRange(0, 2).Draw(t, "reads") == 0 {
				g.Parents[v] = append(g.Parents[v], int32(p))
			}
		}
	}
	if rapid.Bool().Draw(t, "marked") {
		g.Takes, g.Once, g.Extra = make([][]int32, n), make([]bool, n), make([]int64, n)
		for v := range n {
			g.Once[v] = rapid.IntRange(0, 4).Draw(t, "once") == 0
			g.Extra[v] = max(rapid.Int64Range(-6, 3).Draw(t, "extra"), 0)
			for _, p := range g.Parents[v] {
				if rapid.IntRange(0, 2).Draw(t, "takes") == 0 {
					g.Takes[v] = append(g.Takes[v], p)
				}
			}
		}
	}
	if err := g.sort(); err != nil {
		t.Fatal(err)
	}
	return g
}

// brute returns the least cost within a budget, -1 if no sequence keeps to it, by Dijkstra's algorithm over which results
// are in memory and which have ever been computed.
func brute(g *Graph, budget int64) int64 {
	type state struct{ live, done uint32 }
	n := len(g.Names)
	memory := func(live uint32) (sum int64) {
		for v := range n {
			if live>>v&1 == 1 {
				sum += g.Memory[v]
			}
		}
		return sum
	}
	buckets := [][]state{{{}}} // by cost
	settled := map[state]bool{}
	put := func(s state, cost int64) {
		for int64(len(buckets)) <= cost {
			buckets = append(buckets, nil)
		}
		buckets[cost] = append(buckets[cost], s)
	}
	for cost := int64(0); cost < int64(len(buckets)); cost++ {
		for k := 0; k < len(buckets[cost]); k++ {
			now := buckets[cost][k]
			if settled[now] {
				continue
			}
			settled[now] = true
			if now.done == 1<<n-1 {
				return cost
			}
		next:
			for v := range n {
				bit := uint32(1) << v
				if now.live&bit != 0 {
					put(state{now.live &^ bit, now.done}, cost)
					continue
				}
				for _, p := range g.Parents[v] {
					if now.live>>p&1 == 0 {
						continue next
					}
				}
				if now.done&bit != 0 && g.Once != nil && g.Once[v] {
					continue
				}
				need := memory(now.live | bit)
				if g.Extra != nil {
					need += g.Extra[v]
				}
				if need <= budget {
					put(state{now.live | bit, now.done | bit}, cost+g.Cost[v])
				}
				if g.Takes == nil {
					continue
				}
				for _, p := range g.Takes[v] {
					if need-min(g.Memory[p], g.Memory[v]) <= budget {
						put(state{(now.live | bit) &^ (1 << p), now.done | bit}, cost+g.Cost[v])
					}
				}
			}
		}
	}
	return -1
}

// naive works out the memory at a step from the definition, one result at a time.
func naive(g *Graph, sequence []int32, step int) (sum int64) {
	now := sequence[step]
	var taken int64
	for v := range g.Names {
		at := -1
		for k := step; k >= 0 && at < 0; k-- {
			if sequence[k] == int32(v) {
				at = k
			}
		}
		if at < 0 {
			continue
		}
		read, last := at == step, at
		for k := max(step, at+1); k < len(sequence); k++ {
			if slices.Contains(g.Parents[sequence[k]], int32(v)) {
				read, last = true, k
			}
			if sequence[k] == int32(v) {
				break
			}
		}
		if read {
			sum += g.Memory[v]
		}
		if g.Takes != nil && last == step && slices.Contains(g.Takes[now], int32(v)) {
			taken = max(taken, min(g.Memory[v], g.Memory[now]))
		}
	}
	if g.Extra != nil {
		sum += g.Extra[now]
	}
	return sum - taken
}

// TestSolveIsOptimal compares with the best of all sequences, at every budget: costs, refusals, and that a smaller
// budget is never cheaper.
func TestSolveIsOptimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := genGraph(t, 6)
		u, err := Simulate(g, g.Order)
		if err != nil {
			t.Fatal(err)
		}
		floor, _ := Floor(g)
		last := int64(-1)
		for budget := max(floor-1, 0); budget <= u.Peak; budget++ {
			want := brute(g, budget)
			p, err := Solve(g, budget, 0)
			if want < 0 {
				var low *FloorError
				if err == nil || errors.As(err, &low) != (budget < floor) {
					t.Fatalf("budget %d, floor %d: no sequence keeps to it, got cost %d, %v", budget, floor, p.Cost, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("budget %d of %d: %v, want cost %d", budget, u.Peak, err, want)
			}
			if err := Check(g, p.Plan, budget); err != nil {
				t.Fatal(err)
			}
			if p.Bound > want || p.Bound < g.BaseCost() {
				t.Fatalf("budget %d: bound %d, best %d", budget, p.Bound, want)
			}
			if p.Cost != want {
				t.Fatalf("budget %d: cost %d, want %d", budget, p.Cost, want)
			}
			if last >= 0 && p.Cost > last {
				t.Fatalf("budget %d costs %d, a smaller one %d", budget, p.Cost, last)
			}
			last = p.Cost
		}
	})
}

// TestAnneal compares annealing, which Solve leaves to larger graphs, with the best of all sequences: it is never better,
// and seldom worse.
func TestAnneal(t *testing.T) {
	tried, best := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		g := genGraph(t, 6)
		u, err := Simulate(g, g.Order)
		if err != nil {
			t.Fatal(err)
		}
		floor, _ := Floor(g)
		for budget := floor; budget < u.Peak; budget++ {
			want := brute(g, budget)
			p, err := anneal(g, budget, 60_000)
			if err != nil {
				var none *NotFoundError
				if !errors.As(err, &none) {
					t.Fatal(err)
				}
				if want >= 0 {
					tried++
				}
				continue
			}
			if err := Check(g, p.Plan, budget); err != nil {
				t.Fatal(err)
			}
			if want < 0 || p.Cost < want || p.Bound > want {
				t.Fatalf("budget %d: cost %d, bound %d, best %d", budget, p.Cost, p.Bound, want)
			}
			tried++
			if p.Cost == want {
				best++
			}
		}
	})
	if best*100 < tried*95 {
		t.Errorf("the best cost was found %d of %d times", best, tried)
	}
}

// TestSimulate compares with the definition of memory.
func TestSimulate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := genGraph(t, 6)
		g.Once = nil
		sequence := slices.Clone(g.Order)
		for range rapid.IntRange(0, 6).Draw(t, "more") {
			v := int32(rapid.IntRange(0, len(g.Names)-1).Draw(t, "node"))
			first := slices.Index(sequence, v)
			sequence = slices.Insert(sequence, rapid.IntRange(first+1, len(sequence)).Draw(t, "at"), v)
		}
		u, err := Simulate(g, sequence)
		if err != nil {
			t.Fatal(err)
		}
		for step, m := range u.Memory {
			if want := naive(g, sequence, step); m != want {
				t.Fatalf("sequence %v: step %d has %d, want %d", sequence, step, m, want)
			}
		}
		if u.Peak != slices.Max(u.Memory) || u.Memory[u.At] != u.Peak {
			t.Fatalf("peak %d at %d of %v", u.Peak, u.At, u.Memory)
		}
	})
}

// TestCheckFindsMutations breaks valid plans and expects to hear of it.
func TestCheckFindsMutations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := genGraph(t, 7)
		u, err := Simulate(g, g.Order)
		if err != nil {
			t.Fatal(err)
		}
		budget := rapid.Int64Range(0, u.Peak).Draw(t, "budget")
		p, err := Solve(g, budget, 20_000)
		if err != nil {
			return
		}
		if err := Check(g, p.Plan, budget); err != nil {
			t.Fatal(err)
		}
		p.Sequence = slices.Clone(p.Sequence)
		k := rapid.IntRange(0, len(p.Sequence)-1).Draw(t, "step")
		switch rapid.IntRange(0, 5).Draw(t, "mutation") {
		case 0: // a node too few: one that is not computed, or was there twice
			v := p.Sequence[k]
			p.Sequence = slices.Delete(p.Sequence, k, k+1)
			if slices.Contains(p.Sequence, v) && g.Cost[v] == 0 {
				return // only the memory may differ
			}
		case 1: // a reader in front of what it reads for the first time
			v := p.Sequence[k]
			if len(g.Parents[v]) == 0 {
				return
			}
			first := slices.Index(p.Sequence, g.Parents[v][0])
			p.Sequence = slices.Insert(p.Sequence, first, v)
		case 2:
			p.Peak++
		case 3:
			p.Cost--
		case 4:
			budget = p.Peak - 1
		case 5:
			p.Sequence[k] = int32(len(g.Names))
		}
		if Check(g, p.Plan, budget) == nil {
			t.Fatal("nothing found")
		}
	})
}

// TestTimeline makes random moves and takes some back; memory, costs and overage must be those of the sequence.
func TestTimeline(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := genGraph(t, 12)
		a := newAnnealer(g, g.Order, rapid.Int64Range(0, 20).Draw(t, "budget"), rapid.Uint64().Draw(t, "seed"))
		for range 30 {
			before := a.sequence()
			a.log = a.log[:0]
			if !a.move() || rapid.Bool().Draw(t, "undo") {
				a.undo()
				if got := a.sequence(); !slices.Equal(got, before) {
					t.Fatalf("%v became %v by taking back", before, got)
				}
			}
			s := a.sequence()
			u, err := Simulate(g, s)
			if err != nil {
				t.Fatal(err)
			}
			var over int64
			for _, m := range u.Memory {
				over += max(m-a.budget, 0)
			}
			if a.cost != u.Cost || a.peak[1] != u.Peak || a.over(a.budget) != over || int(a.steps) != len(s) {
				t.Fatalf("%v: cost %d, peak %d, over %d, want %d, %d, %d", s, a.cost, a.peak[1], a.over(a.budget), u.Cost, u.Peak, over)
			}
			if rapid.IntRange(0, 9).Draw(t, "lay out") == 0 {
				a.layOut(s)
			}
		}
	})
}

// layered returns a graph in the shape of training: a chain, and a backward chain that reads it.
func layered(n int) *Graph {
	g := &Graph{}
	for v := range 2 * n {
		g.Names = append(g.Names, fmt.Sprint("n", v))
		g.Memory = append(g.Memory, int64(3+v*v%7))
		g.Cost = append(g.Cost, int64(2+v*v%5))
		var parents []int32
		if v > 0 {
			parents = append(parents, int32(v-1))
		}
		if v > n {
			parents = append(parents, int32(2*n-1-v))
		}
		g.Parents = append(g.Parents, parents)
		g.Order = append(g.Order, int32(v))
	}
	return g
}

func TestSolveIsDeterministic(t *testing.T) {
	g := layered(20)
	u, err := Simulate(g, g.Order)
	if err != nil {
		t.Fatal(err)
	}
	first, err := Solve(g, u.Peak/2, 50_000)
	if err != nil {
		t.Fatal(err)
	}
	for range 19 {
		p, err := Solve(g, u.Peak/2, 50_000)
		if err != nil || !slices.Equal(p.Sequence, first.Sequence) {
			t.Fatalf("cost %d, then %d: %v", first.Cost, p.Cost, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	g := layered(3)
	for _, c := range []struct {
		budget int64
		want   string
	}{
		{0, `budget 0: computing "n5" alone needs 15 bytes: its result and what it reads, "n4" (5), "n0" (3)`},
		{14, `budget 14: computing "n5" alone needs 15 bytes`},
		{17, ""},
	} {
		_, err := Solve(g, c.budget, 10_000)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("budget %d: %v, want %q", c.budget, err, c.want)
		}
	}
	// a feeds b and c, which d reads: each step fits in 6, but not b with a and c.
	g = &Graph{Names: []string{"a", "b", "c", "d"}, Memory: []int64{3, 3, 3, 0}, Cost: []int64{1, 1, 1, 1},
		Parents: [][]int32{{}, {0}, {0}, {1, 2}}, Order: []int32{0, 1, 2, 3}}
	_, err := Solve(g, 6, 10_000)
	var none *NotFoundError
	if !errors.As(err, &none) || !none.Proved {
		t.Errorf("got %v", err)
	}
	if _, err = anneal(g, 6, 10_000); !errors.As(err, &none) || none.Proved || none.Lowest != 9 {
		t.Errorf("annealing: got %v", err)
	}
}

const example = `{"directed": true, "graph": {"order": [7, 5, 6]}, "nodes": [
	{"id": 5, "name": "b", "cost_ram": 2, "cost_cpu": 3}, {"id": 6, "name": "c", "out_cost": 1, "duration": 4}, {"id": 7, "cost_ram": 9, "cost_cpu": 1e3}],
	"links": [{"source": 7, "target": 5}, {"0": 5, "1": 6}, {"source": 7, "target": 6}]}`

func TestJSON(t *testing.T) {
	g, err := ReadJSON(strings.NewReader(example))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(g.Names, g.Memory, g.Cost, g.Parents, g.Order); got != "[b c 7] [2 1 9] [3 4 1000] [[2] [0 2] []] [2 0 1]" {
		t.Error(got)
	}
	p, err := Solve(g, 12, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := WriteJSON(&out, g, p.Plan, 12); err != nil {
		t.Fatal(err)
	}
	want := `{"schema":"gradtool.remat/1","budget":12,"peak":12,"cost":1007,"order_peak":12,"base_cost":1007,"sequence":[7,5,6]}` + "\n"
	if out.String() != want {
		t.Errorf("got %s", out.String())
	}
	for _, c := range []struct{ old, new, want string }{
		{`"id": 6`, `"id": 5`, `id "5" is empty or there twice`},
		{`"cost_ram": 2`, `"cost_ram": 2.5`, `node "b": cost_ram is 2.5, want a whole number`},
		{`"cost_ram": 2`, `"cost_ram": -2`, `want a whole number`},
		{`"cost_ram": 2`, `"x": 2`, `node "b": none of`},
		{`"target": 6`, `"target": 8`, `link 2: from "7" to "8": no such node`},
		{`[7, 5, 6]`, `[7, 6, 5]`, `order has "c" before "b"`},
		{`[7, 5, 6]`, `[7, 5]`, `order has 2 of 3 nodes`},
		{`"order": [7, 5, 6]`, `"x": 1`, ``},
		{`{"source": 7, "target": 6}], "links"`, ``, ``},
		{`"directed": true`, `"directed": false`, `not directed`},
		{`{"source": 7, "target": 5}`, `{"source": 6, "target": 5}`, `order has`},
		{`"nodes": [`, `"nodes": 7, "x": [`, `member nodes is of JSON type number`},
	} {
		_, err := ReadJSON(strings.NewReader(strings.Replace(example, c.old, c.new, 1)))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s for %s: %v, want %q", c.new, c.old, err, c.want)
		}
	}
	cycle := strings.Replace(strings.Replace(example, `"order": [7, 5, 6]`, ``, 1), `"source": 7, "target": 5`, `"source": 6, "target": 5`, 1)
	if _, err := ReadJSON(strings.NewReader(cycle)); err == nil || !strings.Contains(err.Error(), "cycle") {
		t.Errorf("cycle: %v", err)
	}
}
