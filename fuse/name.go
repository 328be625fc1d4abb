package fuse

import (
	"slices"
	"strings"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/graph/rewrite"
)

// namer says what clusters are.
type namer struct {
	*planner
	activations, norms []found
	grad               *rewrite.Finder
}

type found struct {
	spelling
	finder *rewrite.Finder
}

func newNamer(p *planner) *namer {
	n := &namer{planner: p, grad: softmaxGrad()}
	for _, s := range activations() {
		n.activations = append(n.activations, found{s, s.find()})
	}
	for _, s := range normalizations() {
		f := found{s, nil}
		if s.find != nil {
			f.finder = s.find()
		}
		n.norms = append(n.norms, f)
	}
	return n
}

// simple are activations that are always one operator.
var simple = []string{"Relu", "Gelu", "Swish", "Mish", "HardSwish", "LeakyRelu", "PRelu", "Elu", "Selu", "Celu", "ThresholdedRelu", "HardSigmoid",
	"Softplus", "Softsign", "Sigmoid", "Tanh", "Clip", "SwiGLU"}

// forward returns what a cluster of forward nodes is, in words joined by hyphens, the main one first: linear-gelu-residual,
// conv-batch-norm-relu, attention, ... The doc says it as a formula where there is one.
func (n *namer) forward(q *group) (name, doc string) {
	var words []string
	core := n.core(q)
	norm, doc := n.norm(q.nodes)
	switch {
	case q.rule == "attention":
		return "attention", docOf("attention")
	case q.rule == "update":
		return "update", docOf("update")
	case q.rule == "gated":
		words = append(words, "gated-linear")
	case core != "":
		words = append(words, core)
	}
	if slices.ContainsFunc(q.nodes, func(k *graph.Node) bool { return k.Op == "BatchNormalization" }) {
		words = append(words, "batch-norm")
	}
	if norm != "" {
		words = append(words, norm)
	}
	if act, d := n.activation(q.nodes); act != "" && act != norm {
		words = append(words, act)
		doc = d
	}
	if len(words) > 0 && n.residual(q) {
		words = append(words, "residual")
	}
	if len(words) == 0 {
		words = []string{n.plain(q)}
	}
	if strings.HasPrefix(words[0], "softmax") && n.picksClass(q.nodes) {
		words[0] = "softmax-cross-entropy"
	}
	return strings.Join(words, "-"), doc
}

// docOf returns what a forward rule finds.
func docOf(name string) string {
	for _, r := range forwardRules() {
		if r.name == name {
			return r.doc
		}
	}
	return ""
}

// core returns what the product of a cluster is, "" without one.
func (n *namer) core(q *group) string {
	for _, k := range q.nodes {
		switch n.kind(k) {
		case op.KindContract:
			switch k.Op {
			case "Conv", "ConvInteger", "QLinearConv":
				return "conv"
			case "ConvTranspose":
				return "conv-transpose"
			}
			if parameter(k) != nil && len(q.nodes) > 0 {
				return "linear"
			}
			return "matmul"
		case op.KindWindow:
			if strings.HasSuffix(k.Op, "Pool") {
				return "pool"
			}
			return "window"
		case op.KindScatter:
			if !n.isIndex(k) {
				return "scatter"
			}
		case op.KindInjective:
			if k.Op == "Gather" && k.Operand(0) != nil && k.In[0].Def == nil && n.typ(k.In[0]).Elem.IsFloat() {
				return "embedding"
			}
		}
	}
	return ""
}

// norm returns the normalization among the nodes.
func (n *namer) norm(nodes []*graph.Node) (name, doc string) {
	for _, s := range n.norms {
		for _, k := range nodes {
			if k.Op == s.op || s.finder != nil && n.within(s.finder, k, nodes) {
				return s.name, s.doc
			}
		}
	}
	return "", ""
}

// activation returns the activation among the nodes.
func (n *namer) activation(nodes []*graph.Node) (name, doc string) {
	for _, s := range n.activations {
		for _, k := range nodes {
			if k.Op == s.op || n.within(s.finder, k, nodes) {
				return s.name, s.doc
			}
		}
	}
	for _, s := range simple {
		for _, k := range nodes {
			if k.Op == s && !n.isIndex(k) {
				return strings.ToLower(s), ""
			}
		}
	}
	return "", ""
}

// within reports whether a function is spelled out by some of the nodes, k last.
func (n *namer) within(f *rewrite.Finder, k *graph.Node, nodes []*graph.Node) bool {
	m := f.At(k, nil, n.known)
	return m != nil && !slices.ContainsFunc(m.Nodes(), func(x *graph.Node) bool { return !slices.Contains(nodes, x) })
}

// residual reports whether the cluster adds a tensor from outside, of the size of the sum, to what it computes.
func (n *namer) residual(q *group) bool {
	for _, k := range q.nodes {
		if k.Op != "Add" || len(k.In) != 2 || k.In[0] == nil || k.In[1] == nil || n.isIndex(k) {
			continue
		}
		a, b := n.part.of[k.In[0].Def] == q && k.In[0].Def != nil, n.part.of[k.In[1].Def] == q && k.In[1].Def != nil
		x := k.In[0]
		if a {
			x = k.In[1]
		}
		if a != b && x.Def != nil && n.weight(x) == n.weight(k.Out[0]) {
			return true
		}
	}
	return false
}

// picksClass reports whether the nodes take the probability of a label.
func (n *namer) picksClass(nodes []*graph.Node) bool {
	return slices.ContainsFunc(nodes, func(k *graph.Node) bool {
		return k.Op == "GatherElements" || k.Op == "ScatterElements" || k.Op == "OneHot" || k.Op == "NegativeLogLikelihoodLoss"
	})
}

// plain returns what a cluster without anything remarkable is, by the kinds of its operators.
func (n *namer) plain(q *group) string {
	reduce, moves, elements := false, false, false
	for _, k := range q.nodes {
		if n.isIndex(k) {
			continue
		}
		switch n.kind(k) {
		case op.KindReduce:
			reduce = true
		case op.KindElementwise:
			elements = true
		case op.KindInjective:
			moves = true
		}
	}
	switch {
	case reduce:
		return "reduction"
	case elements:
		return "elementwise"
	case moves:
		return "movement"
	case slices.ContainsFunc(q.nodes, func(k *graph.Node) bool { return !n.isIndex(k) }):
		return "view"
	}
	return "shape"
}

// isBackward reports whether a cluster is of the backward part.
func (n *namer) isBackward(q *group) bool {
	return slices.ContainsFunc(q.nodes, func(k *graph.Node) bool { return n.phase(k) == backwardPhase })
}

// names returns what the clusters of the graph are, those of the forward part first since the others are called after them.
func (n *namer) names() map[*group][2]string {
	out := map[*group][2]string{}
	home := map[string]*group{}
	for _, q := range n.part.order {
		if n.isBackward(q) {
			continue
		}
		name, doc := n.forward(q)
		if n.gradient(q) {
			name, doc = "attention-backward", ""
		} else if q.rule == "linear-gradient" {
			name, doc = "linear-backward", ""
		}
		out[q] = [2]string{name, doc}
		for _, k := range q.nodes {
			if k.Name != "" {
				home[k.Name] = q
			}
		}
	}
	for _, q := range n.part.order {
		if !n.isBackward(q) {
			continue
		}
		if slices.ContainsFunc(q.nodes, func(k *graph.Node) bool { return k.Meta.Get(graph.MetaRole) == graph.RoleLoss }) || q.rule == "loss" {
			name, _ := n.forward(q)
			out[q] = [2]string{"loss-backward", "a loss with its gradient: " + name}
			continue
		}
		if main := n.mainStem(q, home); main != nil {
			name := out[main][0]
			out[q] = [2]string{name + "-backward", "the gradient of " + name}
			continue
		}
		name, _ := n.forward(q)
		out[q] = [2]string{name + "-backward", ""}
	}
	return out
}

// gradient reports whether a cluster holds the gradient of a softmax between products.
func (n *namer) gradient(q *group) bool {
	return q.rule == "softmax-gradient" && n.content(q.nodes).contract > 1
}

// mainStem returns the forward group that most work of a backward cluster stems from: products count most.
func (n *namer) mainStem(q *group, home map[string]*group) *group {
	votes := map[*group]int{}
	var best *group
	for _, k := range q.nodes {
		h := home[k.Meta.Get(graph.MetaFrom)]
		if h == nil || n.phase(k) != backwardPhase {
			continue
		}
		votes[h]++
		if n.kind(k) == op.KindContract {
			votes[h] += 100
		}
		if best == nil || votes[h] > votes[best] {
			best = h
		}
	}
	return best
}
