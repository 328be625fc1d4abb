package offset

import "slices"

// layersFrom is the number of buffers from which on orders by class and in layers are tried.
const layersFrom = 64

// layered reports whether the order is more than one of properties.
func (o greedyOrder) layered() bool { return o.class > 0 || o.small > 0 }

// greedy returns the buffers of group in a greedy order. In layers small buffers that live long come first, the longest
// before all: they make a step of little height at the bottom, on which the large ones stand side by side. Placed later they
// find no hole that is free for so long, and placed among the large ones they set these apart by their little sizes, which no
// other buffer can use. Small ones that live briefly come last, and go into what holes there are.
func (k *keys) greedy(group []int32, o greedyOrder, goal int64) []int32 {
	if o.small == 0 {
		list := k.order(group, o.letters)
		k.classes(list, o.class, goal)
		return list
	}
	begin, end := k.in.lower[group[0]], k.in.lower[group[0]]
	for _, i := range group {
		begin, end = min(begin, k.in.lower[i]), max(end, k.in.lower[i]+k.in.length[i])
	}
	var bottom, large, brief []int32
	for _, i := range group {
		switch {
		case k.in.size[i] >= goal/o.small:
			large = append(large, i)
		case k.in.length[i] >= (end-begin)/o.long:
			bottom = append(bottom, i)
		default:
			brief = append(brief, i)
		}
	}
	k.sort(bottom, "WZ")
	k.sort(large, o.letters)
	k.classes(large, o.class, goal)
	k.sort(brief, "ZW")
	return slices.Concat(bottom, large, brief)
}

// classes puts the buffers of a list, which else keep their order, in classes of size.
func (k *keys) classes(list []int32, base, goal int64) {
	if base == 0 {
		return
	}
	class := func(i int32) (c int) {
		for s := k.in.size[i]; s < goal; s = mul(s, base) {
			c++
		}
		return c
	}
	slices.SortStableFunc(list, func(a, b int32) int { return class(a) - class(b) })
}
