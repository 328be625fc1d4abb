package remat

import (
	"math"
	"os"
	"testing"

	"gradtool/internal/public"
)

// checkmate opens a graph of Checkmate's, as Moccasin has it; those are not part of this repository.
func checkmate(t *testing.T, name string) *Graph {
	t.Helper()
	f, err := os.Open(public.Path(t, "bench", "memplan", "moccasin", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	g, err := ReadJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestPublicGraphs compares with costs that an integer program proved to be the least in the graph's own order, in
// percent of keeping everything: the bound holds for all orders and meets them. scripts/bench/memplan measures more.
func TestPublicGraphs(t *testing.T) {
	for _, c := range []struct {
		name    string
		optimum map[int64]float64
	}{
		{"VGG16 (MLSys)_256_(224, 224, 3)_train_nx.json", map[int64]float64{95: 0.774, 90: 1.968, 85: 1.968}},
		{"fcn_8_vgg (MLSys)_32_(416, 608, 3)_train_nx.json", map[int64]float64{90: 0.029, 80: 0.136, 65: 1.617}},
		{"vgg_unet (MLSys)_32_(416, 608, 3)_train_nx.json", map[int64]float64{90: 1.129, 80: 1.984, 70: 2.967, 60: 4.451}},
		{"segnet (MLSys)_32_(416, 608, 3)_train_nx.json", map[int64]float64{80: 0.210, 70: 0.311, 60: 0.423}},
	} {
		g := checkmate(t, c.name)
		own, err := Simulate(g, g.Order)
		if err != nil {
			t.Fatal(err)
		}
		last := int64(0)
		for _, percent := range []int64{95, 90, 85, 80, 70, 65, 60} {
			want, ok := c.optimum[percent]
			if !ok {
				continue
			}
			budget := own.Peak * percent / 100
			p, err := Solve(g, budget, DefaultMoves)
			if err != nil {
				t.Errorf("%s at %d %%: %v", c.name, percent, err)
				continue
			}
			if err := Check(g, p.Plan, budget); err != nil {
				t.Errorf("%s at %d %%: %v", c.name, percent, err)
			}
			base := float64(g.BaseCost())
			// Another order may be a little cheaper than the best in the graph's own.
			if got := 100 * (float64(p.Cost)/base - 1); got > want+0.0006 || got < want-0.01 || p.Cost != p.Bound || math.IsNaN(got) {
				t.Errorf("%s at %d %%: cost +%.3f %%, bound %d of %d, want +%.3f %%", c.name, percent, got, p.Bound, p.Cost, want)
			}
			if p.Cost < last {
				t.Errorf("%s at %d %%: cheaper than at a larger budget", c.name, percent)
			}
			last = p.Cost
		}
	}
}
