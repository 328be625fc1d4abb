package memplan_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gradtool/memplan"
)

// makePlan plans the main graph of a model given as text.
func makePlan(t *testing.T, text string) *memplan.Made {
	t.Helper()
	m := parse(t, text)
	made, err := memplan.Make(m.Graph, memplan.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Apply()
	if err := memplan.Check(m.Graph, made.Plan(nil)); err != nil {
		t.Fatal(err)
	}
	return made
}

// TestReportedOrders has graphs of reports on other tools whose order made them need more memory than they had to.
func TestReportedOrders(t *testing.T) {
	const mib = 1 << 18 // elements
	// Sixteen large temporaries that a fusion made live at once (openxla/xla #27322).
	var wide strings.Builder
	wide.WriteString(fmt.Sprintf("g (float[%d] x) => (float[] y) { ", mib))
	for i := range 16 {
		fmt.Fprintf(&wide, "t%d = Tanh(x) ", i)
	}
	for i := range 16 {
		fmt.Fprintf(&wide, "s%d = ReduceSum<keepdims=0>(t%d) ", i, i)
	}
	wide.WriteString("y = Sum(")
	for i := range 16 {
		fmt.Fprintf(&wide, "s%d%s", i, map[bool]string{true: ") }", false: ", "}[i == 15])
	}
	// Steps of a recurrent network whose backward part ran from the first to the last, so that the gradients of all stayed
	// alive (apache/mxnet #3784).
	var steps strings.Builder
	steps.WriteString("g (float[64,256] x, float[256,256] w) => (float[256,256] w_grad, float[64,256] y) { d8 = Tanh(x) ")
	for i := 7; i >= 0; i-- {
		fmt.Fprintf(&steps, "d%d = MatMul(d%d, w) ", i, i+1)
	}
	for i := range 9 {
		fmt.Fprintf(&steps, "t%d = Transpose(d%d) ", i, i)
	}
	for i := range 9 {
		fmt.Fprintf(&steps, "g%d = MatMul(t%d, d%d) ", i, i, i)
	}
	steps.WriteString("a1 = Add(g0, g1) ")
	for i := 2; i < 9; i++ {
		fmt.Fprintf(&steps, "%s = Add(a%d, g%d) ", map[bool]string{true: "w_grad", false: fmt.Sprintf("a%d", i)}[i == 8], i-1, i)
	}
	steps.WriteString("y = Neg(d0) }")
	for _, c := range []struct {
		name, text string
		own, peak  int64 // bytes in the order given, and what the plan may need
	}{
		{"a wide row of temporaries", wide.String(), 16*4*mib + 4, 4*mib + 16*4},
		// 65,536 bytes for each d and t, 262,144 for each g and sum: all g, the first sum and d0 at one time. Nine d are needed
		// in any order that comes to d0 first; beside them no more than three g.
		{"gradients of time steps", steps.String(), 10*262144 + 65536, 3*262144 + 9*65536},
		// A block with a strided shortcut: sizes 100, 100, 25, 100, 100 (nntrainer #1126).
		{"the shortcut of a residual block", `g (float[10,10] x) => (float[5,5] y) {
			l = MatMul(x, x) p = MatMul(l, l) m = MatMul(l, x) n = MatMul(p, m)
			s = Constant<value: tensor = int64[2] {0,0}>() e = Constant<value: tensor = int64[2] {5,5}>()
			q = Slice(n, s, e) r = Slice(l, s, e) y = Add(q, r) }`, 1600, 1300},
		// The branch that shrinks goes first (Samsung/ONE #8089).
		{"two branches", `g (float[32,32] x) => (float[1,32] y) { i = Constant<value: tensor = int64[1] {0}>()
			a = MatMul(x, x) left = MatMul(a, x) big = Concat<axis=0>(left, left) l = ReduceSum(big, i)
			right = MatMul(a, a) r = ReduceSum(right, i) y = Sub(l, r) }`, 16384, 12288 + 128},
	} {
		made := makePlan(t, c.text)
		if made.Given != c.own || made.Peak > c.peak {
			t.Errorf("%s: own order %d, want %d; planned %d, want at most %d", c.name, made.Given, c.own, made.Peak, c.peak)
		}
		if made.Peak > made.Shared || made.Arena < made.Peak || made.Peak < made.Floor {
			t.Errorf("%s: shared %d, planned %d, arena %d, floor %d", c.name, made.Shared, made.Peak, made.Arena, made.Floor)
		}
	}
}

// TestReportedCNN is a network for a microcontroller whose users could not see which tensors its arena of 1.47 MB was for
// (tensorflow/tflite-micro #2513).
func TestReportedCNN(t *testing.T) {
	made := makePlan(t, `g (float[1,1,125,90] x, float[32,1,3,3] w1, float[32,32,3,3] w2, float[4928,2] w3) => (float[1,2] y) {
		c1 = Conv<pads=[1,1,1,1]>(x, w1) r1 = Relu(c1) p1 = MaxPool<kernel_shape=[4,4],strides=[4,4]>(r1)
		c2 = Conv<pads=[1,1,1,1]>(p1, w2) r2 = Relu(c2) p2 = MaxPool<kernel_shape=[4,4],strides=[4,4]>(r2)
		f = Flatten(p2) h = Slice(f, z, e, one) y = MatMul(h, w4)
		z = Constant<value: tensor = int64[1] {0}>() e = Constant<value: tensor = int64[1] {2}>() one = Constant<value: tensor = int64[1] {1}>() w4 = Constant<value: tensor = float[2,2] {1,2,3,4}>() }`)
	list := made.Holdings(made.At)
	if made.Peak != 125*90*32*4+31*22*32*4 || len(list) != 2 {
		t.Fatalf("peak %d with %d buffers", made.Peak, len(list))
	}
	if list[0].Name() != "r1" || list[0].Buffer.Bytes != 125*90*32*4 || list[0].Why != "read here for the last time" || list[1].Name() != "p1" {
		t.Errorf("%s: %s; %s: %s", list[0].Name(), list[0].Why, list[1].Name(), list[1].Why)
	}
}

// TestSamePlan makes each plan several times: equal graphs have equal plans (pytorch/pytorch #196512 had peaks that differed from
// process to process).
func TestSamePlan(t *testing.T) {
	for seed := range uint64(10) {
		var first []byte
		for range 4 {
			raw, err := json.Marshal(planned(t, randomGraph(t, 500+seed, 80)))
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = raw
			}
			if !bytes.Equal(first, raw) {
				t.Fatalf("seed %d: two plans of the same graph differ", seed)
			}
		}
	}
}

// TestNeverWorse checks on random graphs that no plan has a higher peak than the order given, nor a lower one than the floor.
func TestNeverWorse(t *testing.T) {
	better := 0
	for seed := range uint64(40) {
		m := randomGraph(t, 2000+seed, 10+3*int(seed))
		made, err := memplan.Make(m.Graph, memplan.PlanOptions{Effort: 1_000_000, Search: 5_000_000})
		if err != nil {
			t.Fatal(err)
		}
		if made.Peak < made.Shared {
			better++
		}
		// An arena may be larger than the peak of the order given; then the order given has been tried too.
		if made.Peak < made.Floor || made.Shared > made.Given || made.Peak > made.Arena {
			t.Errorf("seed %d: own %d, shared %d, planned %d, floor %d, arena %d", seed, made.Given, made.Shared, made.Peak, made.Floor, made.Arena)
		}
		kept, err := memplan.Make(m.Graph, memplan.PlanOptions{Effort: 1_000_000, KeepOrder: true})
		if err != nil {
			t.Fatal(err)
		}
		if kept.Peak != made.Shared || made.Arena > kept.Arena {
			t.Errorf("seed %d: arena %d, in the order given %d", seed, made.Arena, kept.Arena)
		}
	}
	if better < 20 {
		t.Errorf("only %d of 40 orders are better than random ones", better)
	}
}
