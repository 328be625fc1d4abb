package legal_test

import (
	"fmt"
	"testing"

	"gradtool/graph/op"
	"gradtool/npu/legal"
)

// TestFuse fuses the kernels of every sample without regard to size and runs what comes of it.
func TestFuse(t *testing.T) {
	total := 0
	for _, d := range op.All() {
		for i, s := range d.Samples {
			t.Run(fmt.Sprintf("%s/%s", op.Key{Domain: d.Domain, Name: d.Name}, s.Title(i)), func(t *testing.T) {
				m, feed, want := evaluated(t, d, s)
				p, err := legal.Lower(m)
				if err != nil {
					t.Skip(err)
				}
				if len(p.Fallbacks) > 0 {
					t.Skipf("not lowered: %s: %s", p.Fallbacks[0].Op, p.Fallbacks[0].Reason)
				}
				f := &legal.Fuser{Fits: func(*legal.Nest) bool { return true }, FitsPost: func(*legal.Contract) bool { return true }}
				f.Run(p)
				if err := p.Verify(); err != nil {
					t.Fatalf("%v\n%s", err, p)
				}
				total += f.Fused
				compare(t, p, feed, want)
			})
		}
	}
	t.Logf("%d kernels went into others", total)
	if total == 0 {
		t.Error("nothing was fused")
	}
}
