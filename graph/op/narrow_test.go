package op

import (
	"math"
	"testing"
)

func TestFloat16(t *testing.T) {
	for h := range 1 << 16 {
		f := float16ToFloat32(uint16(h))
		if f != f {
			continue
		}
		if got := float16Bits(float64(f)); got != uint16(h) {
			t.Fatalf("float16Bits(%g) = %#x, want %#x", f, got, h)
		}
	}
	for _, c := range []struct {
		x    float64
		want uint16
	}{{1 + 1.0/2048, 0x3c00}, {1 + 3.0/2048, 0x3c02}, {65519.99, 0x7bff}, {65520, 0x7c00}, {math.Inf(-1), 0xfc00}, {1.0 / (1 << 25), 0}, {1.5 / (1 << 24), 2}} {
		if got := float16Bits(c.x); got != c.want {
			t.Errorf("float16Bits(%g) = %#x, want %#x", c.x, got, c.want)
		}
	}
}

func TestBFloat16(t *testing.T) {
	for h := range 1 << 16 {
		f := bfloat16ToFloat32(uint16(h))
		if f != f {
			continue
		}
		if got := bfloat16Bits(float64(f)); got != uint16(h) {
			t.Fatalf("bfloat16Bits(%g) = %#x, want %#x", f, got, h)
		}
	}
}
