// Package sample has a small program for tests of the packages that handle programs.
package sample

import (
	"encoding/binary"
	"fmt"
	"math"

	"gradtool/npu/isa"
	"gradtool/npu/machine"
	"gradtool/npu/token"
)

// Program is a program for y = max(x w + b, 0) scaled row-wise by its sum, and z = x^T y, in tiles with two buffers each, for
// x of 64 x 48 and w of 48 x 32: it uses every queue and every kind of order between them.
func Program() (*isa.Program, error) {
	m, err := machine.Builtin("ref-small")
	if err != nil {
		return nil, err
	}
	const rows, k, cols, tile = 64, 48, 32, 16
	const x, w, b, y, z = 0, x1, w1, b1, y1
	const size = z1
	var list []isa.Instr
	add := func(op isa.Op, node int32, a isa.Args) { list = append(list, isa.Instr{Op: op, Node: node, Args: a}) }
	box := func(dram int64, local isa.Local, r, c int32, pitch int64) *isa.DMA {
		return &isa.DMA{N: [5]int32{3: r, 4: c}, DRAM: dram, DS: [5]int64{3: pitch, 4: 1}, Local: local, LS: [5]int32{3: c, 4: 1}}
	}
	const ws, bs, xs, ys, sums = 0, 8192, 9216, 20480, 32768
	add(isa.OpLoad, 0, box(w, ws, k, cols, cols))
	add(isa.OpLoad, 0, box(b, bs, 1, cols, cols))
	for i := int32(0); i < rows/tile; i++ {
		buf := i % 2
		xa, ya := isa.Local(xs+buf*4096), isa.Local(ys+buf*4096)
		acc := isa.AccBase + isa.Local(buf*2048)
		sum := isa.Local(sums + buf*64)
		add(isa.OpLoad, 0, box(int64(x+i*tile*k*4), xa, tile, k, k))
		add(isa.OpMatmul, 0, &isa.Matmul{M: [3]int32{2: tile}, N: [3]int32{2: cols}, K: [3]int32{2: k}, A: xa, AM: [3]int32{2: k}, AK: [3]int32{2: 1}, B: ws, BK: [3]int32{2: cols}, BN: [3]int32{2: 1}, C: acc, CM: cols})
		add(isa.OpAddMax, 1, &isa.Vec{N: isa.Counts(tile, cols), Dst: isa.At(ya, cols, 1), A: isa.At(acc, cols, 1), B: isa.At(bs, 0, 1), C: isa.Float(0)})
		add(isa.OpSum, 2, &isa.Reduce{N: isa.Counts(tile, cols), Red: 1, Dst: isa.At(sum, 1, 0), A: isa.At(ya, cols, 1)})
		add(isa.OpMul, 2, &isa.Vec{N: isa.Counts(tile, cols), Dst: isa.At(ya, cols, 1), A: isa.At(ya, cols, 1), B: isa.At(sum, 1, 0)})
		add(isa.OpStore, 2, box(int64(y+i*tile*cols*4), ya, tile, cols, cols))
		add(isa.OpMatmul, 3, &isa.Matmul{M: [3]int32{2: k}, N: [3]int32{2: cols}, K: [3]int32{2: tile}, A: xa, AM: [3]int32{2: 1}, AK: [3]int32{2: k}, B: ya, BK: [3]int32{2: cols}, BN: [3]int32{2: 1}, C: isa.AccBase + 8192, CM: cols, Acc: i > 0})
	}
	add(isa.OpStore, 3, box(z, isa.AccBase+8192, k, cols, cols))
	// y is read back from DRAM and updated there, so the two DMA queues depend on each other.
	add(isa.OpLoad, 4, box(y, 40960, rows, cols, cols))
	add(isa.OpNeg, 4, &isa.Vec{N: isa.Counts(rows, cols), Dst: isa.At(40960, cols, 1), A: isa.At(40960, cols, 1)})
	st := box(y, 40960, rows, cols, cols)
	st.Update = isa.Add
	add(isa.OpStore, 4, st)
	p := &isa.Program{Machine: m, Name: "sample", DRAMBytes: size}
	for _, n := range []string{"matmul", "relu", "scale", "grad", "back"} {
		p.Nodes = append(p.Nodes, isa.Source{Name: n, Op: n, Role: "forward"})
	}
	if p.Queues, err = token.Insert(m, size, list); err != nil {
		return nil, fmt.Errorf("sample: %w", err)
	}
	wdata := make([]byte, k*cols*4)
	for i := range k * cols {
		binary.LittleEndian.PutUint32(wdata[4*i:], math.Float32bits(float32(i%13)-6))
	}
	p.Segments = []isa.Segment{{Name: "w", Addr: w, Data: wdata}}
	tensor := func(name string, addr int64, shape ...int64) isa.Tensor {
		return isa.Tensor{Name: name, Type: "float", Shape: shape, Addr: addr}
	}
	p.Inputs = []isa.Tensor{tensor("x", x, rows, k), tensor("b", b, cols)}
	p.Outputs = []isa.Tensor{tensor("y", y, rows, cols), tensor("z", z, k, cols)}
	return p, nil
}

// Addresses behind the tensors of the sample.
const (
	x1 = 64 * 48 * 4
	w1 = x1 + 48*32*4
	b1 = w1 + 32*4
	y1 = b1 + 64*32*4
	z1 = y1 + 48*32*4
)

// Inputs returns whole numbers, so that sums are exact.
func Inputs() map[string][]byte {
	f := func(n int) []byte {
		b := make([]byte, 4*n)
		for i := range n {
			binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(float32((i*7)%5-2)))
		}
		return b
	}
	return map[string][]byte{"x": f(64 * 48), "b": f(32)}
}
