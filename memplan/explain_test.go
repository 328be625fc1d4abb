package memplan_test

import (
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"gradtool/memplan"
)

// stepText is a training step by hand: two layers, a loss, gradients and an update.
const stepText = `g (float[8,8] x, float[8,8] w1, float[8,8] w2, float lr) => (float[8,8] y, float[8,8] w1_next, float[8,8] w2_next) {
	h = MatMul(x, w1)
	a = Relu(h)
	y = MatMul(a, w2)
	at = Transpose(a)            # meta: "gradtool.role": "backward"
	w2_grad = MatMul(at, y)      # meta: "gradtool.role": "backward"
	w2t = Transpose(w2)          # meta: "gradtool.role": "backward"
	da = MatMul(y, w2t)          # meta: "gradtool.role": "backward"
	z = Constant<value: tensor = float {0}>()
	on = Greater(a, z)           # meta: "gradtool.role": "backward"
	dh = Where(on, da, z)        # meta: "gradtool.role": "backward"
	xt = Transpose(x)            # meta: "gradtool.role": "backward"
	w1_grad = MatMul(xt, dh)     # meta: "gradtool.role": "backward"
	s1 = Mul(w1_grad, lr)        # meta: "gradtool.role": "optimizer"
	w1_next = Sub(w1, s1)        # meta: "gradtool.role": "optimizer"
	s2 = Mul(w2_grad, lr)        # meta: "gradtool.role": "optimizer"
	w2_next = Sub(w2, s2)        # meta: "gradtool.role": "optimizer"
}`

func TestExplain(t *testing.T) {
	m := parse(t, stepText)
	l, err := memplan.Analyze(m.Graph, nil, memplan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range l.Holdings(l.At) {
		got = append(got, fmt.Sprintf("%s, %s: %s", h.Name(), h.Category(), h.Why))
	}
	want := []string{
		`a, activations: read by "on" (Greater) of the backward part at step 8`,
		`y, activations: read here, graph output`,
		`w2_grad, gradients: read by "s2" (Mul) of the optimizer part at step 14`,
		`w2t, gradients: read here for the last time`,
		`da, gradients: made here, read by "dh" (Where) of the backward part at step 9`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("at step %d:\n%s\nwant\n%s", l.At, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// The Transpose of w2 would do, but is read here; a could be made again from h, but that is gone.
	if s, ok := l.Cheapest(l.At); ok {
		t.Errorf("unexpected saving: %s", s.Text)
	}
	for step, sum := range l.Use {
		for _, by := range l.ByCategory() {
			sum -= by[step]
		}
		if sum != 0 {
			t.Errorf("step %d: categories miss %d bytes", step, sum)
		}
	}
}

func TestCheapest(t *testing.T) {
	m := parse(t, `g (float[8,8] x) => (float[8,8] y) { a = Sigmoid(x) b = MatMul(a, x) c = MatMul(b, b) d = MatMul(c, b) e = MatMul(d, a) y = MatMul(e, b) }`)
	l, err := memplan.Analyze(m.Graph, nil, memplan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, ok := l.Cheapest(3)
	if !ok || s.Bytes != 256 || s.Text != `compute "a" (Sigmoid) again in front of step 4, from what is alive then anyway` {
		t.Errorf("%+v", s)
	}
	if n := m.Graph.Nodes[1]; memplan.FLOPs(n) != 1024 {
		t.Errorf("product takes %g FLOPs", memplan.FLOPs(n))
	}
}

// TestDraw checks that drawings are well-formed and hold every buffer.
func TestDraw(t *testing.T) {
	m := parse(t, stepText)
	made, err := memplan.Make(m.Graph, memplan.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := made.SVG(&b); err != nil {
		t.Fatal(err)
	}
	rects := 0
	for d := xml.NewDecoder(strings.NewReader(b.String())); ; {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("SVG: %v", err)
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "title" {
			rects++
		}
	}
	if rects != len(made.Buffers) {
		t.Errorf("SVG has %d rectangles for %d buffers", rects, len(made.Buffers))
	}
	b.Reset()
	if err := made.HTML(&b, "a < b"); err != nil || !strings.Contains(b.String(), "<h1>a &lt; b</h1>") || !strings.Contains(b.String(), "</html>") {
		t.Errorf("HTML: %v, %.80s", err, b.String())
	}
	b.Reset()
	if err := made.CSV(&b); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
	if err != nil || len(rows) != 1+len(made.Plan(nil).Values) {
		t.Errorf("CSV has %d rows: %v", len(rows), err)
	}
	b.Reset()
	if err := made.Trace(&b); err != nil {
		t.Fatal(err)
	}
	var trace struct {
		TraceEvents []map[string]any
	}
	if err := json.Unmarshal([]byte(b.String()), &trace); err != nil || len(trace.TraceEvents) != 2*len(made.Order) {
		t.Errorf("trace has %d events: %v", len(trace.TraceEvents), err)
	}
	b.Reset()
	if err := made.Chart(&b, 60, 8); err != nil || strings.Count(b.String(), "\n") != 11 || !strings.Contains(b.String(), "g") {
		t.Errorf("chart: %v\n%s", err, b.String())
	}
}
