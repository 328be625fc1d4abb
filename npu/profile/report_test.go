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
	if len(r.Roles) != 2 || r.Roles[0].Name != "forward" || r.Roles[1].Name != "backward" || len(r.Clusters) != 1 || r.Clusters[0].MACs != 64*48*32 {
		t.Errorf("roles %+v, clusters %+v", r.Roles, r.Clusters)
	}
	if top := r.Top(2); len(top) != 2 || top[0].Cycles < top[1].Cycles {
		t.Errorf("top nodes: %+v", top)
	}
	if r.Scratchpad.Peak <= 0 || r.Scratchpad.Peak > int64(r.Scratchpad.Bytes) {
		t.Errorf("scratchpad: %+v", r.Scratchpad)
	}
}

func TestForms(t *testing.T) {
	p, tl, r := made(t)
	var b bytes.Buffer
	if err := r.CSV(&b); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != len(r.Nodes)+2 {
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
