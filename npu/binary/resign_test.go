package binary_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"math/rand/v2"
	"testing"

	"gradtool/npu/binary"
	"gradtool/npu/internal/sample"
	"gradtool/npu/sim"
)

// digestAt is where the digest lies: behind the ELF header and the head of its note.
const digestAt = 64 + 12 + 12

// TestForged changes a file and gives it the digest that it then needs: whoever reads it must find an error or a program, and
// running that must end in an error or outputs, never in a panic.
func TestForged(t *testing.T) {
	_, file := encoded(t)
	r := rand.New(rand.NewPCG(1, 2))
	read, ran := 0, 0
	for range 3000 {
		bad := bytes.Clone(file)
		for range 1 + r.IntN(3) {
			at := r.IntN(len(bad))
			if at >= digestAt && at < digestAt+sha256.Size {
				continue
			}
			if r.IntN(2) == 0 {
				bad[at] ^= 1 << r.IntN(8)
			} else {
				bad[at] = byte(r.Uint32())
			}
		}
		if r.IntN(10) == 0 {
			bad = bad[:r.IntN(len(bad))]
			if len(bad) < digestAt+sha256.Size {
				continue
			}
		}
		clear(bad[digestAt : digestAt+sha256.Size])
		sum := sha256.Sum256(bad)
		copy(bad[digestAt:], sum[:])
		p, err := binary.Read(bad)
		if err != nil {
			continue
		}
		read++
		if p.DRAMBytes > 1<<24 || sim.Check(p) != nil {
			continue
		}
		if _, err := sim.Time(p); err != nil {
			continue
		}
		ran++
		_, _ = sim.Run(context.Background(), p, sample.Inputs(), sim.Options{})
	}
	if read < 100 || ran < 50 {
		t.Errorf("only %d files were read and %d programs run", read, ran)
	}
}
