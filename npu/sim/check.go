package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"gradtool/npu/isa"
)

// maxErrors is the number of bad instructions that Check lists.
const maxErrors = 20

// Check returns what is wrong with a program that can be seen without running it.
func Check(p *isa.Program) error {
	if p.Machine == nil {
		return errors.New("the program has no machine")
	}
	if err := p.Machine.Check(); err != nil {
		return err
	}
	if p.DRAMBytes < 0 || p.DRAMBytes > p.Machine.DRAM.Bytes {
		return fmt.Errorf("the program needs %d bytes of DRAM, machine %s has %d", p.DRAMBytes, p.Machine.Name, p.Machine.DRAM.Bytes)
	}
	if len(p.Fallbacks) > 0 {
		return fmt.Errorf("the program lacks %d nodes that the machine cannot do: %v", len(p.Fallbacks), p.Fallbacks)
	}
	var errs []error
	errs = append(errs, checkTensors(p)...)
	for q := isa.Queue(0); q < isa.NumQueues; q++ {
		if len(p.Queues[q]) >= 1<<30-2 {
			return fmt.Errorf("the %s queue has %d instructions", q, len(p.Queues[q]))
		}
		for i := range p.Queues[q] {
			in := &p.Queues[q][i]
			if in.Node < -1 || int(in.Node) >= len(p.Nodes) {
				errs = append(errs, fmt.Errorf("%s queue, instruction %d: node %d of %d", q, i, in.Node, len(p.Nodes)))
			} else if err := in.Check(p.Machine, q, p.DRAMBytes); err != nil {
				node := ""
				if in.Node >= 0 {
					node = fmt.Sprintf(" of node %q", p.Nodes[in.Node].Name)
				}
				errs = append(errs, fmt.Errorf("%s queue, instruction %d%s: %w", q, i, node, err))
			}
			if len(errs) > maxErrors {
				return errors.Join(append(errs, errors.New("and more"))...)
			}
		}
	}
	return errors.Join(errs...)
}

func checkTensors(p *isa.Program) []error {
	var errs []error
	type area struct {
		name   string
		lo, hi int64
	}
	var areas []area
	for _, s := range p.Segments {
		a := area{s.Name, s.Addr, s.Addr + int64(len(s.Data))}
		if a.lo < 0 || a.hi > p.DRAMBytes {
			errs = append(errs, fmt.Errorf("segment %q is outside of DRAM", s.Name))
		}
		areas = append(areas, a)
	}
	slices.SortStableFunc(areas, func(x, y area) int { return cmp.Compare(x.lo, y.lo) })
	for i := range areas[min(1, len(areas)):] {
		if areas[i].hi > areas[i+1].lo {
			errs = append(errs, fmt.Errorf("segments %q and %q overlap", areas[i].name, areas[i+1].name))
		}
	}
	for k, list := range [][]isa.Tensor{p.Inputs, p.Outputs} {
		what := []string{"input", "output"}[k]
		seen := map[string]bool{}
		for i := range list {
			t := &list[i]
			if seen[t.Name] {
				errs = append(errs, fmt.Errorf("%s %q is there twice", what, t.Name))
			}
			seen[t.Name] = true
			dev, ok := DeviceType(t.Type)
			if !ok || dev != t.Device {
				errs = append(errs, fmt.Errorf("%s %q has type %s, which is not %s on the device", what, t.Name, t.Type, t.Device))
				continue
			}
			n := int64(dev.Bytes())
			if slices.Contains(t.Shape, 0) {
				n = 0
			}
			for _, d := range t.Shape {
				if d < 0 || d > 0 && n > p.DRAMBytes/d {
					n = -1
					break
				}
				n *= d
			}
			if n < 0 || t.Addr < 0 || t.Addr > p.DRAMBytes-n || t.Addr%int64(dev.Bytes()) != 0 {
				errs = append(errs, fmt.Errorf("%s %q, %s%v at 0x%x, is outside of DRAM or not aligned", what, t.Name, t.Type, t.Shape, t.Addr))
			}
		}
	}
	return errs
}
