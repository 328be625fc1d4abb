package asm

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"gradtool/npu/isa"
	"gradtool/npu/machine"
)

// maxLine bounds the length of a line.
const maxLine = 1 << 24

// assembler is the state of Assemble.
type assembler struct {
	p     *isa.Program
	queue isa.Queue
	inq   bool
	want  int64 // bytes that the last segment still lacks
}

// Assemble reads a listing with the data of its segments. Errors name the line.
func Assemble(r io.Reader) (*isa.Program, error) {
	a := &assembler{p: &isa.Program{}}
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxLine)
	n := 0
	for sc.Scan() {
		n++
		if err := a.line(sc.Text()); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", n+1, err)
	}
	if err := a.complete(); err != nil {
		return nil, fmt.Errorf("line %d: %w", n, err)
	}
	if a.p.Machine == nil {
		return nil, errors.New("the listing has no .machine")
	}
	return a.p, nil
}

// complete checks that the last segment has all its bytes.
func (a *assembler) complete() error {
	if a.want == 0 {
		return nil
	}
	s := a.p.Segments[len(a.p.Segments)-1]
	return fmt.Errorf("segment %q lacks %d of its bytes; a listing without data cannot be assembled", s.Name, a.want)
}

func (a *assembler) line(text string) error {
	words, err := split(text)
	if err != nil || len(words) == 0 {
		return err
	}
	if words[0] != ".hex" {
		if err := a.complete(); err != nil {
			return err
		}
	}
	if !strings.HasPrefix(words[0], ".") {
		return a.instr(words)
	}
	if words[0] == ".machine" {
		_, body, _ := strings.Cut(text, ".machine")
		a.p.Machine, err = machine.Parse([]byte(body))
		return err
	}
	return a.directive(words[0], words[1:])
}

// instr reads an instruction and its node.
func (a *assembler) instr(words []string) error {
	if !a.inq {
		return fmt.Errorf("the instruction %s stands before .queue", words[0])
	}
	node := int32(-1)
	if last, ok := strings.CutPrefix(words[len(words)-1], "@"); ok {
		x, err := strconv.ParseInt(last, 10, 32)
		if err != nil || x < 0 || int(x) >= len(a.p.Nodes) {
			return fmt.Errorf("there is no node %s", last)
		}
		node = int32(x)
		words = words[:len(words)-1]
	}
	in, err := isa.ParseInstr(strings.Join(words, " "))
	if err != nil {
		return err
	}
	in.Node = node
	a.p.Queues[a.queue] = append(a.p.Queues[a.queue], in)
	return nil
}

// arity is the least and the greatest number of words behind a directive.
func arity(name string) (lo, hi int, ok bool) {
	switch name {
	case ".program", ".source", ".dram", ".fallback", ".hex", ".queue":
		return 1, 1, true
	case ".state":
		return 2, 2, true
	case ".segment":
		return 3, 3, true
	case ".node", ".cost":
		return 4, 4, true
	case ".input", ".output":
		return 5, 8, true
	}
	return 0, 0, false
}

func (a *assembler) directive(name string, w []string) error {
	lo, hi, ok := arity(name)
	if !ok {
		return fmt.Errorf("no directive is called %s", name)
	}
	if len(w) < lo || len(w) > hi {
		return fmt.Errorf("%s with %d words", name, len(w))
	}
	p := a.p
	var err error
	switch name {
	case ".program":
		p.Name = w[0]
	case ".source":
		p.SourceHash = w[0]
	case ".dram":
		p.DRAMBytes, err = strconv.ParseInt(w[0], 0, 64)
	case ".cost":
		c := new(isa.Cost)
		for i, to := range []*int64{&c.Cycles, &c.MACs, &c.DRAMRead, &c.DRAMWrite} {
			if *to, err = strconv.ParseInt(w[i], 0, 64); err != nil {
				return err
			}
		}
		p.Cost = c
	case ".fallback":
		p.Fallbacks = append(p.Fallbacks, w[0])
	case ".node":
		p.Nodes = append(p.Nodes, isa.Source{Name: w[0], Op: w[1], Role: w[2], Cluster: w[3]})
	case ".state":
		p.State = append(p.State, isa.Pair{Input: w[0], Output: w[1]})
	case ".input", ".output":
		t, err := tensor(w)
		if err != nil {
			return err
		}
		if name == ".input" {
			p.Inputs = append(p.Inputs, t)
		} else {
			p.Outputs = append(p.Outputs, t)
		}
	case ".segment":
		s := isa.Segment{Name: w[0]}
		if s.Addr, err = strconv.ParseInt(w[1], 0, 64); err != nil {
			return err
		}
		if a.want, err = strconv.ParseInt(w[2], 0, 48); err != nil || a.want < 0 {
			return fmt.Errorf("size of the segment: %q", w[2])
		}
		s.Data = []byte{}
		p.Segments = append(p.Segments, s)
	case ".hex":
		data, err := hex.DecodeString(w[0])
		if err != nil {
			return err
		}
		if int64(len(data)) > a.want {
			return fmt.Errorf("more bytes than the segment has")
		}
		a.want -= int64(len(data))
		s := &p.Segments[len(p.Segments)-1]
		s.Data = append(s.Data, data...)
	case ".queue":
		for q := isa.Queue(0); q < isa.NumQueues; q++ {
			if q.String() == w[0] {
				a.queue, a.inq = q, true
				return nil
			}
		}
		return fmt.Errorf("no queue is called %q", w[0])
	}
	return err
}

// tensor reads an input or output: name, type, device type, shape, address and, perhaps, default and a bound of integers.
func tensor(w []string) (isa.Tensor, error) {
	t := isa.Tensor{Name: w[0], Type: w[1], Shape: []int64{}}
	ok := false
	for d := range isa.DType(8) {
		if d.String() == w[2] {
			t.Device, ok = d, true
		}
	}
	if !ok {
		return t, fmt.Errorf("no type is called %q", w[2])
	}
	inner, ok1 := strings.CutPrefix(w[3], "[")
	inner, ok2 := strings.CutSuffix(inner, "]")
	if !ok1 || !ok2 {
		return t, fmt.Errorf("%q is no shape", w[3])
	}
	for d := range strings.SplitSeq(inner, ",") {
		if inner == "" {
			break
		}
		x, err := strconv.ParseInt(d, 10, 64)
		if err != nil {
			return t, err
		}
		t.Shape = append(t.Shape, x)
	}
	var err error
	if t.Addr, err = strconv.ParseInt(w[4], 0, 64); err != nil {
		return t, err
	}
	for w = w[5:]; len(w) > 0; w = w[1:] {
		switch {
		case w[0] == "default":
			t.Default = true
		case w[0] == "below" && len(w) > 1:
			if t.Below, err = strconv.ParseInt(w[1], 10, 64); err != nil || t.Below < 1 {
				return t, fmt.Errorf("below %q: want a number, 1 or more", w[1])
			}
			w = w[1:]
		default:
			return t, fmt.Errorf("%q behind the address", w[0])
		}
	}
	return t, nil
}

// split returns the words of a line without its comment; words in double quotes are unquoted.
func split(line string) ([]string, error) {
	var words []string
	for {
		line = strings.TrimLeft(line, " \t\r")
		if line == "" || line[0] == ';' {
			return words, nil
		}
		if line[0] == '"' {
			q, err := strconv.QuotedPrefix(line)
			if err != nil {
				return nil, fmt.Errorf("a string is not closed")
			}
			s, err := strconv.Unquote(q)
			if err != nil {
				return nil, err
			}
			words, line = append(words, s), line[len(q):]
			if line != "" && !strings.ContainsRune(" \t\r;", rune(line[0])) {
				return nil, fmt.Errorf("text follows the string %s without a space", q)
			}
			continue
		}
		n := strings.IndexAny(line, " \t\r;")
		if n < 0 {
			n = len(line)
		}
		words, line = append(words, line[:n]), line[n:]
	}
}
