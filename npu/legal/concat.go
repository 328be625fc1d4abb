package legal

import "slices"

// Nests are put behind one another by numbering their values anew: loads first, then statements in order.

// numbered returns copies of statements whose arguments are numbered by of.
func numbered(body []Stmt, of func(int) int) []Stmt {
	out := slices.Clone(body)
	for i := range out {
		out[i].Args = slices.Clone(out[i].Args)
		for j, a := range out[i].Args {
			out[i].Args[j] = of(a)
		}
	}
	return out
}

// concat puts the statements of c, over the same dimensions, behind those of p. What p stores, c does not load. It fails if
// c loads in another way than p stores.
func concat(p, c *Nest) *Nest {
	m := concatBehind(p, c, 0)
	if m != nil {
		m.Origin0 = c.Origin0.of(p.Origin0, c.Origin0)
		m.Tidy()
	}
	return m
}

// concatBehind is concat with the first n loads of c, which are sums of products, in front of those of p. It drops nothing that is then of no use.
func concatBehind(p, c *Nest, n int) *Nest {
	m := &Nest{Origin0: c.Origin0, Dims: p.Dims, In: append(slices.Clone(c.In[:n]), p.In...)}
	loads := make([]int, len(c.In)) // value in m for each load of c; values of p as -1-v, for those are not numbered yet
	for i, a := range c.In {
		if i < n {
			loads[i] = i
			continue
		}
		if writeOf(p, a.Buf) < 0 {
			loads[i] = len(m.In)
			m.In = append(m.In, a)
			continue
		}
		at := slices.IndexFunc(p.Out, func(o Store) bool { return o.To.sameOver(a, p.Dims) })
		if at < 0 {
			return nil
		}
		loads[i] = -1 - p.Out[at].Value
	}
	shift := len(m.In) - len(p.In)
	ofP := func(v int) int {
		if v >= len(p.In) {
			return v + shift
		}
		return n + v
	}
	base := len(m.In) + len(p.Body) - len(c.In)
	ofC := func(v int) int {
		switch {
		case v >= len(c.In):
			return v + base
		case loads[v] < 0:
			return ofP(-1 - loads[v])
		}
		return loads[v]
	}
	m.Body = append(numbered(p.Body, ofP), numbered(c.Body, ofC)...)
	for _, o := range p.Out {
		m.Out = append(m.Out, Store{o.To, ofP(o.Value), o.Part})
	}
	for _, o := range c.Out {
		m.Out = append(m.Out, Store{o.To, ofC(o.Value), o.Part})
	}
	return m
}

// withLoads returns the nest with loads in place of values.
func (k *Nest) withLoads(values []int, loads []*Access) *Nest {
	base, more := len(k.In), len(loads)
	of := func(v int) int {
		if i := slices.Index(values, v); i >= 0 {
			return base + i
		}
		if v >= base {
			return v + more
		}
		return v
	}
	m := &Nest{Origin0: k.Origin0, Dims: k.Dims, In: append(slices.Clone(k.In), loads...), Body: numbered(k.Body, of)}
	for _, o := range k.Out {
		m.Out = append(m.Out, Store{o.To, of(o.Value), o.Part})
	}
	return m
}
