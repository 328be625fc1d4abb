package offset

import "slices"

// keys are the properties by which orders are made; larger goes first.
type keys struct {
	in   *instance
	load []int64   // by buffer, the most units that are live in one of its sections
	bias []float64 // by buffer, what its properties are multiplied by; nil for 1
}

func newKeys(in *instance) *keys {
	k := &keys{in: in, load: make([]int64, len(in.size))}
	k.fill(in.live())
	return k
}

// fill sets the loads from the units that are live in each section.
func (k *keys) fill(live []int64) {
	for i, spans := range k.in.spans {
		k.load[i] = 0
		for _, p := range spans {
			k.load[i] = max(k.load[i], slices.Max(live[p.lo:p.hi]))
		}
	}
}

// value returns a property by its letter, with the bias.
func (k *keys) value(letter byte, i int32) int64 {
	x := k.property(letter, i)
	if k.bias != nil {
		x = int64(float64(x) * k.bias[i])
	}
	return x
}

// property returns a property by its letter, those of MiniMalloc: Width of the lifetime, Area, Total load, siZe, Lower end
// of the lifetime (earliest first).
func (k *keys) property(letter byte, i int32) int64 {
	switch letter {
	case 'W':
		return k.in.length[i]
	case 'A':
		return mul(k.in.size[i], k.in.length[i])
	case 'T':
		return k.load[i]
	case 'Z':
		return k.in.size[i]
	case 'L':
		return -k.in.lower[i]
	case 'H':
		if h := k.in.hint[i]; h >= 0 {
			return -h
		}
		return -1 << 62
	}
	panic("offset: no such key: " + string(letter))
}

// order returns the buffers of group sorted by the properties that the letters name, then by index.
func (k *keys) order(group []int32, letters string) []int32 {
	list := slices.Clone(group)
	k.sort(list, letters)
	return list
}

// sort sorts a list in the way of order.
func (k *keys) sort(list []int32, letters string) {
	slices.SortStableFunc(list, func(a, b int32) int {
		for _, c := range []byte(letters) {
			if x, y := k.value(c, a), k.value(c, b); x != y {
				return cmp(y, x)
			}
		}
		return int(a - b)
	})
}
