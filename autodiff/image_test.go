package autodiff

import (
	"errors"
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/graph/op"
)

// TestResizeSizesAtRunTime: where the aspect ratio is kept, the sizes must be known; other sizes may come at run time.
func TestResizeSizesAtRunTime(t *testing.T) {
	for _, c := range []struct{ attrs, sizes, want string }{
		{`keep_aspect_ratio_policy: string = "not_larger"`, `s = Identity (sizes)`, "needs known sizes"},
		{`keep_aspect_ratio_policy: string = "not_smaller"`, `s = Abs (sizes)`, "needs known sizes"},
		{`keep_aspect_ratio_policy: string = "not_larger"`, `s = Constant <value_ints: ints = [4, 4]> ()`, ""},
		{`keep_aspect_ratio_policy: string = "not_larger"`, `h = Shape <start: int = 2> (x) s = Add (h, h)`, ""},
		{`mode: string = "nearest"`, `s = Identity (sizes)`, ""},
	} {
		m, err := graph.Parse(`<ir_version: 8, opset_import: ["" : 19]> g (float[1,1,2,2] x, int64[2] sizes) => (float[1,1,H,W] y) { ` +
			c.sizes + ` y = Resize <axes: ints = [2, 3], ` + c.attrs + `> (x, , , s) }`)
		if err != nil {
			t.Fatal(err)
		}
		if err := op.Upgrade(m); err != nil {
			t.Fatal(err)
		}
		info, err := op.Infer(m)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Gradient(m, info, GradOptions{Wrt: m.Graph.Inputs[:1]})
		var bug *RuleError
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) || errors.As(err, &bug) {
			t.Errorf("%s, %s: got %v, want %q", c.attrs, c.sizes, err, c.want)
		}
	}
}
