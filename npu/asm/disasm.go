// Package asm is the text form of programs.
//
// A listing is a sequence of lines; a comment runs from a semicolon outside of quotes to the end of the line. Directives come
// first: .program, .machine (the description as JSON), .source, .dram, then .node, .input, .output, .state and .segment in order; each
// segment is followed by its bytes in .hex lines. Then each queue begins with .queue and holds an instruction a line,
// followed by @ and the number of its source node where it has one.
package asm

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"gradtool/npu/isa"
)

// Options are choices of Disassemble.
type Options struct {
	// Data writes the bytes of segments, without which the listing cannot be assembled.
	Data bool
	// Queues picks queues, nil for all.
	Queues []isa.Queue
}

// Disassemble writes a listing of a program.
func Disassemble(w io.Writer, p *isa.Program, opt Options) error {
	b := bufio.NewWriter(w)
	var m bytes.Buffer
	if err := json.Compact(&m, p.Machine.JSON()); err != nil {
		return err
	}
	fmt.Fprintf(b, ".program %q\n.machine %s\n", p.Name, m.Bytes())
	if p.SourceHash != "" {
		fmt.Fprintf(b, ".source %s\n", p.SourceHash)
	}
	fmt.Fprintf(b, ".dram 0x%x\n", p.DRAMBytes)
	if c := p.Cost; c != nil {
		fmt.Fprintf(b, ".cost %d %d %d %d ; cycles, MACs, bytes read, bytes written\n", c.Cycles, c.MACs, c.DRAMRead, c.DRAMWrite)
	}
	for _, f := range p.Fallbacks {
		fmt.Fprintf(b, ".fallback %q\n", f)
	}
	for i, n := range p.Nodes {
		fmt.Fprintf(b, ".node %q %q %q %q ; %d\n", n.Name, n.Op, n.Role, n.Cluster, i)
	}
	tensors := func(what string, list []isa.Tensor) {
		for i := range list {
			t := &list[i]
			fmt.Fprintf(b, "%s %q %s %s %s 0x%x", what, t.Name, t.Type, t.Device, shapeText(t.Shape), t.Addr)
			if t.Default {
				b.WriteString(" default")
			}
			if t.Below != 0 {
				fmt.Fprintf(b, " below %d", t.Below)
			}
			b.WriteString("\n")
		}
	}
	tensors(".input", p.Inputs)
	tensors(".output", p.Outputs)
	for _, s := range p.State {
		fmt.Fprintf(b, ".state %q %q\n", s.Input, s.Output)
	}
	for _, s := range p.Segments {
		fmt.Fprintf(b, ".segment %q 0x%x 0x%x\n", s.Name, s.Addr, len(s.Data))
		for data := s.Data; opt.Data && len(data) > 0; {
			n := min(64, len(data))
			fmt.Fprintf(b, ".hex %s\n", hex.EncodeToString(data[:n]))
			data = data[n:]
		}
	}
	queues := opt.Queues
	if queues == nil {
		queues = []isa.Queue{isa.Load, isa.Store, isa.Matrix, isa.Vector}
	}
	for _, q := range queues {
		fmt.Fprintf(b, "\n.queue %s\n", q)
		for i := range p.Queues[q] {
			in := &p.Queues[q][i]
			b.WriteString("\t" + in.Text())
			if in.Node >= 0 {
				fmt.Fprintf(b, " @%d", in.Node)
			}
			if c := comment(p, in); c != "" {
				b.WriteString(" ; " + c)
			}
			b.WriteString("\n")
		}
	}
	return b.Flush()
}

// comment names the node of an instruction and the value of a float immediate.
func comment(p *isa.Program, in *isa.Instr) string {
	var parts []string
	if in.Node >= 0 && int(in.Node) < len(p.Nodes) {
		parts = append(parts, clean(p.Nodes[in.Node].Name))
	}
	if a, ok := in.Args.(*isa.Vec); ok && a.Type == isa.F32 {
		for _, o := range []isa.Operand{a.A, a.B, a.C} {
			if o.IsImm {
				parts = append(parts, fmt.Sprintf("#%v", o.Float()))
			}
		}
	}
	return strings.Join(parts, " ")
}

// clean makes a name fit a comment.
func clean(s string) string {
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

func shapeText(shape []int64) string {
	parts := make([]string, len(shape))
	for i, d := range shape {
		parts[i] = strconv.FormatInt(d, 10)
	}
	return "[" + strings.Join(parts, ",") + "]"
}
