package batch

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"gradtool/graph"
	"gradtool/graph/interp"
	"gradtool/graph/op"
)

func machine(t *testing.T, m *graph.Model) *interp.Machine {
	t.Helper()
	p, err := interp.New(m, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// distance reports how far two results are apart, relative to the largest element.
func distance(a, b *op.Array) (float64, error) {
	if fmt.Sprint(a.Shape) != fmt.Sprint(b.Shape) || a.Elem != b.Elem {
		return 0, fmt.Errorf("%s%v, want %s%v", b.Elem, b.Shape, a.Elem, a.Shape)
	}
	scale, worst := 0.0, 0.0
	for i := range a.Len() {
		switch {
		case a.Str != nil:
			if a.Str[i] != b.Str[i] {
				return 0, fmt.Errorf("element %d is %q, want %q", i, b.Str[i], a.Str[i])
			}
		case a.C128 != nil:
			if a.C128[i] != b.C128[i] {
				return 0, fmt.Errorf("element %d is %v, want %v", i, b.C128[i], a.C128[i])
			}
		case a.I64 != nil:
			if a.I64[i] != b.I64[i] {
				return 0, fmt.Errorf("element %d is %d, want %d", i, b.I64[i], a.I64[i])
			}
		default:
			x, y := a.Float(i), b.Float(i)
			if x == y || math.IsNaN(x) && math.IsNaN(y) {
				continue
			}
			if math.IsNaN(x) || math.IsNaN(y) || math.IsInf(x, 0) || math.IsInf(y, 0) {
				return 0, fmt.Errorf("element %d is %v, want %v", i, y, x)
			}
			worst = max(worst, math.Abs(x-y))
			scale = max(scale, math.Abs(x))
		}
	}
	return worst / max(scale, 1e-30), nil
}

// variant is one way to see a batch in an operator's sample.
type variant struct {
	name  string
	seeds func(m *graph.Model) ([]origin, graph.Dim)
}

// variants takes each axis of each input for the batch, alone and with every axis that has the same place in another, and
// halves of axes, of which the outer or the inner one is the batch.
func variants(m *graph.Model, shapes [][]int) []variant {
	var list []variant
	for i, s := range shapes {
		for a, d := range s {
			if d < 2 {
				continue
			}
			dim := func(m *graph.Model) graph.Dim { return m.Graph.Inputs[i].Type.Shape[a] }
			list = append(list, variant{fmt.Sprintf("x%d axis %d", i, a), func(m *graph.Model) ([]origin, graph.Dim) {
				return []origin{{m.Graph.Inputs[i], plain(a)}}, dim(m)
			}})
			list = append(list, variant{fmt.Sprintf("all like x%d axis %d", i, a), func(m *graph.Model) ([]origin, graph.Dim) {
				seeds := []origin{{m.Graph.Inputs[i], plain(a)}}
				for j, t := range shapes {
					for b := range t {
						if j != i && t[b] == d && (b == a || len(t)-b == len(s)-a) {
							seeds = append(seeds, origin{m.Graph.Inputs[j], plain(b)})
							break
						}
					}
				}
				return seeds, dim(m)
			}})
			if _, known := dim(m).Int(); known && d%2 == 0 && d > 2 {
				two, rest := graph.Known(2), graph.Known(int64(d/2))
				list = append(list, variant{fmt.Sprintf("x%d axis %d outer", i, a), func(m *graph.Model) ([]origin, graph.Dim) {
					return []origin{{m.Graph.Inputs[i], &place{axis: a, outer: one, inner: two}}}, rest
				}}, variant{fmt.Sprintf("x%d axis %d inner", i, a), func(m *graph.Model) ([]origin, graph.Dim) {
					return []origin{{m.Graph.Inputs[i], &place{axis: a, outer: two, inner: one}}}, rest
				}})
			}
		}
	}
	return list
}

// TestSamples divides the sample applications of all operators along each axis: what is divided must compute what the whole does,
// to the bit where no sums are involved.
func TestSamples(t *testing.T) {
	divided, empty := map[string]int{}, 0
	for _, d := range op.All() {
		if d.Eval == nil || d.Has(op.Random) && d.Name != "Dropout" {
			continue
		}
		for si, s := range samples(d) {
			for _, hide := range []string{"", "symbols"} {
				fresh := func() (*graph.Model, *op.Info, []*op.Array) {
					m, feed, err := op.SampleModel(d, s, 1, hide)
					if err != nil {
						t.Fatal(err)
					}
					info, err := op.Infer(m)
					if err != nil {
						return nil, nil, nil
					}
					return m, info, feed
				}
				m, _, feed := fresh()
				if m == nil {
					continue
				}
				var shapes [][]int
				for _, a := range feed {
					if a.Kind != graph.KindTensor {
						a = &op.Array{}
					}
					shapes = append(shapes, a.Shape)
				}
				valid := op.Verify(m) == nil
				want, err := machine(t, m).Run(feed)
				if err != nil {
					continue
				}
				for _, v := range variants(m, shapes) {
					for _, k := range []int{2, 3} {
						m, info, feed := fresh()
						seeds, n := v.seeds(m)
						name := fmt.Sprintf("%s %s, %s, %d parts %s", op.Key{Domain: d.Domain, Name: d.Name}, s.Title(si), v.name, k, hide)
						res, err := split(m, info, Options{Parts: k}, seeds, n)
						if errors.Is(err, ErrNothing) {
							continue
						}
						if err != nil {
							t.Errorf("%s: %v", name, err)
							continue
						}
						if err := graph.Verify(m); err != nil {
							t.Errorf("%s: %v", name, err)
							continue
						}
						if err := op.Verify(m); err != nil && valid {
							t.Errorf("%s: %v", name, err)
							continue
						}
						divided[d.Name]++
						got, err := machine(t, m).Run(feed)
						if err != nil {
							if res.Parts > minLen(feed) { // a part without samples, which some operators refuse
								empty++
								continue
							}
							t.Errorf("%s: %v\n%s", name, err, m)
							continue
						}
						tol := 0.0
						if res.Summed > 0 {
							tol = 1e-5
							for _, a := range want {
								if a.IsFloat() && a.Elem.Bits() < 32 {
									tol = 2e-2
								}
							}
						}
						for i := range want {
							if dist, err := distance(want[i], got[i]); err != nil || dist > tol {
								t.Errorf("%s: output %d: %v, distance %v\n%s", name, i, err, dist, m)
								break
							}
						}
					}
				}
			}
		}
	}
	for name := range table() {
		opaque := map[string]bool{"Shape": true, "Size": true, "ConvInteger": true, // whose samples have one image
			"ConstantOfShape": true, "EyeLike": true, "Range": true, "Compress": true, "NonZero": true, "Unique": true, "MaxUnpool": true}
		if divided[name] == 0 && !opaque[name] {
			t.Errorf("no sample of %s is divided", name)
		}
	}
	t.Logf("%d operators divided, %d runs with empty parts refused", len(divided), empty)
}

// samples returns the samples of an operator, those of a constant operand 0 with one that is none, too.
func samples(d *op.Def) []op.Sample {
	list := slices.Clone(d.Samples)
	for _, s := range d.Samples {
		if s.Build == nil && len(s.In) > 0 && s.In[0].Const {
			s.In = slices.Clone(s.In)
			s.In[0] = s.In[0].Variable()
			list = append(list, s)
		}
	}
	return list
}

func minLen(feed []*op.Array) int {
	n := math.MaxInt
	for _, a := range feed {
		for _, d := range a.Shape {
			n = min(n, d)
		}
	}
	return n
}
