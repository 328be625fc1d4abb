// Package lower compiles models for the reference machine: operators to kernels (package legal), kernels to instructions
// (package emit), those to the streams of the machine's queues (package token).
package lower

import (
	"errors"
	"fmt"
	"strings"

	"gradtool/graph"
	"gradtool/graph/op"
	"gradtool/npu/emit"
	"gradtool/npu/isa"
	"gradtool/npu/legal"
	"gradtool/npu/machine"
	"gradtool/npu/token"
)

// Options selects how a model is lowered.
type Options struct {
	Machine *machine.Machine
	// Source is the SHA-256 of the model in hexadecimal, to be noted in the program.
	Source string
	// Plain keeps kernels apart that could be one: each operator reads and writes DRAM.
	Plain bool
}

// What a cycle of a transfer that runs under computing costs, in cycles, where other kernels follow, and where none does.
const (
	busShared = 0.35
	busAlone  = 0.02
)

// Result is a lowered model, level by level.
type Result struct {
	Legal   *legal.Program
	List    []isa.Instr // in program order, before they are split into queues
	Program *isa.Program

	plans []*emit.Plan
	steps []int // of the schedule, by kernel
	stays []stay
}

// Tiles returns the kernels, in the order of the schedule, as loops over operations on tiles.
func (r *Result) Tiles() string {
	var b strings.Builder
	for i, k := range r.Legal.Kernels {
		fmt.Fprintf(&b, "%d: %s", i, r.plans[i].Text(k))
	}
	return b.String()
}

// Model lowers m, whose graph must be sorted, in canonical form and free of calls of model-local functions; decompositions
// are applied to m itself. Operators that have no lowering are listed in the result, which has no instructions then.
func Model(m *graph.Model, opt Options) (*Result, error) {
	p, err := fitting(m, opt)
	if err != nil {
		return nil, err
	}
	r := &Result{Legal: p}
	if len(p.Fallbacks) > 0 {
		return r, nil
	}
	out := &isa.Program{Machine: opt.Machine, Name: p.Name, SourceHash: opt.Source}
	groups := make([]group, len(p.Kernels))
	for i, k := range p.Kernels {
		groups[i].kernel = k
	}
	if !opt.Plain {
		groups = schedule(p.Kernels, emit.New(opt.Machine, nil))
	}
	p.Kernels = p.Kernels[:0:0]
	for i, g := range groups {
		p.Kernels = append(append(p.Kernels, g.kernel), g.others...)
		for range 1 + len(g.others) {
			r.steps = append(r.steps, i)
		}
	}
	caps := residentCaps(groups, opt)
	var e *emit.Emitter
	for try := 0; ; try++ {
		if try == maxTries {
			clear(caps)
		}
		failed := 0
		if e, r.stays, failed, err = emitAll(p, groups, opt, caps, out); err == nil {
			break
		}
		if !errors.Is(err, emit.ErrSpace) || caps[failed] == 0 {
			return nil, err
		}
		caps[failed] /= 2
	}
	r.List, r.plans = e.List, e.Plans
	if out.Queues, err = token.Insert(opt.Machine, out.DRAMBytes, e.List); err != nil {
		return nil, fmt.Errorf("internal error in the instructions made: %w", err)
	}
	r.Program = out
	return r, nil
}

// kernels makes the kernels of m, joined where that is to be.
func kernels(m *graph.Model, opt Options) (*legal.Program, error) {
	w := newWalks(opt.Machine)
	for {
		p, err := legal.Lower(m)
		if err != nil || len(p.Fallbacks) > 0 {
			return p, err
		}
		if err := p.Verify(); err != nil {
			return nil, fmt.Errorf("internal error in lowering to kernels: %w", err)
		}
		if opt.Plain {
			return p, nil
		}
		f := &legal.Fuser{Fits: w.e.Fits, FitsPost: w.fitsPost}
		f.Run(p)
		if p.MergeProducts() > 0 {
			f.Run(p)
		}
		p.AbsorbBorders()
		for range maxRounds {
			if p.Recompute(f.Fits, f.FitsPost) == 0 {
				break
			}
			f.Run(p)
		}
		if !w.made(p) {
			continue
		}
		p.Strips(opt.Machine.Scratchpad.Bytes / 2)
		if err := p.Verify(); err != nil {
			return nil, fmt.Errorf("internal error in fusing kernels: %w", err)
		}
		return p, nil
	}
}

// maxRounds is how often values are made computable again and kernels joined in turn.
const maxRounds = 4

// maxTries is how often instructions are made with less and less kept on chip before nothing is.
const maxTries = 16

// residentCaps returns how many bytes may stay on chip through each step.
func residentCaps(groups []group, opt Options) []int {
	caps := make([]int, len(groups))
	if opt.Plain {
		return caps
	}
	e := emit.New(opt.Machine, nil)
	e.Bus = busShared
	all := opt.Machine.Scratchpad.Bytes
	for i, g := range groups {
		need := e.Need(g.kernel)
		if len(g.others) > 0 {
			need = need * 8 / 5
			for _, k := range g.others {
				need = max(need, e.Need(k)*8/3)
			}
		}
		caps[i] = max(all-need, 0)
	}
	return caps
}

// emitAll makes the instructions of all steps, with what fits into caps kept on chip between them. If it fails it tells in which step.
func emitAll(p *legal.Program, groups []group, opt Options, caps []int, out *isa.Program) (e *emit.Emitter, stays []stay, failed int, err error) {
	stays, err = reside(p, groups, opt.Machine, caps)
	if err != nil {
		return nil, nil, 0, err
	}
	out.Nodes, out.Segments, out.Inputs, out.Outputs = nil, nil, nil, nil
	addr, err := layout(p, groups, stays, opt.Machine, out)
	if err != nil {
		return nil, nil, 0, err
	}
	e = emit.New(opt.Machine, addr)
	e.Bus = busShared
	if len(groups) == 1 {
		e.Bus = busAlone
	}
	nodes := map[legal.Origin]int32{}
	node := func(k legal.Kernel) {
		o := *k.Origin()
		n, ok := nodes[o]
		if !ok {
			n = int32(len(out.Nodes))
			nodes[o] = n
			out.Nodes = append(out.Nodes, isa.Source{Name: o.Node, Op: o.Op, Role: o.Role, Cluster: cluster(&o)})
		}
		e.Node = n
	}
	for i, g := range groups {
		var held, fetched []*legal.Buffer
		at := map[*legal.Buffer]*emit.Resident{}
		for j := range stays {
			if s := &stays[j]; s.from <= i && i <= s.to {
				held, at[s.buf] = append(held, s.buf), &s.at
				if s.load && s.from == i {
					fetched = append(fetched, s.buf)
				}
			}
		}
		e.Hold(held, at)
		for _, b := range fetched {
			node(g.kernel)
			e.Fetch(b, g.kernel)
		}
		if len(g.others) > 0 {
			err = e.Together(g.kernel, g.others, node)
		} else {
			node(g.kernel)
			err = e.Kernel(g.kernel)
		}
		if err != nil {
			return nil, nil, i, err
		}
	}
	return e, stays, 0, nil
}

// cluster returns the name of what a kernel's time is put down to beside its node: the clusters of fuse that it computes parts of, else the
// operators that it was made of, if there are several.
func cluster(o *legal.Origin) string {
	switch {
	case o.Clusters != "":
		return o.Clusters
	case o.Ops != o.Op:
		return o.Ops + ": " + o.Node
	}
	return ""
}

// constant returns the elements of a constant buffer as the device has them: the model's own bytes, which may be those of a
// mapped file, where these are the same.
func constant(b *legal.Buffer) ([]byte, error) {
	if e := b.Data.Elem; (e == graph.Float || e == graph.Int32 || e == graph.Uint32) && b.Data.Data != nil {
		raw, err := b.Data.Data.Bytes()
		if err != nil {
			return nil, fmt.Errorf("constant %q: %w", b.Name, err)
		}
		if len(raw) == 4*b.Len {
			return raw, nil
		}
	}
	a, err := op.FromTensor(b.Data, false)
	if err != nil {
		return nil, fmt.Errorf("constant %q: %w", b.Name, err)
	}
	out := make([]byte, 0, 4*b.Len)
	for i := range b.Len {
		var w isa.Bits
		if a.I64 != nil {
			w = isa.IntBits(int32(a.I64[i]))
		} else {
			w = isa.FloatBits(float32(a.Float(i)))
		}
		out = append(out, byte(w), byte(w>>8), byte(w>>16), byte(w>>24))
	}
	return out, nil
}
