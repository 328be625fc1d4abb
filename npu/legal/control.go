package legal

import (
	"gradtool/graph"
	"gradtool/graph/op"
)

// maxUnroll is the number of iterations up to which a loop is written out.
const maxUnroll = 4096

// controlExpansions holds the operators that run subgraphs.
func controlExpansions() map[string]expansion {
	return map[string]expansion{"If": expandIf, "Loop": expandLoop, "Scan": expandScan, "OptionalGetElement": expandGetElement}
}

// expandGetElement hands on a tensor, which is an optional that has a value.
func expandGetElement(_ *op.Info, n *graph.Node) (func(b *op.Builder) []*graph.Value, error) {
	if !n.In[0].Type.IsTensor() {
		return nil, unsupported("value %q is no tensor: %s", n.In[0].Name, n.In[0].Type)
	}
	return func(b *op.Builder) []*graph.Value { return []*graph.Value{b.Unary("Identity", n.In[0])} }, nil
}

// splice puts copies of a subgraph's nodes in place, its inputs being given, and returns its outputs.
func splice(b *op.Builder, sub *graph.Graph, in []*graph.Value) []*graph.Value {
	c := &graph.Cloner{To: b.G.Model, Values: map[*graph.Value]*graph.Value{}, Prefix: b.Prefix + "/"}
	for i, v := range sub.Inputs {
		c.Values[v] = in[i]
	}
	for _, v := range sub.Inits {
		c.Values[v] = b.Const(v.Init)
	}
	for _, n := range sub.Nodes {
		k, err := c.Node(b.G, n)
		if err != nil {
			b.Err = err
			return nil
		}
		if k.Meta.Get(graph.MetaRole) == "" && b.Role != "" {
			k.Meta.Set(graph.MetaRole, b.Role)
		}
		b.Mark(k)
		b.Put(k)
	}
	out := make([]*graph.Value, len(sub.Outputs))
	for i, v := range sub.Outputs {
		if out[i] = c.Values[v]; out[i] == nil {
			out[i] = v // of a graph around the subgraph
		}
	}
	return out
}

// expandIf computes both branches and selects, which no value but the results can tell from taking one: nothing in a graph has effects. An
// index out of range in the branch that is not taken is an error all the same.
func expandIf(info *op.Info, n *graph.Node) (func(b *op.Builder) []*graph.Value, error) {
	then, els := n.Subgraph("then_branch"), n.Subgraph("else_branch")
	if a := info.Const(n.In[0]); a != nil && a.Len() == 1 {
		taken := els
		if a.Float(0) != 0 {
			taken = then
		}
		return func(b *op.Builder) []*graph.Value { return splice(b, taken, nil) }, nil
	}
	if c, err := sizes(n.In[0]); err != nil || prod(ints(c)) != 1 {
		return nil, unsupported("the condition has type %s, not that of one truth value", n.In[0].Type)
	}
	for _, y := range n.Out {
		if y == nil {
			continue
		}
		if !y.Type.IsTensor() {
			return nil, unsupported("value %q is no tensor: %s", y.Name, y.Type)
		}
		if _, err := sizes(y); err != nil {
			return nil, unsupported("the branches give results of different shapes, or of shapes that depend on values: %q", y.Name)
		}
	}
	return func(b *op.Builder) []*graph.Value {
		cond := b.ReshapeTo(n.In[0])
		x, y := splice(b, then, nil), splice(b, els, nil)
		out := make([]*graph.Value, len(n.Out))
		for i := range n.Out {
			if n.Out[i] != nil && b.Err == nil {
				out[i] = b.Where(cond, x[i], y[i])
			}
		}
		return out
	}, nil
}

// expandLoop writes out a loop whose number of iterations is known. A condition computed in the body, of a loop that stacks nothing, is followed too:
// what is carried keeps its values once it is false.
func expandLoop(info *op.Info, n *graph.Node) (func(b *op.Builder) []*graph.Value, error) {
	body := n.Subgraph("body")
	carried := len(n.In) - 2
	trips := int64(-1)
	if v := n.Operand(0); v != nil {
		a := info.Const(v)
		if a == nil {
			return nil, unsupported("the number of iterations is known at run time only")
		}
		trips = max(a.I64[0], 0)
	}
	begin := n.Operand(1)
	if begin != nil {
		if a := info.Const(begin); a != nil {
			if begin = nil; a.Float(0) == 0 {
				trips = 0
			}
		}
	}
	if trips < 0 || trips > maxUnroll {
		return nil, unsupported("the number of iterations is not known, or more than %d", maxUnroll)
	}
	if trips*int64(len(body.Nodes)) > maxExpanded {
		return nil, unsupported("%d iterations of %d nodes", trips, len(body.Nodes))
	}
	for _, v := range n.In[2:] {
		if !v.Type.IsTensor() {
			return nil, unsupported("value %q is no tensor: %s", v.Name, v.Type)
		}
	}
	stay := body.Outputs[0] == body.Inputs[1] || isTrue(info, body.Outputs[0])
	stacks := len(body.Outputs)-1 > carried
	if stacks && (trips == 0 || begin != nil || !stay) {
		return nil, unsupported("the number of values that the loop stacks depends on values, or is 0")
	}
	if begin != nil || !stay {
		for i := range carried {
			if _, err := sizes(n.In[2+i]); err != nil {
				return nil, err
			}
		}
	}
	return func(b *op.Builder) []*graph.Value {
		state := n.In[2:]
		going := begin // nil: true for certain
		stacked := make([][]*graph.Value, len(body.Outputs)-1-carried)
		for i := range trips {
			cond := going
			if cond == nil {
				cond = b.True()
			}
			out := splice(b, body, append([]*graph.Value{b.IntScalar(i), cond}, state...))
			if b.Err != nil {
				return nil
			}
			next := make([]*graph.Value, carried)
			for k := range next {
				if next[k] = out[1+k]; going != nil {
					next[k] = b.Where(going, out[1+k], state[k])
				}
			}
			state = next
			for k := range stacked {
				stacked[k] = append(stacked[k], b.Unsqueeze(out[1+carried+k], 0))
			}
			if !stay && i < trips-1 {
				done := b.ReshapeTo(out[0])
				if going != nil {
					done = b.Binary("And", b.ReshapeTo(going), done)
				}
				going = done
			}
		}
		results := append([]*graph.Value{}, state...)
		for _, list := range stacked {
			results = append(results, b.Concat(0, list...))
		}
		return results
	}, nil
}

// isTrue reports whether v is known to be true.
func isTrue(info *op.Info, v *graph.Value) bool {
	for v.Def != nil && v.Def.Is("Identity") {
		v = v.Def.In[0]
	}
	a := info.Const(v)
	return a != nil && a.Len() == 1 && a.Float(0) != 0
}

// expandScan writes out a scan, whose number of steps shapes tell.
func expandScan(_ *op.Info, n *graph.Node) (func(b *op.Builder) []*graph.Value, error) {
	body := n.Subgraph("body")
	scans := int(n.Int("num_scan_inputs", 0))
	states := len(n.In) - scans
	if scans < 1 || states < 0 || len(body.Inputs) != len(n.In) {
		return nil, unsupported("no scanned input")
	}
	at := func(name string, i int) int64 {
		if list := n.Ints(name); i < len(list) {
			return list[i]
		}
		return 0
	}
	steps := int64(0)
	for i := range scans {
		s, err := sizes(n.In[states+i])
		if err != nil {
			return nil, err
		}
		axis := at("scan_input_axes", i)
		if axis < 0 {
			axis += int64(len(s))
		}
		steps = s[axis]
	}
	if steps < 1 || steps > maxUnroll || steps*int64(len(body.Nodes)) > maxExpanded {
		return nil, unsupported("%d steps of %d nodes", steps, len(body.Nodes))
	}
	return func(b *op.Builder) []*graph.Value {
		state := n.In[:states]
		stacked := make([][]*graph.Value, len(body.Outputs)-states)
		for t := range steps {
			in := append([]*graph.Value{}, state...)
			for i := range scans {
				x, step := n.In[states+i], t
				if at("scan_input_directions", i) != 0 {
					step = steps - 1 - t
				}
				in = append(in, b.Gather(x, b.IntScalar(step), at("scan_input_axes", i)))
			}
			out := splice(b, body, in)
			if b.Err != nil {
				return nil
			}
			state = out[:states]
			for k := range stacked {
				stacked[k] = append(stacked[k], b.Unsqueeze(out[states+k], at("scan_output_axes", k)))
			}
		}
		results := append([]*graph.Value{}, state...)
		for k, list := range stacked {
			if at("scan_output_directions", k) != 0 {
				for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
					list[i], list[j] = list[j], list[i]
				}
			}
			results = append(results, b.Concat(at("scan_output_axes", k), list...))
		}
		return results
	}, nil
}
