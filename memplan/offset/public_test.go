package offset

import (
	"os"
	"path/filepath"
	"testing"
)

// public opens a table of the public instances, which are not part of this repository.
func public(t *testing.T, path ...string) []Buffer {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Skip("no go.mod above the test")
		}
		dir = up
	}
	f, err := os.Open(filepath.Join(append([]string{dir, "..", "shared", "bench", "memplan"}, path...)...))
	if err != nil {
		t.Skip("the public instances are not here: ", err)
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
		buffers := public(t, c.path...)
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
