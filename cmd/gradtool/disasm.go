package main

import (
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"gradtool/npu/asm"
	"gradtool/npu/binary"
	"gradtool/npu/isa"
	"gradtool/npu/sim"
)

func disasmVerb() verb {
	return verb{
		name: "disasm", group: groupRead, args: "[PROGRAM|-]", maxArgs: 1,
		summary: "list a program of an NPU: manifest, memory, instructions by queue",
		about: `
Prints the listing of a program that "gradtool lower" made, as "gradtool asm" reads it; that needs --data, which writes the
weights too. docs/ISA.md explains the instructions.`,
		examples: []string{
			"gradtool disasm step.npu",
			"gradtool disasm --queue matrix step.npu",
			"gradtool disasm --data step.npu | gradtool asm -o same.npu",
		},
		flags: []cli.Flag{
			&cli.BoolFlag{Name: "data", Usage: "write the bytes of weights and constants too"},
			&cli.StringSliceFlag{Name: "queue", Usage: "list the queue `load|store|matrix|vector` only; repeatable"},
		},
		run: runDisasm,
	}
}

func runDisasm(s *session) error {
	path, err := s.inputPath()
	if err != nil {
		return err
	}
	opt := asm.Options{Data: s.Bool("data")}
	for _, name := range s.StringSlice("queue") {
		found := false
		for q := isa.Queue(0); q < isa.NumQueues; q++ {
			if q.String() == name {
				opt.Queues = append(opt.Queues, q)
				found = true
			}
		}
		if !found {
			return usagef("--queue %q: want load, store, matrix or vector", name)
		}
	}
	p, err := s.readProgram(path)
	if err != nil {
		return err
	}
	return s.print(func(w io.Writer) error { return asm.Disassemble(w, p, opt) })
}

func asmVerb() verb {
	return verb{
		name: "asm", group: groupOther, args: "[LISTING|-]", maxArgs: 1,
		summary: "make a program of an NPU from a listing, the inverse of disasm",
		about: `
Reads a listing as "gradtool disasm --data" prints it, possibly changed by hand, and writes the program.`,
		examples: []string{"gradtool asm step.s -o step.npu"},
		flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the program to `FILE`, - for standard output even if that is a terminal"},
		},
		run: runAsm,
	}
}

func runAsm(s *session) error {
	path, err := s.inputPath()
	if err != nil {
		return err
	}
	out, err := s.target("")
	if err != nil {
		return err
	}
	in := s.stdin
	if path != "-" {
		if in, err = os.Open(path); err != nil {
			return err
		}
		defer in.Close()
	}
	p, err := asm.Assemble(in)
	if err == nil {
		err = sim.Check(p)
	}
	if err != nil {
		return badModel(fmt.Errorf("%s: %w", path, err))
	}
	return s.save(out, func(w io.Writer) error { return binary.Write(w, p) })
}
