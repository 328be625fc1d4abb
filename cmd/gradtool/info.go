package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/internal/size"
	"gradtool/onnxio"
)

func infoVerb() verb {
	return verb{
		name: "info", group: groupRead, args: "[MODEL|-]", maxArgs: 1,
		summary:  "print what a model is: opsets, inputs, outputs, operators, parameters",
		examples: []string{"gradtool info model.onnx", "gradtool grad model.onnx | gradtool info", "gradtool info --json model.onnx"},
		flags:    slices.Concat([]cli.Flag{jsonFlag()}, inputFlags()),
		run:      runInfo,
	}
}

// facts is what info tells of a model.
type facts struct {
	File      string         `json:"file"`
	IR        int64          `json:"ir_version"`
	Opsets    []opsetFact    `json:"opsets"`
	Producer  string         `json:"producer"`
	Graph     string         `json:"graph"`
	Inputs    []valueFact    `json:"inputs"`
	Outputs   []valueFact    `json:"outputs"`
	Nodes     int            `json:"nodes"`     // of the main graph
	AllNodes  int            `json:"all_nodes"` // and its subgraphs
	Constants int            `json:"constants"` // of these: other verbs count without them
	Roles     map[string]int `json:"nodes_by_role"`
	Operators []opFact       `json:"operators"`
	Inits     int            `json:"initializers"`
	Params    int64          `json:"parameters"` // elements of float initializers
	Bytes     int64          `json:"initializer_bytes"`
	External  []string       `json:"external_files"`
	Functions []string       `json:"functions"`
	Training  int            `json:"training_info"`
	Metadata  []string       `json:"metadata_keys"`
	Symbols   []string       `json:"symbols"`
}

type opsetFact struct {
	Domain  string `json:"domain"`
	Version int64  `json:"version"`
}

type valueFact struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Default bool   `json:"default,omitempty"`
}

type opFact struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

func runInfo(s *session) error {
	m, closer, err := s.readModel()
	if err != nil {
		return err
	}
	defer closer.Close()
	s.noteBroken(m)
	f := factsOf(m)
	if s.Bool("json") {
		s.report.set("model", f)
		return s.print(s.report.encode)
	}
	return s.print(func(w io.Writer) error { f.write(w); return nil })
}

// sumTo returns a+b, the largest number where that is more or where b, negative then, is a product that was.
func sumTo(a, b int64) int64 {
	if b < 0 || a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func factsOf(m *graph.Model) facts {
	g := m.Graph
	f := facts{File: m.File, IR: m.IRVersion, Producer: strings.TrimSpace(m.Producer + " " + m.ProducerVersion), Graph: g.Name,
		Opsets: []opsetFact{}, Inputs: []valueFact{}, Outputs: []valueFact{}, Operators: []opFact{}, External: []string{}, Functions: []string{},
		Metadata: []string{}, Nodes: len(g.Nodes), Roles: countRoles(m), Training: onnxio.TrainingInfos(m), Symbols: append([]string{}, inputSymbols(m)...)}
	for _, o := range m.Opsets {
		d := o.Domain
		if d == "" {
			d = "ai.onnx"
		}
		f.Opsets = append(f.Opsets, opsetFact{d, o.Version})
	}
	for _, v := range g.Inputs {
		if v.IsConst() {
			continue // an initializer that an old IR version wants listed
		}
		f.Inputs = append(f.Inputs, valueFact{v.Name, v.Type.String(), v.Init != nil})
	}
	for _, v := range g.Outputs {
		f.Outputs = append(f.Outputs, valueFact{v.Name, v.Type.String(), false})
	}
	counts := map[string]int{}
	for n := range g.AllNodes() {
		f.AllNodes++
		if n.Is("Constant") {
			f.Constants++
		}
		counts[op.KeyOf(n).String()]++
	}
	for _, name := range sortedKeys(counts) {
		f.Operators = append(f.Operators, opFact{name, counts[name]})
	}
	slices.SortStableFunc(f.Operators, func(a, b opFact) int { return cmp.Compare(b.Count, a.Count) })
	for h := range g.Graphs() {
		for _, v := range h.Inits {
			f.Inits++
			if v.Init.Elem.IsFloat() {
				f.Params = sumTo(f.Params, v.Init.Len())
			}
			f.Bytes = sumTo(f.Bytes, v.Init.ByteLen())
			if at := onnxio.ExternalFile(v.Init); at != "" && !slices.Contains(f.External, at) {
				f.External = append(f.External, at)
			}
		}
	}
	for _, fn := range m.Functions {
		f.Functions = append(f.Functions, op.Key{Domain: graph.StdDomain(fn.Domain), Name: fn.Name}.String())
	}
	for _, e := range m.Meta {
		f.Metadata = append(f.Metadata, e.Key)
	}
	return f
}

func (f facts) write(w io.Writer) {
	line := func(label, format string, args ...any) {
		fmt.Fprintf(w, "%-13s"+format+"\n", append([]any{label}, args...)...)
	}
	if f.File != "" && f.File != "-" {
		line("file", "%s", f.File)
	}
	var opsets []string
	for _, o := range f.Opsets {
		opsets = append(opsets, fmt.Sprintf("%s %d", o.Domain, o.Version))
	}
	line("opsets", "%s (IR %d)", strings.Join(opsets, ", "), f.IR)
	if f.Producer != "" {
		line("producer", "%s", f.Producer)
	}
	values := func(label string, list []valueFact) {
		for _, v := range list {
			note := ""
			if v.Default {
				note = "  (has a default)"
			}
			line(label, "%s  %s%s", v.Name, v.Type, note)
			label = ""
		}
	}
	values("inputs", f.Inputs)
	values("outputs", f.Outputs)
	if len(f.Symbols) > 0 {
		line("symbols", "%s", strings.Join(f.Symbols, ", "))
	}
	nodes := fmt.Sprint(f.Nodes)
	if f.AllNodes > f.Nodes {
		nodes += fmt.Sprintf(", with subgraphs %d", f.AllNodes)
	}
	if f.Constants > 0 {
		nodes += fmt.Sprintf(", without constants %d", f.AllNodes-f.Constants)
	}
	if len(f.Roles) > 1 {
		var roles []string
		for _, r := range sortedKeys(f.Roles) {
			roles = append(roles, fmt.Sprintf("%d %s", f.Roles[r], r))
		}
		nodes += " (" + strings.Join(roles, ", ") + ")"
	}
	line("nodes", "%s", nodes)
	line("parameters", "%s in %s, %s", commas(f.Params), count(f.Inits, "initializer"), size.Bytes(f.Bytes))
	if len(f.External) > 0 {
		line("external", "%s", few(f.External))
	}
	if len(f.Functions) > 0 {
		line("functions", "%s", few(f.Functions))
	}
	if f.Training > 0 {
		line("training", "%s of training_info", count(f.Training, "entry"))
	}
	if len(f.Metadata) > 0 {
		line("metadata", "%s", few(f.Metadata))
	}
	label := "operators"
	for _, o := range f.Operators {
		line(label, "%5d  %s", o.Count, o.Name)
		label = ""
	}
}

// commas writes a number with its thousands apart.
func commas(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
