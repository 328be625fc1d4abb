package graph

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDimString(t *testing.T) {
	n, m, k := Sym("N"), Sym("M"), Sym("k")
	num := Known
	for _, c := range []struct {
		got  Dim
		want string
	}{
		{Dim{}, "?"},
		{num(8), "8"},
		{num(math.MinInt64), "-9223372036854775808"},
		{n, "N"},
		{n.Add(num(0)), "N"},
		{n.Sub(n), "0"},
		{n.Mul(num(2)).Add(num(1)), "2*N + 1"},
		{num(1).Sub(n), "-N + 1"},
		{n.Add(m).Mul(n.Sub(m)), "-M*M + N*N"},
		{n.Mul(num(2)).Add(num(4)).FloorDiv(num(2)), "N + 2"},
		{n.Add(num(1)).FloorDiv(num(1)), "N + 1"},
		{n.Mul(num(4)).Add(k).FloorDiv(num(4)), "N + floor(k/4)"},
		{n.Mul(num(4)).Add(num(6)).FloorDiv(num(8)), "floor((N + 1)/2)"},
		{n.Neg().FloorDiv(num(-2)), "floor(N/2)"},
		{n.Sub(num(1)).FloorDiv(num(2)).Add(num(1)).Sub(num(1)).FloorDiv(num(2)), "floor((N + 3)/4) - 1"},
		{n.CeilDiv(num(2)), "floor((N + 1)/2)"},
		{n.Mul(m).Mul(num(4)).FloorDiv(n), "4*M"},
		{n.Mul(m).FloorDiv(n.Mul(k)), "floor(M/k)"},
		{n.Add(m).Mul(n.Add(num(3))).FloorDiv(n.Add(num(3))), "M + N"},
		{n.Add(num(1)).FloorDiv(n), "floor(1/N) + 1"},
		{n.Mul(m).FloorDiv(k.Add(num(1))), "floor(M*N/(k + 1))"},
		{n.Max(num(0)), "N"},
		{n.Sub(num(3)).Max(num(0)), "max(N - 3, 0)"},
		{n.Min(m).Max(num(0)), "min(M, N)"},
		{n.Max(m).Max(n), "max(M, N)"},
		{n.Min(num(5)).Max(num(7)), "7"},
		{n.Min(num(math.MaxInt64)), "N"},
		{n.Max(num(math.MinInt64)), "N"},
		{n.Max(n.Min(m)), "N"},
		{n.Mod(num(2)), "N - 2*floor(N/2)"},
		{n.Mod(num(2)).FloorDiv(num(2)), "0"},
		{n.Mod(num(1)), "0"},
		{n.Mul(num(6)).Add(num(5)).Mod(num(3)), "2"},
		{Sym("batch size"), "batch size"},
		{Sym("batch size").Add(num(1)), `"batch size" + 1`},
		{Sym("N + 1"), `"N + 1"`},
		{Sym("8"), `"8"`},
		{Sym("?"), `"?"`},
		{Sym("dim-0"), "dim-0"},
		{Sym(""), "?"},
		// Results that cannot be held are unknown.
		{num(7).FloorDiv(num(0)), "?"},
		{n.FloorDiv(num(0)), "?"},
		{num(math.MaxInt64).Add(num(1)), "?"},
		{num(math.MinInt64).Neg(), "?"},
		{num(math.MinInt64).FloorDiv(num(-1)), "?"},
		{n.Mul(num(math.MaxInt64)).Mul(num(2)), "?"},
		{n.Add(num(math.MaxInt64)).Add(num(1)), "?"},
		{n.Add(Dim{}), "?"},
		{num(0).Mul(Dim{}), "?"},
		{num(-5).Sub(num(math.MinInt64)), "9223372036854775803"},
	} {
		if got := c.got.String(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestDimFloorDivNumbers(t *testing.T) {
	for _, c := range []struct{ a, b, floor, ceil, mod int64 }{
		{7, 2, 3, 4, 1}, {-7, 2, -4, -3, 1}, {7, -2, -4, -3, -1}, {-7, -2, 3, 4, -1}, {6, 3, 2, 2, 0}, {0, 5, 0, 0, 0},
	} {
		a, b := Known(c.a), Known(c.b)
		if !a.FloorDiv(b).Same(Known(c.floor)) || !a.CeilDiv(b).Same(Known(c.ceil)) || !a.Mod(b).Same(Known(c.mod)) {
			t.Errorf("%d by %d: floor %v ceil %v mod %v, want %d %d %d", c.a, c.b,
				a.FloorDiv(b), a.CeilDiv(b), a.Mod(b), c.floor, c.ceil, c.mod)
		}
	}
}

func TestParseDim(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", "?"},
		{"?", "?"},
		{"12", "12"},
		{"-1", "-1"},
		{"unk__123", "unk__123"},
		{"DynamicDimension.0", "DynamicDimension.0"},
		{"batch-size", "batch-size"},
		{"N-1", "N-1"},
		{"N - 1", "N - 1"},
		{"2*s0 - 1", "2*s0 - 1"},
		{"past_sequence_length + sequence_length", "past_sequence_length + sequence_length"},
		{"floor(height/2 - 1/2) + 1", "floor((height + 1)/2)"},
		{"floor(0.5*H)", "floor(H/2)"},
		{"ceil(N/2)", "floor((N + 1)/2)"},
		{"Max(1, s0)", "max(s0, 1)"},
		{"s77//2", "floor(s77/2)"},
		{"N % 4", "N - 4*floor(N/4)"},
		{"Mod(N, 4)", "N - 4*floor(N/4)"},
		{"CeilDiv(N, 3)", "floor((N + 2)/3)"},
		{"N**2", "N*N"},
		{"(N + 1)*(N - 1)", "N*N - 1"},
		{"4*N/2", "2*N"},
		{"3 - N", "-N + 3"},
		{"9223372036854775807", "9223372036854775807"},
		// Names, because they are no integer expression.
		{"N/2", "N/2"},
		{"N/0", "N/0"},
		{"0_dim", "0_dim"},
		{"9223372036854775808", "9223372036854775808"},
		{" N", " N"},
		{"f(N)", "f(N)"},
		{"N +", "N +"},
		{"(N", "(N"},
		{"N M", "N M"},
		{"ünï cödé", "ünï cödé"},
		{"\xff", "\xff"},
		{`""`, `""`},
		{strings.Repeat("(", 5000), strings.Repeat("(", 5000)},
	} {
		if got := ParseDim(c.in).String(); got != c.want {
			t.Errorf("ParseDim(%q) = %s, want %s", c.in, got, c.want)
		}
	}
	if !ParseDim("N/2").Same(Sym("N/2")) {
		t.Error("N/2 is not a symbol of that name")
	}
}

func TestDimProofs(t *testing.T) {
	for _, c := range []struct {
		a, b                   string
		equal, not, less, lesq bool
	}{
		{"N", "N", true, false, false, true},
		{"N", "M", false, false, false, false},
		{"N", "N + 1", false, true, true, true},
		{"2*N", "3", false, true, false, false},
		{"2*N + 4*M", "7", false, true, false, false},
		{"N + 1", "0", false, true, false, false},
		{"0", "N", false, false, false, true},
		{"0", "N*M + 1", false, true, true, true},
		{"floor((N + 1)/2)", "N - floor(N/2)", true, false, false, true},
		{"max(N, M)", "N + M", false, false, false, true},
		{"min(N, M)", "N", false, false, false, true},
		{"N", "max(N, M)", false, false, false, true},
		{"floor(N/2)", "N", false, false, false, true},
		{"N - 2*floor(N/2)", "2", false, true, true, true},
		{"0", "floor((N - 1)/2) + 1", false, false, false, true},
		{"max(N - 3, 0)", "N + 1", false, true, true, true},
		{"4*M*floor(N/4)", "M*N", false, false, false, true},
		{"?", "?", false, false, false, false},
		{"?", "3", false, false, false, false},
		{"3", "4", false, true, true, true},
		{"max(N, 3) + 1", "max(N + 1, 4)", true, false, false, true},
	} {
		a, b := ParseDim(c.a), ParseDim(c.b)
		if got := a.Equal(b); got != c.equal {
			t.Errorf("%s equal %s: %v", a, b, got)
		}
		if got := a.ProvablyNot(b); got != c.not {
			t.Errorf("%s never equal %s: %v", a, b, got)
		}
		if got := a.Less(b); got != c.less {
			t.Errorf("%s < %s: %v", a, b, got)
		}
		if got := a.LessEq(b); got != c.lesq {
			t.Errorf("%s <= %s: %v", a, b, got)
		}
	}
}

func TestDimSubst(t *testing.T) {
	d := ParseDim("N*M + floor((N + 1)/2) - max(M - 4, 0)")
	if got := d.Eval(map[string]int64{"N": 3}).String(); got != "3*M - max(M - 4, 0) + 2" {
		t.Errorf("N = 3: %s", got)
	}
	if got := d.Eval(map[string]int64{"N": 3, "M": 10}); !got.Same(Known(26)) {
		t.Errorf("N = 3, M = 10: %s", got)
	}
	if got := d.Subst(map[string]Dim{"N": ParseDim("2*K"), "M": Known(0)}).String(); got != "K" {
		t.Errorf("N = 2*K, M = 0: %s", got)
	}
	if !d.Subst(map[string]Dim{"N": {}}).IsUnknown() {
		t.Error("an unknown replacement gives a known result")
	}
	if got := strings.Join(d.Symbols(), " "); got != "M N" {
		t.Errorf("symbols %s", got)
	}
}

// TestDimBounded checks that growth ends in unknown, and quickly.
func TestDimBounded(t *testing.T) {
	sum := Known(1)
	for i := range 100 {
		sum = sum.Add(Sym("n" + itoa(int64(i))))
	}
	if !sum.IsUnknown() {
		t.Errorf("a sum of 100 symbols is %s", sum)
	}
	d := ParseDim("N + M + K + 1")
	for range 12 {
		d = d.Mul(d)
	}
	if !d.IsUnknown() {
		t.Error("a power of 4096 is not unknown")
	}
	d = Sym("N")
	for i := range 500 {
		d = d.Max(Sym("M" + itoa(int64(i)))).Min(Sym("K" + itoa(int64(i))))
	}
	if !d.IsUnknown() {
		t.Error("500 nested extrema are not unknown")
	}
}

func TestDimKnownAllocatesNothing(t *testing.T) {
	a, b := Known(12), Known(5)
	var sink Dim
	if n := testing.AllocsPerRun(100, func() {
		sink = a.Add(b).Mul(b).Sub(a).FloorDiv(b).Max(b).Min(a).Mod(b).CeilDiv(b)
		_ = sink.Equal(a) || sink.ProvablyNot(b) || sink.Less(a)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// dimPair is a Dim and the same computation on numbers; ok is false where the
// numbers have no result (division by zero) or a doubtful one (overflow).
type dimPair struct {
	d    Dim
	eval func(bind map[string]int64) (v int64, ok bool)
}

var dimSymbols = []string{"N", "M", "K", "batch size"}

func drawDim(t *rapid.T, depth int) dimPair {
	kind := 0
	if depth > 0 {
		kind = rapid.IntRange(0, 9).Draw(t, "kind")
	} else {
		kind = rapid.IntRange(0, 1).Draw(t, "leaf")
	}
	switch kind {
	case 0:
		n := rapid.Int64Range(-6, 6).Draw(t, "n")
		return dimPair{Known(n), func(map[string]int64) (int64, bool) { return n, true }}
	case 1:
		s := rapid.SampledFrom(dimSymbols).Draw(t, "sym")
		return dimPair{Sym(s), func(b map[string]int64) (int64, bool) { return b[s], true }}
	}
	x, y := drawDim(t, depth-1), drawDim(t, depth-1)
	both := func(d Dim, f func(a, b int64) (int64, bool)) dimPair {
		return dimPair{d, func(bind map[string]int64) (int64, bool) {
			a, ok1 := x.eval(bind)
			b, ok2 := y.eval(bind)
			if !ok1 || !ok2 {
				return 0, false
			}
			v, ok := f(a, b)
			return v, ok && v < 1<<40 && v > -1<<40
		}}
	}
	floorOf := func(a, b int64) int64 { return int64(math.Floor(float64(a) / float64(b))) }
	switch kind {
	case 2, 3:
		return both(x.d.Add(y.d), func(a, b int64) (int64, bool) { return a + b, true })
	case 4:
		return both(x.d.Sub(y.d), func(a, b int64) (int64, bool) { return a - b, true })
	case 5:
		return both(x.d.Mul(y.d), func(a, b int64) (int64, bool) {
			f := float64(a) * float64(b)
			return a * b, math.Abs(f) < 1<<40
		})
	case 6:
		return both(x.d.FloorDiv(y.d), func(a, b int64) (int64, bool) {
			if b == 0 {
				return 0, false
			}
			return floorOf(a, b), true
		})
	case 7:
		return both(x.d.CeilDiv(y.d), func(a, b int64) (int64, bool) {
			if b == 0 {
				return 0, false
			}
			return int64(math.Ceil(float64(a) / float64(b))), true
		})
	case 8:
		return both(x.d.Max(y.d), func(a, b int64) (int64, bool) { return max(a, b), true })
	}
	return both(x.d.Min(y.d), func(a, b int64) (int64, bool) { return min(a, b), true })
}

func drawBindings(t *rapid.T) map[string]int64 {
	bind := map[string]int64{}
	for _, s := range dimSymbols {
		bind[s] = rapid.Int64Range(0, 9).Draw(t, s)
	}
	return bind
}

// TestDimAgainstNumbers compares expressions with direct evaluation: Eval in
// one step and in two, the bounds, and the text read back.
func TestDimAgainstNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawDim(t, rapid.IntRange(0, 5).Draw(t, "depth"))
		if back := ParseDim(p.d.String()); !back.Same(p.d) {
			t.Fatalf("%s reads back as %s", p.d, back)
		}
		for range 5 {
			bind := drawBindings(t)
			want, ok := p.eval(bind)
			if !ok || p.d.IsUnknown() {
				continue
			}
			got := p.d.Eval(bind)
			if !got.Same(Known(want)) {
				t.Fatalf("%s at %v is %s, want %d", p.d, bind, got, want)
			}
			part := p.d.Eval(map[string]int64{"N": bind["N"]}).Eval(bind)
			if !part.Same(Known(want)) {
				t.Fatalf("%s at %v in two steps is %s, want %d", p.d, bind, part, want)
			}
			lo, hi, loKnown, hiKnown := p.d.Bounds()
			if loKnown && want < lo || hiKnown && want > hi {
				t.Fatalf("%s at %v is %d, outside its bounds [%d %v, %d %v]", p.d, bind, want, lo, loKnown, hi, hiKnown)
			}
		}
	})
}

// TestDimProofsHold checks that what is called proved holds under bindings.
func TestDimProofsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q := drawDim(t, 3), drawDim(t, 3)
		if rapid.Bool().Draw(t, "near") { // most random pairs prove nothing
			n := rapid.Int64Range(-1, 1).Draw(t, "off")
			q = dimPair{p.d.Add(Known(n)), func(b map[string]int64) (int64, bool) {
				v, ok := p.eval(b)
				return v + n, ok
			}}
		}
		for range 5 {
			bind := drawBindings(t)
			a, ok1 := p.eval(bind)
			b, ok2 := q.eval(bind)
			if !ok1 || !ok2 {
				continue
			}
			if p.d.Equal(q.d) && a != b || p.d.ProvablyNot(q.d) && a == b ||
				p.d.Less(q.d) && a >= b || p.d.LessEq(q.d) && a > b {
				t.Fatalf("%s and %s at %v: %d and %d; equal %v, not %v, less %v, less or equal %v", p.d, q.d, bind, a, b,
					p.d.Equal(q.d), p.d.ProvablyNot(q.d), p.d.Less(q.d), p.d.LessEq(q.d))
			}
		}
	})
}

func FuzzParseDim(f *testing.F) {
	for _, s := range []string{"N", "2*N + 1", "floor((N - 1)/2)", "max(N, 0)", `"a b"*3`, "1.5*N", "N**3", "-N", "a-b", "floor(N/(M + 1))"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d := ParseDim(s)
		if back := ParseDim(d.String()); !back.Same(d) {
			t.Fatalf("%q gives %s, which reads back as %s", s, d, back)
		}
	})
}
