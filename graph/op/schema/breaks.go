package schema

import "slices"

// Break is a change of meaning that the form of a node does not show: a node in the form of opset Version or newer
// must not be relabelled below Version, nor one in an older form to Version or above, if the break bites it.
type Break struct {
	Domain, Name string
	Version      int
	What         string // what changed
	bites        func(*Node) bool
}

// Bites reports whether the break concerns the node. Where the facts of the node do not tell, it does.
func (b Break) Bites(n *Node) bool { return b.bites == nil || b.bites(n) }

// Breaks returns the changes of meaning of an operator, ordered by version.
func Breaks(domain, name string) []Break {
	domain = canonical(domain)
	var out []Break
	for _, b := range breaks() {
		if b.Domain == domain && b.Name == name {
			out = append(out, b)
		}
	}
	return out
}

// AllBreaks returns the whole table, ordered by operator and version.
func AllBreaks() []Break { return slices.Clone(breaks()) }

// The conditions under which a break bites. Each is conservative: true unless the facts show otherwise.

// set is true if the node carries the attribute with another value than v, which is what leaving it out means.
func set(name string, v any) func(*Node) bool {
	return func(n *Node) bool {
		a, ok := n.attr(name)
		return ok && a.Value != v
	}
}

// unless is true if the attribute is left out or has another value than v.
func unless(name string, v any) func(*Node) bool {
	return func(n *Node) bool {
		a, ok := n.attr(name)
		return !ok || a.Value != v
	}
}

// oneOf is true if the node carries the attribute with one of the values, or one not known.
func oneOf(name string, vs ...string) func(*Node) bool {
	return func(n *Node) bool {
		a, ok := n.attr(name)
		if !ok {
			return false
		}
		s, known := a.Value.(string)
		return !known || slices.Contains(vs, s)
	}
}

// negative is true if the integer attribute, or a member of it, is below 0 or not known.
func negative(name string) func(*Node) bool {
	return func(n *Node) bool {
		a, ok := n.attr(name)
		if !ok {
			return false
		}
		switch v := a.Value.(type) {
		case int64:
			return v < 0
		case []int64:
			return slices.ContainsFunc(v, isNegative)
		}
		return true
	}
}

func isNegative(v int64) bool { return v < 0 }

// negativeInput is true if operand i is given and its elements are not known to be 0 or more.
func negativeInput(i int) func(*Node) bool {
	return func(n *Node) bool {
		if !hasOperand(n.In, i) {
			return false
		}
		return n.In[i].Ints == nil || slices.ContainsFunc(n.In[i].Ints, isNegative)
	}
}

// outputs is true if result i is given.
func outputs(i int) func(*Node) bool { return func(n *Node) bool { return hasOperand(n.Out, i) } }

func hasOperand(ops []Operand, i int) bool { return i < len(ops) && !ops[i].Omitted }

// anyOf is true if one of the conditions is.
func anyOf(conds ...func(*Node) bool) func(*Node) bool {
	return func(n *Node) bool {
		return slices.ContainsFunc(conds, func(c func(*Node) bool) bool { return c(n) })
	}
}

// shapesDiffer is true unless all operands are known to have the same shape.
func shapesDiffer(n *Node) bool {
	for _, o := range n.In {
		if o.Dims == nil || slices.ContainsFunc(o.Dims, isNegative) || !slices.Equal(o.Dims, n.In[0].Dims) {
			return true
		}
	}
	return false
}

// notScalar is true unless operand i is known to be of rank 0.
func notScalar(i int) func(*Node) bool {
	return func(n *Node) bool {
		return !hasOperand(n.In, i) || n.In[i].Dims == nil || len(n.In[i].Dims) > 0
	}
}

// notLastAxis is true unless the attribute axis is given and known to be the last axis of operand 0.
func notLastAxis(n *Node) bool {
	a, ok := n.attr("axis")
	if !ok {
		return true
	}
	if a.Value == int64(-1) {
		return false
	}
	return len(n.In) == 0 || n.In[0].Dims == nil || a.Value != int64(len(n.In[0].Dims)-1)
}

// integers returns an integer list attribute padded to n members with def; nil if it is not known.
func integers(n *Node, name string, count int, def int64) []int64 {
	a, ok := n.attr(name)
	v, known := a.Value.([]int64)
	if ok && !known || len(v) > count {
		return nil
	}
	v = slices.Clone(v)
	for len(v) < count {
		v = append(v, def)
	}
	return v
}

// partialWindow is true unless pooling is known to fit all windows into the padded input, so that rounding the output
// size up changes nothing. With lastOnly it is also false if no window can start in the padding after the input.
func partialWindow(lastOnly bool) func(*Node) bool {
	return func(n *Node) bool {
		if a, ok := n.attr("ceil_mode"); !ok || a.Value == int64(0) {
			return false
		}
		if a, ok := n.attr("auto_pad"); ok && a.Value != "NOTSET" && a.Value != "" {
			return true
		}
		k, _ := n.attr("kernel_shape")
		kernel, ok := k.Value.([]int64)
		if !ok {
			return true
		}
		strides, dilations := integers(n, "strides", len(kernel), 1), integers(n, "dilations", len(kernel), 1)
		pads := integers(n, "pads", 2*len(kernel), 0)
		if strides == nil || dilations == nil || pads == nil {
			return true
		}
		for i := range kernel {
			extent, end := dilations[i]*(kernel[i]-1)+1, pads[i+len(kernel)]
			if lastOnly && end <= extent-strides[i] {
				continue
			}
			if len(n.In) == 0 || len(n.In[0].Dims) != len(kernel)+2 || n.In[0].Dims[i+2] < 0 || strides[i] <= 0 {
				return true
			}
			if (n.In[0].Dims[i+2]+pads[i]+end-extent)%strides[i] != 0 {
				return true
			}
		}
		return false
	}
}

// allOf is true if all of the conditions are.
func allOf(conds ...func(*Node) bool) func(*Node) bool {
	return func(n *Node) bool {
		return !slices.ContainsFunc(conds, func(c func(*Node) bool) bool { return !c(n) })
	}
}
