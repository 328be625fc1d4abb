package main

import (
	"fmt"
	"math"

	"gradtool/graph/op"
)

// stats describes the elements of a numeric tensor.
type stats struct {
	n                   int // elements that are numbers
	nan, inf            int
	min, max            float64 // of the finite elements
	mean, meanAbs, norm float64 // of the finite elements
}

// statsOf returns the statistics of a, zero for values without numbers.
func statsOf(a *op.Array) stats {
	var s stats
	if !a.IsTensor() || a.Str != nil {
		return s
	}
	s.min, s.max = math.Inf(1), math.Inf(-1)
	for i := range a.Len() {
		x := a.Float(i)
		switch {
		case math.IsNaN(x):
			s.nan++
			continue
		case math.IsInf(x, 0):
			s.inf++
			continue
		}
		s.n++
		s.min, s.max = min(s.min, x), max(s.max, x)
		s.mean += x
		s.meanAbs += math.Abs(x)
		s.norm += x * x
	}
	if s.n == 0 {
		s.min, s.max = 0, 0
		return s
	}
	s.mean /= float64(s.n)
	s.meanAbs /= float64(s.n)
	s.norm = math.Sqrt(s.norm)
	return s
}

// odd says how many elements are not finite, "" for none.
func (s stats) odd() string {
	switch {
	case s.nan > 0 && s.inf > 0:
		return fmt.Sprintf("%d NaN, %d inf", s.nan, s.inf)
	case s.nan > 0:
		return fmt.Sprintf("%d NaN", s.nan)
	case s.inf > 0:
		return fmt.Sprintf("%d inf", s.inf)
	}
	return ""
}

// inner returns the inner product of two real tensors of equal size.
func inner(a, b *op.Array) float64 {
	sum := 0.0
	for i := range a.Len() {
		sum += a.Float(i) * b.Float(i)
	}
	return sum
}

// innerAbs is the sum of the sizes of the terms of inner.
func innerAbs(a, b *op.Array) float64 {
	sum := 0.0
	for i := range a.Len() {
		sum += math.Abs(a.Float(i) * b.Float(i))
	}
	return sum
}
