package fuse_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gradtool/fuse"
)

// attentionSpelling writes an attention in one of many ways: which axes are known, where scores are scaled, masked and limited, how masks are
// made, whether heads are repeated.
func attentionSpelling(rng *rand.Rand) string {
	var b strings.Builder
	n := 0
	node := func(format string, args ...any) string {
		n++
		name := fmt.Sprintf("n%d", n)
		fmt.Fprintf(&b, name+" = "+format+"\n", args...)
		return name
	}
	float := func(x string) string { return node("Constant<value: tensor = float {%s}>()", x) }
	ints := func(x ...int) string {
		return node("Constant<value: tensor = int64[%d] {%s}>()", len(x), strings.Trim(strings.ReplaceAll(fmt.Sprint(x), " ", ","), "[]"))
	}
	one := func(list ...string) string { return list[rng.IntN(len(list))] }
	rows, columns := one("3", "N", "1"), one("3", "N", "M", "1")
	heads, kv, repeat := 4, 4, rng.IntN(3) == 0
	if repeat {
		kv = 2
	}
	inputs := []string{fmt.Sprintf("float[2,%d,%s,4] q", heads, rows), fmt.Sprintf("float[2,%d,%s,4] k", kv, columns), fmt.Sprintf("float[2,%d,%s,5] v", kv, columns)}
	k, v := "k", "v"
	// The products may be of all batches and heads in a row.
	flat := !repeat && rows != "N" && columns != "N" && columns != "M" && rng.IntN(2) == 0
	places, perm := "start=2, end=3", "0,1,3,2"
	if flat {
		inputs = []string{fmt.Sprintf("float[8,%s,4] q", rows), fmt.Sprintf("float[8,%s,4] k", columns), fmt.Sprintf("float[8,%s,5] v", columns)}
		places, perm = "start=1, end=2", "0,2,1"
	}
	shapeTo := func(x string, dims string) string {
		return node("Reshape(%s, %s)", x, node("Constant<value: tensor = int64[%d] {%s}>()", strings.Count(dims, ",")+1, dims))
	}
	if repeat {
		axis := ints(2)
		for i, x := range []*string{&k, &v} {
			u := node("Unsqueeze(%s, %s)", *x, axis)
			wide := ""
			switch rng.IntN(3) {
			case 0:
				wide = node("Expand(%s, %s)", u, ints(1, 1, 2, 1, 1))
			case 1:
				wide = node("Tile(%s, %s)", u, ints(1, 1, 2, 1, 1))
			default:
				wide = node("Concat<axis=2>(%s, %s)", u, u)
			}
			*x = node("Reshape(%s, %s)", wide, ints(0, 4, -1, 4+i))
		}
	}
	q, t := "q", node("Transpose<perm=["+perm+"]>(%s)", k)
	if rng.IntN(3) == 0 {
		q = node("Mul(%s, %s)", q, float("0.7"))
	}
	if rng.IntN(3) == 0 {
		t = node("Div(%s, %s)", t, float("1.5"))
	}
	s := node("MatMul(%s, %s)", q, t)
	if flat {
		if rng.IntN(3) == 0 {
			s = node("Mul(%s, %s)", s, float("0.8"))
		}
		s = shapeTo(s, "2,4,"+rows+","+columns)
	}
	shape := func() string {
		lead := one("", "1,1,", "2,1,", "2,4,", "1,4,", "1,")
		return "[" + lead + one(rows, rows, "1") + "," + one(columns, columns, "1") + "]"
	}
	triangle := func() string {
		size := node("Concat<axis=0>(%s, %s)", node("Shape<"+places+">(q)"), node("Shape<"+places+">(k)"))
		o := node("ConstantOfShape<value: tensor = float[1] {1}>(%s)", size)
		upper, d := rng.IntN(2), rng.IntN(2)
		l := node("Trilu<upper=%d>(%s, %s)", upper, o, node("Constant<value: tensor = int64 {%d}>()", d))
		if rng.IntN(2) == 0 {
			return node("Equal(%s, %s)", l, float("0"))
		}
		return node("Cast<to=9>(%s)", l)
	}
	// Two finite numbers that hide scores leave rows that their rounding decides.
	finite := false
	fill := func() string {
		x := one("-inf", "-3e38", "-1e9", "-10000", "-2", "0")
		if finite {
			x = "-inf"
		}
		finite = finite || x != "-inf"
		return float(x)
	}
	for range rng.IntN(4) {
		switch rng.IntN(8) {
		case 0:
			s = node("Mul(%s, %s)", s, float(one("0.5", "2", "-1")))
		case 1:
			s = node("Div(%s, %s)", s, float("3"))
		case 2:
			m := fmt.Sprintf("m%d", len(inputs))
			inputs = append(inputs, "float"+shape()+" "+m)
			s = node("%s(%s, %s)", one("Add", "Add", "Sub"), s, m)
		case 3:
			m := fmt.Sprintf("m%d", len(inputs))
			inputs = append(inputs, "float"+shape()+" "+m)
			c := node("Greater(%s, %s)", m, float("0"))
			if rng.IntN(2) == 0 {
				s = node("Where(%s, %s, %s)", c, s, fill())
			} else {
				s = node("Where(%s, %s, %s)", c, fill(), s)
			}
		case 4, 5:
			c := triangle()
			switch rng.IntN(3) {
			case 0:
				s = node("Where(%s, %s, %s)", c, s, fill())
			case 1:
				s = node("Where(%s, %s, %s)", c, fill(), s)
			default:
				s = node("Add(%s, %s)", s, node("Where(%s, %s, %s)", c, float("0"), fill()))
			}
		case 6:
			c := float("2.5")
			s = node("Mul(%s, %s)", node("Tanh(%s)", node("Div(%s, %s)", s, c)), c)
		case 7:
			r := node("Range(%s, %s, %s)", node("Constant<value: tensor = int64 {0}>()"), node("Squeeze(%s)", node("Shape<"+places+">(q)")), node("Constant<value: tensor = int64 {1}>()"))
			c := node("%s(%s, %s)", one("GreaterOrEqual", "LessOrEqual", "Less", "Greater"), node("Unsqueeze(%s, %s)", r, ints(rng.IntN(2))), r)
			s = node("Where(%s, %s, %s)", c, s, fill())
		}
	}
	p := node("Softmax<axis=%s>(%s)", one("-1", "3"), s)
	if rng.IntN(4) == 0 {
		p = node("Where(%s, %s, %s)", node("IsNaN(%s)", p), float("0"), p)
	}
	out := "float[A,B,C,D] y"
	if flat {
		p, out = shapeTo(p, "8,"+rows+","+columns), "float[A,B,C] y"
	}
	fmt.Fprintf(&b, "y = MatMul(%s, %s)\n", p, v)
	return "g (" + strings.Join(inputs, ", ") + ") => (" + out + ") {\n" + b.String() + "}"
}

// TestAttentionRandom compares attentions in random spellings with what the rules make of them. A row in which nothing is left is not a
// number in the model, unless that is guarded, and 0 for the operator.
func TestAttentionRandom(t *testing.T) {
	made, tried := 0, 0
	for seed := range uint64(500) {
		text := attentionSpelling(rand.New(rand.NewPCG(seed, 3)))
		plain, _, err := tryCanonical(text)
		if err != nil {
			continue // shapes that do not go together
		}
		m, info, err := tryCanonical(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fuse.Rewrite(m, info, fuse.Target{Standard: true, Opset: 23}); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		want, err := tryCompute(plain, seed)
		if err != nil {
			continue
		}
		tried++
		if !strings.Contains(ops(m), "Attention") {
			continue
		}
		made++
		got, err := tryCompute(m, seed)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		for k := range want[0].Len() {
			a, b := want[0].Float(k), got[0].Float(k)
			if math.IsNaN(a) && b == 0 {
				continue
			}
			if d := math.Abs(a - b); !(d <= 1e-5*(1+math.Abs(a))) {
				t.Fatalf("seed %d, element %d: %g, was %g\n%s\nbecame\n%s", seed, k, b, a, text, m)
			}
		}
	}
	t.Logf("%d of %d became Attention", made, tried)
	if made < tried/4 {
		t.Errorf("only %d of %d became Attention", made, tried)
	}
}
