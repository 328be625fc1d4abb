package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"gradtool/internal/size"
	"gradtool/internal/table"
	"gradtool/npu/machine"
)

func machineVerb() verb {
	return verb{
		name: "machine", group: groupOther, args: "[NAME|FILE]", maxArgs: 1,
		summary: "print or check a description of an NPU",
		about: `
Prints the description of a built-in machine, or of a JSON file after checking it, in the one form that a
description has. Without an argument it lists the built-in machines. docs/MACHINE.md explains the fields.`,
		examples: []string{
			"gradtool machine ref-edge > my.json",
			"gradtool machine my.json",
		},
		run: runMachine,
	}
}

func runMachine(s *session) error {
	if s.NArg() == 0 {
		num := func(title string) table.Column { return table.Column{Title: title, Right: true, Fixed: true} }
		t := table.New(table.Column{Title: "machine", Fixed: true}, num("MACs/cycle"), num("MHz"), num("scratchpad"), num("accumulator"), num("DRAM/cycle"), num("lanes"), table.Column{Title: "is"})
		for _, name := range machine.Names() {
			m, err := machine.Builtin(name)
			if err != nil {
				return err
			}
			t.Row(m.Name, fmt.Sprint(m.PeakMACs()), fmt.Sprint(m.ClockMHz), size.Bytes(int64(m.Scratchpad.Bytes)), size.Bytes(int64(m.Accumulator.Bytes)),
				size.Bytes(int64(m.DMA.BytesPerCycle)), fmt.Sprint(m.Vector.Lanes), m.Doc)
		}
		return s.print(func(w io.Writer) error { return s.writeTable(w, t) })
	}
	m, err := machineNamed(s.Args().First())
	if err != nil {
		return err
	}
	return s.print(func(w io.Writer) error {
		_, err := w.Write(m.JSON())
		return err
	})
}

// machineNamed returns a built-in machine, or the one that a file describes.
func machineNamed(name string) (*machine.Machine, error) {
	if slices.Contains(machine.Names(), name) {
		return machine.Builtin(name)
	}
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, usagef("machine %q: neither a file nor one of %s", name, strings.Join(machine.Names(), ", "))
	}
	if err != nil {
		return nil, err
	}
	m, err := machine.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}
