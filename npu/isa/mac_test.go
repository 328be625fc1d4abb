package isa

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestMacTile compares the tile products that the simulator runs, in assembly where there is some, with the plain loops, bit
// by bit, denormals and infinities included.
func TestMacTile(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	number := func() float32 {
		switch rng.IntN(16) {
		case 0:
			return float32(math.Inf(1 - 2*rng.IntN(2)))
		case 1:
			return math.Float32frombits(rng.Uint32N(1 << 23)) // zero or denormal
		}
		return float32(rng.NormFloat64() * math.Pow(10, float64(rng.IntN(8)-4)))
	}
	for _, k := range []int{1, 2, 3, 17, 64} {
		a, b := make([]float32, k*tileRows), make([]float32, k*tileCols)
		for i := range a {
			a[i] = number()
		}
		for i := range b {
			b[i] = number()
		}
		var got, want [tileRows * tileCols]float32
		for i := range got {
			got[i] = number()
		}
		want = got
		macTile(&got, &a[0], &b[0], k)
		macTileGo(&want, a, b, k)
		for i := range got {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) && !(got[i] != got[i] && want[i] != want[i]) {
				t.Fatalf("k = %d, element %d: %v, want %v", k, i, got[i], want[i])
			}
		}
	}
}
