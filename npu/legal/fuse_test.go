package legal_test

import (
	"fmt"
	"testing"

	"gradtool/graph/op"
	"gradtool/npu/legal"
)

// TestFuse fuses the kernels of every sample without regard to size and runs what comes of it.
func TestFuse(t *testing.T) {
	total, again := 0, 0
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
				total += f.Fused
				if n := p.Recompute(f.Fits, f.FitsPost); n > 0 {
					again += n
					f.Run(p)
				}
				if err := p.Verify(); err != nil {
					t.Fatalf("%v\n%s", err, p)
				}
				compare(t, p, feed, want)
			})
		}
	}
	t.Logf("%d kernels went into others, %d values are computed again", total, again)
	if total == 0 || again == 0 {
		t.Error("nothing was fused, or nothing computed again")
	}
}
