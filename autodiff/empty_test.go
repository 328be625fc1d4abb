package autodiff

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

// TestEmptyBatch takes the batch of every sample, the first dimension of its first operand, the second of a recurrent
// one's, and of those others of the same length that have to follow, to zero: what runs forward must have a gradient that
// runs, for a batch declared empty and for one of a size known at run time.
func TestEmptyBatch(t *testing.T) {
	tried := 0
	for _, d := range op.All() {
		r := Lookup(op.Key{Domain: d.Domain, Name: d.Name})
		if r == nil || r.Kind != HasVJP && r.Kind != Decomposed {
			continue
		}
		for i, s := range d.Samples {
			if s.NoGrad != "" {
				continue
			}
			for _, empty := range emptied(s, batchAxis(d)) {
				m, feed, err := op.SampleModel(d, empty, 3, "")
				if err != nil {
					continue
				}
				if _, err := op.Infer(m); err != nil || !runs(m, feed) {
					continue
				}
				tried++
				for _, hide := range []string{"", "empty"} {
					t.Run(fmt.Sprintf("%s/%s/%s", d.Name, s.Title(i), hide), func(t *testing.T) {
						c, err := newCheck(d, empty, hide)
						if err == nil {
							err = c.differentiate(1)
						}
						var blocked *BlockedError
						if r.Check != nil && errors.As(err, &blocked) {
							t.Skipf("the rule refuses the node: %v", err)
						}
						if err != nil {
							t.Fatal(err)
						}
						if len(c.wrt) > 0 {
							c.compare(t)
						}
					})
				}
				break
			}
		}
	}
	t.Logf("%d samples", tried)
}

func batchAxis(d *op.Def) int {
	switch d.Name {
	case "RNN", "GRU", "LSTM":
		return 1
	}
	return 0
}

// emptied returns forms of s in which the first operand and some of those of the same length along the axis have no
// elements.
func emptied(s op.Sample, axis int) []op.Sample {
	if s.Build != nil || len(s.In) == 0 || len(s.In[0].Shape) <= axis || s.In[0].Shape[axis] == 0 {
		return nil
	}
	var others []int
	for i, a := range s.In {
		if i > 0 && len(a.Shape) > axis && a.Shape[axis] == s.In[0].Shape[axis] {
			others = append(others, i)
		}
	}
	var forms []op.Sample
	for mask := 1<<len(others) - 1; mask >= 0; mask-- {
		form := s
		form.In = slices.Clone(s.In)
		clear := func(i int) {
			form.In[i].Shape = slices.Clone(form.In[i].Shape)
			if form.In[i].Values != nil {
				form.In[i].Values = []float64{}
			}
			form.In[i].Shape[axis] = 0
		}
		clear(0)
		for k, i := range others {
			if mask>>k&1 == 1 {
				clear(i)
			}
		}
		forms = append(forms, form)
	}
	return forms
}

// runs says whether the model gives numbers.
func runs(m *graph.Model, feed []*op.Array) bool {
	machine, err := interp.New(m, interp.Options{Wide: true})
	if err != nil {
		return false
	}
	outs, err := machine.Run(feed)
	for _, y := range outs {
		for i := range y.Len() {
			if x := y.Float(i); math.IsNaN(x) || math.IsInf(x, 0) { // the mean of nothing
				return false
			}
		}
	}
	return err == nil
}
