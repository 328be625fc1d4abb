package profile_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"gradtool/npu/internal/sample"
	"gradtool/npu/isa"
	"gradtool/npu/profile"
	"gradtool/npu/sim"
)

func made(t *testing.T) (*isa.Program, *sim.Timeline, *profile.Report) {
	t.Helper()
	p, err := sample.Program()
	if err != nil {
		t.Fatal(err)
	}
	p.Nodes[3].Role, p.Nodes[4].Role = "backward", "backward"
	p.Nodes[0].Cluster, p.Nodes[1].Cluster = "c", "c"
	p.Name = "</script><b>"
	tl, err := sim.Time(p)
	if err != nil {
		t.Fatal(err)
	}
	return p, tl, profile.New(p, tl)
}

// TestTotals checks the figures that can be counted by hand.
func TestTotals(t *testing.T) {
	_, tl, r := made(t)
	if want := int64(2 * 64 * 48 * 32); r.Total.MACs != want {
		t.Errorf("%d MACs, want %d", r.Total.MACs, want)
	}
	read := int64(4 * (64*48 + 48*32 + 32 + 2*64*32)) // x, w, b, y and the old y
	written := int64(4 * (2*64*32 + 48*32))
	if r.Total.Read != read || r.Total.Written != written {
		t.Errorf("%d bytes read and %d written, want %d and %d", r.Total.Read, r.Total.Written, read, written)
	}
	sum, share := 0.0, 0.0
	for _, n := range r.Nodes {
		sum += n.Cycles
		share += n.Share
	}
	if math.Abs(sum-tl.Cycles) > 1e-3 || math.Abs(share-1) > 1e-6 || r.Total.Cycles < r.Total.Bound {
		t.Errorf("nodes have %v of %v cycles, bound %v", sum, tl.Cycles, r.Total.Bound)
	}
	if len(r.Roles) != 2 || r.Roles[0].Name != "forward" || r.Roles[1].Name != "backward" || len(r.Clusters) != 2 || r.Clusters[0].MACs != 64*48*32 ||
		r.Clusters[1].Name != "(no cluster)" || r.Clusters[0].MACs+r.Clusters[1].MACs != r.Total.MACs {
		t.Errorf("roles %+v, clusters %+v", r.Roles, r.Clusters)
	}
	if top := profile.Top(r.Nodes, 2); len(top) != 2 || top[0].Cycles < top[1].Cycles {
		t.Errorf("top nodes: %+v", top)
	}
	if r.Scratchpad.Peak <= 0 || r.Scratchpad.Peak > int64(r.Scratchpad.Bytes) {
		t.Errorf("scratchpad: %+v", r.Scratchpad)
	}
}

// TestParts checks that the groups of nodes, the purposes of traffic and the stretches of time each sum up to the whole.
func TestParts(t *testing.T) {
	p, tl, r := made(t)
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-6*max(want, 1) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	for _, g := range []struct {
		name string
		list []profile.Cost
	}{{"nodes", r.Nodes}, {"operators", r.Operators}, {"roles", r.Roles}} {
		var sum profile.Cost
		byPurpose := map[string]profile.Bytes{}
		for _, c := range g.list {
			sum.Cycles += c.Cycles
			sum.MACs += c.MACs
			read, written := int64(0), int64(0)
			for _, b := range c.Traffic {
				read, written = read+b.Read, written+b.Written
				byPurpose[b.Purpose] = profile.Bytes{Purpose: b.Purpose, Read: byPurpose[b.Purpose].Read + b.Read, Written: byPurpose[b.Purpose].Written + b.Written}
			}
			if read != c.Read || written != c.Written {
				t.Errorf("%s %s: %d and %d bytes by purpose, want %d and %d", g.name, c.Name, read, written, c.Read, c.Written)
			}
		}
		near(g.name+", cycles", sum.Cycles, tl.Cycles)
		if sum.MACs != r.Total.MACs {
			t.Errorf("%s: %d MACs, want %d", g.name, sum.MACs, r.Total.MACs)
		}
		for _, b := range r.Traffic {
			if byPurpose[b.Purpose] != b {
				t.Errorf("%s: %+v by purpose, want %+v", g.name, byPurpose[b.Purpose], b)
			}
		}
	}
	var load, store, matrix, vector float64
	var most int64
	for i, s := range r.Time {
		load, store, matrix, vector = load+s.Load, store+s.Store, matrix+s.Matrix, vector+s.Vector
		most = max(most, s.Scratchpad)
		if s.Load > s.To-s.From+1e-6 || s.Scratchpad > int64(p.Machine.Scratchpad.Bytes) || i > 0 && s.From != r.Time[i-1].To {
			t.Errorf("stretch %d: %+v", i, s)
		}
	}
	near("load", load, r.Total.Load)
	near("store", store, r.Total.Store)
	near("matrix", matrix, r.Total.Matrix)
	near("vector", vector, r.Total.Vector)
	near("end", r.Time[len(r.Time)-1].To, tl.Cycles)
	if most != r.Scratchpad.Peak || most == 0 {
		t.Errorf("%d bytes in use at most, want %d", most, r.Scratchpad.Peak)
	}
}

func TestForms(t *testing.T) {
	p, tl, r := made(t)
	var b bytes.Buffer
	if err := r.CSV(&b); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != len(r.Nodes)+len(r.Clusters)+len(r.Operators)+len(r.Roles)+2 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	b.Reset()
	if err := profile.Trace(&b, p, tl); err != nil {
		t.Fatal(err)
	}
	var trace struct {
		TraceEvents []struct {
			Ph  string
			Dur float64
			Tid int
		}
	}
	if err := json.Unmarshal(b.Bytes(), &trace); err != nil {
		t.Fatal(err)
	}
	busy := 0.0
	for _, e := range trace.TraceEvents {
		if e.Ph == "X" && e.Tid == int(isa.Matrix)+1 {
			busy += e.Dur * float64(p.Machine.ClockMHz)
		}
	}
	if want := tl.Time[isa.Matrix][sim.Busy]; math.Abs(busy-want) > 10 {
		t.Errorf("the trace has %v cycles of the array, want %v", busy, want)
	}
	b.Reset()
	if err := profile.HTML(&b, p, tl); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"&lt;/script&gt;&lt;b&gt;", profile.Note, `"lanes":[`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Count(b.String(), "</script>") != 2 {
		t.Error("a name ends the script")
	}
}
