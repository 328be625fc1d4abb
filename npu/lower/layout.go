package lower

import (
	"fmt"

	"gradtool/graph"
	"gradtool/memplan/offset"
	"gradtool/npu/isa"
	"gradtool/npu/legal"
	"gradtool/npu/machine"
)

// placeEffort is the number of steps that the planner of addresses may take.
const placeEffort = 2_000_000

// MemoryError says that a machine's DRAM does not hold what a model needs, both in bytes.
type MemoryError struct {
	Need, Have int64
	Machine    string
}

// Error returns both sizes.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("the model needs %d bytes of DRAM, the machine %s has %d", e.Need, e.Machine, e.Have)
}

// layout gives every buffer a place in DRAM and fills in what the program says of memory. Inputs, outputs and constants keep
// their places; what is made and used up inside shares bytes with what lives at other times. What never leaves the chip has no place.
func layout(p *legal.Program, groups []group, stays []stay, m *machine.Machine, out *isa.Program) (map[*legal.Buffer]int64, error) {
	addr := map[*legal.Buffer]int64{}
	at := int64(0)
	a := int64(m.DMA.Align)
	for _, b := range p.Buffers {
		if b.Role == legal.Temp {
			continue
		}
		addr[b] = at
		if b.Role == legal.Const {
			data, err := constant(b)
			if err != nil {
				return nil, err
			}
			out.Segments = append(out.Segments, isa.Segment{Name: b.Name, Addr: at, Data: data})
		}
		at += (int64(b.Bytes()) + a - 1) / a * a
	}
	height, err := placeTemps(p, groups, stays, a, at, addr)
	if err != nil {
		return nil, err
	}
	out.DRAMBytes = at + height
	if out.DRAMBytes > m.DRAM.Bytes {
		return nil, &MemoryError{Need: out.DRAMBytes, Have: m.DRAM.Bytes, Machine: m.Name}
	}
	for _, list := range []struct {
		from []legal.Binding
		to   *[]isa.Tensor
	}{{p.Inputs, &out.Inputs}, {p.Outputs, &out.Outputs}} {
		for _, b := range list.from {
			t := isa.Tensor{Name: b.Name, Type: b.Elem.String(), Device: isa.F32, Addr: addr[b.Buf]}
			switch b.Buf.Mem() {
			case graph.Int32:
				t.Device = isa.I32
			case graph.Float16:
				t.Device = isa.F16
			case graph.BFloat16:
				t.Device = isa.BF16
			}
			for _, d := range b.Shape {
				t.Shape = append(t.Shape, int64(d))
			}
			*list.to = append(*list.to, t)
		}
	}
	return addr, nil
}

// placeTemps puts the temporaries behind base and returns how many bytes they take.
func placeTemps(p *legal.Program, groups []group, stays []stay, align, base int64, addr map[*legal.Buffer]int64) (int64, error) {
	first, last := map[*legal.Buffer]int{}, map[*legal.Buffer]int{}
	for i, g := range groups {
		for _, k := range append([]legal.Kernel{g.kernel}, g.others...) {
			for _, x := range append(k.Writes(), k.Reads()...) {
				if x == nil {
					continue
				}
				if _, ok := first[x.Buf]; !ok {
					first[x.Buf] = i
				}
				last[x.Buf] = i
			}
		}
	}
	inside := map[*legal.Buffer]bool{}
	for _, s := range stays {
		inside[s.buf] = inside[s.buf] || s.inside
	}
	var list []offset.Buffer
	var temps []*legal.Buffer
	for _, b := range p.Buffers {
		if b.Role != legal.Temp || inside[b] {
			continue
		}
		temps = append(temps, b)
		list = append(list, offset.Buffer{ID: fmt.Sprintf("b%d", b.ID), Lower: int64(first[b]), Upper: int64(last[b] + 1),
			Size: (int64(b.Bytes()) + align - 1) / align * align, Align: align})
	}
	if len(list) == 0 {
		return 0, nil
	}
	r, err := offset.Solve(list, 0, placeEffort)
	if err != nil {
		return 0, fmt.Errorf("places in DRAM: %w", err)
	}
	for i, b := range temps {
		addr[b] = base + r.Plan.Offsets[i]
	}
	return r.Plan.Height, nil
}
