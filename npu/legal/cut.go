package legal

// Cut takes apart nests that do not fit on chip: those that use what they reduce along the dimensions that they reduce need all
// of a row, or of a channel, at once. The reductions become kernels of their own, which add up tile by tile, and the rest reads
// their results and computes again what led to them.
func (p *Program) Cut(fits func(k *Nest) bool) {
	var out []Kernel
	for _, k := range p.Kernels {
		n, ok := k.(*Nest)
		for ok && !fits(n) {
			first, rest := p.cut(n)
			if first == nil {
				break
			}
			out = append(out, first)
			n = rest
		}
		if ok {
			k = n
		}
		out = append(out, k)
	}
	p.Kernels = out
}

// cut returns a nest that computes the reductions of k that depend on no other, and one that does the rest; nil if nothing
// depends on them.
func (p *Program) cut(k *Nest) (first, rest *Nest) {
	varies, elems := k.Varies(), k.Elems()
	base := len(k.In)
	deep := make([]bool, base+len(k.Body)) // depends on a reduction
	var roots []int
	used := false
	for i, s := range k.Body {
		v := base + i
		for _, a := range s.Args {
			deep[v] = deep[v] || deep[a] || a >= base && k.Body[a-base].Op.Reduces()
		}
		if s.Op.Reduces() && !deep[v] {
			roots = append(roots, v)
		}
		used = used || deep[v]
	}
	if len(roots) == 0 || !used {
		return nil, nil
	}
	first, rest = k.Clone(), &Nest{Origin0: k.Origin0, Dims: k.Dims}
	first.Out = nil
	c := k.Clone()
	rest.In = c.In
	number := make([]int, len(deep))
	for v := range base {
		number[v] = v
	}
	for _, v := range roots {
		to := p.whole(elems[v], k.Dims, varies[v])
		p.Buffers = append(p.Buffers, to.Buf)
		first.Out = append(first.Out, Store{To: to, Value: v})
		number[v] = len(rest.In)
		rest.In = append(rest.In, to.Clone())
	}
	isRoot := map[int]bool{}
	for _, v := range roots {
		isRoot[v] = true
	}
	for i, s := range c.Body {
		v := base + i
		if isRoot[v] {
			continue
		}
		for j, a := range s.Args {
			s.Args[j] = number[a]
		}
		number[v] = len(rest.In) + len(rest.Body)
		rest.Body = append(rest.Body, s)
	}
	for _, o := range c.Out {
		rest.Out = append(rest.Out, Store{o.To, number[o.Value], o.Part})
	}
	first.Tidy()
	rest.Tidy()
	return first, rest
}
