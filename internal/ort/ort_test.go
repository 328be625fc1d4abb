//go:build ort

package ort

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// model is float[2] x, float y -> z = x * y, s = ReduceSum(x), hand-encoded so that this package needs no graph.
func model() []byte {
	field := func(num int, b ...byte) []byte { return append([]byte{byte(num<<3 | 2), byte(len(b))}, b...) }
	cat := func(parts ...[]byte) []byte {
		var out []byte
		for _, p := range parts {
			out = append(out, p...)
		}
		return out
	}
	typ := func(dims ...byte) []byte {
		var shape []byte
		for _, d := range dims {
			shape = append(shape, field(1, 8, d)...)
		}
		return field(2, field(1, cat([]byte{8, 1}, field(2, shape...))...)...)
	}
	vi := func(num int, name string, dims ...byte) []byte {
		return field(num, cat(field(1, []byte(name)...), typ(dims...))...)
	}
	keep := field(5, cat(field(1, []byte("keepdims")...), []byte{24, 0, 160, 1, 2})...)
	mul := field(1, cat(field(1, 'x'), field(1, 'y'), field(2, 'z'), field(4, []byte("Mul")...))...)
	sum := field(1, cat(field(1, 'x'), field(2, 's'), field(4, []byte("ReduceSum")...), keep)...)
	g := cat(mul, sum, field(2, 'g'), vi(11, "x", 2), vi(11, "y"), vi(12, "z", 2), vi(12, "s"))
	return cat([]byte{8, 8}, field(7, g...), field(8, cat(field(1), []byte{16, 17})...))
}

func floats(v ...float32) []byte {
	b := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(x))
	}
	return b
}

func TestRun(t *testing.T) {
	if err := Available(); err != nil {
		t.Skip(err)
	}
	path := filepath.Join(t.TempDir(), "m.onnx")
	if err := os.WriteFile(path, model(), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Load(path, []string{"x", "y"}, []Output{{"z", 1, nil}, {"s", 1, []int64{}}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out, err := s.Run([]Tensor{{"x", 1, []int64{2}, floats(1, 2)}, {"y", 1, []int64{}, floats(3)}})
	if err != nil {
		t.Fatal(err)
	}
	if string(out[0].Data) != string(floats(3, 6)) || string(out[1].Data) != string(floats(3)) || len(out[1].Shape) != 0 {
		t.Errorf("got %v, want z = 3, 6 and s = 3", out)
	}
}
