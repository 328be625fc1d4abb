package legal

import "slices"

// dropDead removes stores to buffers that nobody reads, kernels that store nothing, and buffers without use.
func (p *Program) dropDead() {
	live := map[*Buffer]bool{}
	for _, b := range p.Outputs {
		live[b.Buf] = true
	}
	var keep []Kernel
	for i := len(p.Kernels) - 1; i >= 0; i-- {
		k := p.Kernels[i]
		if !slices.ContainsFunc(k.Writes(), func(a *Access) bool { return live[a.Buf] }) {
			continue
		}
		switch k := k.(type) {
		case *Nest:
			k.dropStores(live)
		case *Contract:
			if k.Post != nil {
				k.Post.dropStores(live)
			}
		case *Walk:
			k.dropStores(live)
		}
		for _, a := range k.Reads() {
			if a != nil {
				live[a.Buf] = true
			}
		}
		keep = append(keep, k)
	}
	slices.Reverse(keep)
	p.Kernels = keep
	for _, b := range p.Inputs {
		live[b.Buf] = true
	}
	p.Buffers = slices.DeleteFunc(p.Buffers, func(b *Buffer) bool { return !live[b] })
	for i, b := range p.Buffers {
		b.ID = i
	}
}

// dropStores removes the stores to buffers that are not live.
func (k *Nest) dropStores(live map[*Buffer]bool) {
	k.Out = slices.DeleteFunc(k.Out, func(o Store) bool { return !live[o.To.Buf] })
	k.Tidy()
}

// Tidy removes loads and statements that no store needs or that leave a value as it is, and merges loads and statements that are the
// same.
func (k *Nest) Tidy() {
	n := len(k.In)
	same := make([]int, n+len(k.Body)) // the value that stands for each
	for v := range same {
		same[v] = v
		if v < n {
			for w := range v {
				if k.In[v] != nil && k.In[w] != nil && k.In[v].sameOver(k.In[w], k.Dims) && k.In[v].Fill == k.In[w].Fill {
					same[v] = w
					break
				}
			}
			continue
		}
		s := &k.Body[v-n]
		for j, a := range s.Args {
			s.Args[j] = same[a]
		}
		if w := s.identity(k.constant); w >= 0 {
			same[v] = w
			continue
		}
		for w := n; w < v; w++ {
			if same[w] == w && k.Body[w-n].same(s) {
				same[v] = w
				break
			}
		}
	}
	need := make([]bool, len(same))
	for i := range k.Out {
		k.Out[i].Value = same[k.Out[i].Value]
		need[k.Out[i].Value] = true
	}
	for v := len(same) - 1; v >= n; v-- {
		if need[v] {
			for _, a := range k.Body[v-n].Args {
				need[a] = true
			}
		}
	}
	number := make([]int, len(same))
	var in []*Access
	for v := range n {
		if need[v] || k.In[v] == nil {
			number[v] = len(in)
			in = append(in, k.In[v])
		}
	}
	var body []Stmt
	for v := n; v < len(same); v++ {
		if !need[v] {
			continue
		}
		number[v] = len(in) + len(body)
		body = append(body, k.Body[v-n])
	}
	body = numbered(body, func(a int) int { return number[a] })
	for i := range k.Out {
		k.Out[i].Value = number[k.Out[i].Value]
	}
	k.In, k.Body = in, body
}

func (s *Stmt) same(t *Stmt) bool {
	return s.Op == t.Op && s.Elem == t.Elem && slices.Equal(s.Args, t.Args) && s.Imm == t.Imm && s.Dim == t.Dim && s.Over == t.Over
}

// constant returns the value v of the nest if it is known.
func (k *Nest) constant(v int) (float64, bool) {
	if v < len(k.In) || k.Body[v-len(k.In)].Op != ConstOp {
		return 0, false
	}
	return k.Body[v-len(k.In)].Imm, true
}
