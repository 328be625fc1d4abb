package onnxio

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"gradtool/graph"
)

// dump writes all that a model says, apart from declared types of inner values, so that two models
// that mean the same give the same text. Tensor data that cannot be read are given by the error.
func dump(m *graph.Model) string {
	var b strings.Builder
	fmt.Fprintln(&b, "model", m.IRVersion, m.Opsets, m.Producer, m.ProducerVersion, m.Domain, m.Version, m.Doc, m.Meta)
	dumpGraph(&b, m.Graph, "")
	for _, f := range m.Functions {
		fmt.Fprintln(&b, "function", f.Domain, f.Name, f.Overload, f.Attrs, f.Opsets, f.Doc, f.Meta)
		for _, a := range f.Defaults {
			dumpAttr(&b, a, "  ")
		}
		dumpGraph(&b, f.Body, "  ")
	}
	return b.String()
}

func dumpGraph(b *strings.Builder, g *graph.Graph, in string) {
	fmt.Fprintf(b, "%sgraph %q %q %v\n", in, g.Name, g.Doc, g.Meta)
	for _, v := range g.Inputs {
		fmt.Fprintf(b, "%s  input %q %s\n", in, v.Name, v.Type)
	}
	for _, v := range g.Outputs {
		fmt.Fprintf(b, "%s  output %q\n", in, v.Name)
	}
	for _, v := range g.Inits {
		fmt.Fprintf(b, "%s  init %q %s\n", in, v.Name, dumpTensor(v.Init))
	}
	for _, n := range g.Nodes {
		fmt.Fprintf(b, "%s  node %q %q %q %q %q %v in", in, n.Name, n.Domain, n.Op, n.Overload, n.Doc, n.Meta)
		for _, v := range n.In {
			if v == nil {
				b.WriteString(" -")
			} else {
				fmt.Fprintf(b, " %q", v.Name)
			}
		}
		b.WriteString(" out")
		for _, v := range n.Out {
			if v == nil {
				b.WriteString(" -")
			} else {
				fmt.Fprintf(b, " %q", v.Name)
			}
		}
		b.WriteByte('\n')
		for _, a := range n.Attrs {
			dumpAttr(b, a, in+"    ")
		}
	}
}

func dumpAttr(b *strings.Builder, a *graph.Attr, in string) {
	fmt.Fprintf(b, "%s%s %s ref=%q %v %v %q %v %v %q %v\n", in, a.Name, a.Type, a.Ref, a.F, a.I, a.S, a.Floats, a.Ints, a.Strings, a.Types)
	if a.T != nil {
		fmt.Fprintf(b, "%s  %q %s\n", in, a.T.Name, dumpTensor(a.T))
	}
	for _, t := range a.Tensors {
		fmt.Fprintf(b, "%s  %q %s\n", in, t.Name, dumpTensor(t))
	}
	for _, s := range a.Sparse {
		fmt.Fprintf(b, "%s  %v %s at %s\n", in, s.Dims, dumpTensor(s.Values), dumpTensor(s.Indices))
	}
	for _, g := range a.Subgraphs() {
		dumpGraph(b, g, in+"  ")
	}
}

func dumpTensor(t *graph.Tensor) string {
	s := fmt.Sprintf("%s%v", t.Elem, t.Dims)
	if t.Data == nil {
		return fmt.Sprintf("%s %q", s, t.Strings)
	}
	data, err := t.Data.Bytes()
	if err != nil {
		return s + " " + err.Error()
	}
	if len(data) > 64 {
		return fmt.Sprintf("%s %x", s, sha256.Sum256(data))
	}
	return fmt.Sprintf("%s %x", s, data)
}

// strip makes every object of a model one that was not read from a file.
func strip(m *graph.Model) {
	m.Src = nil
	graphs := []*graph.Graph{m.Graph}
	attr := func(a *graph.Attr) {
		a.Src = nil
		for _, t := range append(a.Tensors, a.T) {
			if t != nil {
				t.Src = nil
			}
		}
		for _, s := range a.Sparse {
			s.Values.Src, s.Indices.Src = nil, nil
		}
	}
	for _, f := range m.Functions {
		f.Src = nil
		graphs = append(graphs, f.Body)
		for _, a := range f.Defaults {
			attr(a)
		}
	}
	for _, g := range graphs {
		for h := range g.Graphs() {
			h.Src = nil
			for _, v := range h.Inits {
				v.Init.Src = nil
			}
			for _, n := range h.Nodes {
				n.Src = nil
				for _, a := range n.Attrs {
					attr(a)
				}
			}
		}
	}
}

// reread writes m and reads it again.
func reread(t testing.TB, m *graph.Model) *graph.Model {
	t.Helper()
	got, _, err := Read(bytes.NewReader(encoded(t, m)), "again", ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func encoded(t testing.TB, m *graph.Model) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
