package pass_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/graph/pass"
)

const src = `<ir_version: 8, opset_import: ["" : 11, "local" : 1]>
g (float[2,3] x) => (float[N,M] y)
{
   y = Abs (s)
   s = local.f <axes: ints = [1]> (t)
   t = Unsqueeze <axes: ints = [0]> (x)
}
<domain: "local", opset_import: ["" : 11]>
f <axes> (a) => (b) { b = ReduceSum <axes: ints = @axes, keepdims: int = 0> (a) }`

func parse(t *testing.T, text string) *graph.Model {
	t.Helper()
	m, err := graph.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func standard() []pass.Pass {
	return []pass.Pass{pass.Sort(), pass.Inline(nil), pass.Upgrade(), pass.Infer()}
}

func manager(t *testing.T, passes []pass.Pass, opt pass.Options) *pass.Manager {
	t.Helper()
	mg, err := pass.New(passes, pass.Order(), opt)
	if err != nil {
		t.Fatal(err)
	}
	return mg
}

func TestStandardPasses(t *testing.T) {
	m := parse(t, src)
	var log strings.Builder
	var seen []string
	dir := t.TempDir()
	mg := manager(t, standard(), pass.Options{Strict: true, Log: &log, PrintAfter: "upgrade", DumpDir: dir,
		After: func(name string, changed bool, m *graph.Model) { seen = append(seen, name) }})
	r, err := mg.Run(m)
	if err != nil {
		t.Fatal(err)
	}
	var ops []string
	for _, n := range m.Graph.Nodes {
		ops = append(ops, n.Op)
	}
	if got, want := strings.Join(ops, " "), "Constant Unsqueeze Constant ReduceSum Abs"; got != want {
		t.Errorf("operators %s, want %s", got, want)
	}
	if got := strings.Join(seen, " "); got != "input sort inline upgrade infer" {
		t.Errorf("After was called for %s", got)
	}
	if log := log.String(); !strings.Contains(log, "*** after upgrade") || strings.Contains(log, "*** after sort") || !strings.Contains(log, "Unsqueeze") {
		t.Errorf("log is %s", log)
	}
	if len(r.Prior) != 2 { // s and t are read before they are defined
		t.Errorf("violations before: %v", r.Prior)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 5 || files[4].Name() != "04-infer.txt" {
		t.Errorf("dumps are %v, %v", files, err)
	}
	var b strings.Builder
	if err := r.WriteTimes(&b); err != nil || !strings.Contains(b.String(), "3 -> 5") {
		t.Errorf("times are %s, %v", b.String(), err)
	}
	r, err = mg.Run(m) // nothing left to do
	for _, s := range r.Stats {
		if s.Changed {
			t.Errorf("pass %s changed something in the second run", s.Name)
		}
	}
	if err != nil {
		t.Error(err)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		passes []pass.Pass
		opt    pass.Options
		want   string
	}{
		{"order", []pass.Pass{pass.Upgrade(), pass.Inline(nil)}, pass.Options{}, "inline must come before upgrade: "},
		{"twice", []pass.Pass{pass.Sort(), pass.Sort()}, pass.Options{}, "sort is listed twice"},
		{"empty", []pass.Pass{{Name: "a"}}, pass.Options{}, "a does nothing"},
		{"name", standard(), pass.Options{PrintAfter: "upgrad"}, "did you mean upgrade"},
		{"no name", standard(), pass.Options{PrintAfter: "xyz"}, "passes are sort, inline"},
	} {
		if _, err := pass.New(c.passes, pass.Order(), c.opt); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

// step is a pass that does f.
func step(name string, f func(c *pass.Ctx, m *graph.Model) (bool, error)) pass.Pass {
	return pass.Pass{Name: name, Run: f}
}

func TestFailures(t *testing.T) {
	sentinel := errors.New("no luck")
	for _, c := range []struct {
		name string
		p    pass.Pass
		want string
	}{
		{"error", step("p", func(*pass.Ctx, *graph.Model) (bool, error) { return false, sentinel }), "pass p: no luck"},
		{"panic", step("p", func(*pass.Ctx, *graph.Model) (bool, error) { panic("boom") }), "pass p: internal error: boom"},
		{"structure", step("p", func(c *pass.Ctx, m *graph.Model) (bool, error) {
			m.Graph.Nodes = nil
			return true, nil
		}), "rule 3"},
		{"schema", step("p", func(c *pass.Ctx, m *graph.Model) (bool, error) {
			m.Graph.Nodes[0].SetAttr(graph.IntAttr("colour", 3))
			return true, nil
		}), "attribute colour"},
		{"unreported change", step("p", func(c *pass.Ctx, m *graph.Model) (bool, error) {
			m.Graph.Nodes[0].Name = "other"
			return false, nil
		}), "reports that it did not"},
		{"promise", pass.Pass{Name: "p", Run: func(*pass.Ctx, *graph.Model) (bool, error) { return false, nil },
			Ensures: func(*graph.Model) error { return sentinel }}, "pass p: no luck"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := parse(t, `<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Abs (x) }`)
			_, err := manager(t, []pass.Pass{c.p}, pass.Options{Strict: true}).Run(m)
			var pe *pass.Error
			if !errors.As(err, &pe) || pe.Pass != "p" || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestBisectLimit(t *testing.T) {
	rename := step("rename", func(c *pass.Ctx, m *graph.Model) (bool, error) {
		changed := false
		for _, n := range m.Graph.Nodes {
			if n.Name == "" && c.Allow("name %s", n.Op) {
				n.Name, changed = "named", true
			}
		}
		return changed, nil
	})
	second := step("second", func(c *pass.Ctx, m *graph.Model) (bool, error) { m.Doc = "second"; return true, nil })
	for limit, want := range []string{"", "rename: name Abs", "rename: name Neg", "rename: name Neg"} {
		m := parse(t, `<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { s = Abs (x) y = Neg (s) }`)
		r, err := manager(t, []pass.Pass{rename, second, pass.Sort()}, pass.Options{Bisect: true, Limit: limit}).Run(m)
		if err != nil {
			t.Fatal(err)
		}
		named := 0
		for _, n := range m.Graph.Nodes {
			if n.Name != "" {
				named++
			}
		}
		if named != min(limit, 2) || r.LastRewrite != want || r.Rewrites != min(limit, 2) || (m.Doc == "second") != (limit > 2) {
			t.Errorf("limit %d: %d renamed, last %q, %d rewrites, doc %q", limit, named, r.LastRewrite, r.Rewrites, m.Doc)
		}
		if last := r.Stats[len(r.Stats)-1]; last.Name != "sort" {
			t.Errorf("limit %d: the last pass is %s, want the required sort", limit, last.Name)
		}
	}
}

func TestInfoIsKept(t *testing.T) {
	count := 0
	look := step("look", func(c *pass.Ctx, m *graph.Model) (bool, error) {
		a, err := c.Info(m)
		if err != nil {
			return false, err
		}
		b, _ := c.Info(m)
		if a == b {
			count++
		}
		return false, nil
	})
	m := parse(t, src)
	if _, err := manager(t, append(standard(), look), pass.Options{}).Run(m); err != nil {
		t.Fatal(err)
	}
	if count != 1 {
		t.Error("Info infers anew though nothing changed")
	}
}

// TestPriorViolations: what is wrong with the input is not held against a pass that only shows it.
func TestPriorViolations(t *testing.T) {
	const head = `<ir_version: 8, opset_import: ["" : 11, "local" : 1]> g (float[2] x) => (float[2] y) `
	rename := step("rename", func(c *pass.Ctx, m *graph.Model) (bool, error) {
		for _, n := range m.Graph.Nodes {
			n.Out[0].Name += "_renamed"
		}
		return true, nil
	})
	colour := step("colour", func(c *pass.Ctx, m *graph.Model) (bool, error) {
		m.Graph.Nodes[0].SetAttr(graph.IntAttr("colour", 3))
		return true, nil
	})
	double := step("double", func(c *pass.Ctx, m *graph.Model) (bool, error) {
		n := m.Graph.Nodes[0]
		m.Graph.Append(m.Graph.NewNode(n.Domain, n.Op, n.In, []string{"copy"}, n.Attrs...))
		return true, nil
	})
	for _, c := range []struct {
		name, text string
		passes     []pass.Pass
		want       string
	}{
		{"unknown attribute copied", head + `{ y = Abs <colour: int = 1> (x) }`, []pass.Pass{double}, ""},
		{"unknown operator renamed", head + `{ y = Nonsense (x) }`, []pass.Pass{rename}, ""},
		{"unknown attribute renamed", head + `{ y = Abs <colour: int = 1> (x) }`, []pass.Pass{rename}, ""},
		{"unknown operator in a function", head + `{ y = local.f (x) } <domain: "local", opset_import: ["" : 11]> f (a) => (b) { b = Nonsense (a) }`, []pass.Pass{pass.Inline(nil)}, ""},
		{"operator of a later opset in a function", head + `{ y = local.f (x) } <domain: "local", opset_import: ["" : 11]> f (a) => (b) { b = Einsum <equation: string = "i->i"> (a) }`,
			[]pass.Pass{pass.Inline(nil)}, ""},
		{"types that inference finds", head + `{ h = Cast <to: int = 10> (x) y = Add (x, h) }`, []pass.Pass{pass.Upgrade(), pass.Infer()}, ""},
		{"an attribute beside types that nobody declares", head + `{ h = Abs (x) y = Abs (h) }`, []pass.Pass{colour}, "attribute colour"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := manager(t, c.passes, pass.Options{}).Run(parse(t, c.text))
			if got := fmt.Sprint(err); c.want == "" && err != nil && strings.Contains(got, "internal error") || !strings.Contains(got, c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
