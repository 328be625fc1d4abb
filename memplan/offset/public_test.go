package offset

import (
	"os"
	"testing"

	"gradtool/internal/public"
)

// published opens a table of the public instances, which are not part of this repository.
func published(t *testing.T, path ...string) []Buffer {
	t.Helper()
	f, err := os.Open(public.Path(t, append([]string{"bench", "memplan"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table, err := ReadCSV(f)
	if err != nil {
		t.Fatal(err)
	}
	return table.Buffers
}

// TestPublicInstances plans those of MiniMalloc's and idealloc's instances that take little time; scripts/bench/memplan
// measures all.
func TestPublicInstances(t *testing.T) {
	for _, c := range []struct {
		path     []string
		capacity int64 // 0: the lowest plan must be at the bound
	}{
		{[]string{"minimalloc", "challenging", "B.1048576.csv"}, 1048576},
		{[]string{"minimalloc", "challenging", "C.1048576.csv"}, 0},
		{[]string{"minimalloc", "challenging", "F.1048576.csv"}, 1048576},
		{[]string{"minimalloc", "challenging", "G.1048576.csv"}, 1048576},
		{[]string{"minimalloc", "challenging", "J.1048576.csv"}, 1048576},
		{[]string{"minimalloc", "challenging", "K.1048576.csv"}, 1048576},
		{[]string{"minimalloc", "examples", "input.12.csv"}, 0},
		{[]string{"idealloc", "G_1.csv"}, 0},
		{[]string{"idealloc", "pangu_2.6B.csv"}, 0},
	} {
		buffers := published(t, c.path...)
		r, err := Solve(buffers, c.capacity, DefaultBudget)
		if err != nil {
			t.Errorf("%v: %v", c.path, err)
			continue
		}
		if err := Check(buffers, r.Plan, c.capacity); err != nil {
			t.Errorf("%v: %v", c.path, err)
		}
		if c.capacity == 0 && (r.Height != r.Bound || !r.Optimal) {
			t.Errorf("%v: height %d, bound %d", c.path, r.Height, r.Bound)
		}
	}
}
