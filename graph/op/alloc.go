package op

import (
	"fmt"
	"math/bits"
	"os"
	"reflect"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gradtool/graph"
	"gradtool/internal/size"
)

// maxElements bounds what an evaluation allocates at a time: indices of more elements are 64 bits wide everywhere, but what
// asks for more is a model with a wrong size in it.
const maxElements = 1 << 31

// largeAlloc is the number of bytes from which on an allocation is held against the memory of the machine.
const largeAlloc = 1 << 28

// SizeError says that a tensor is too large to be made. Kernels meet it deep inside, where [NewArray] panics with it;
// [EvalCtx.Eval] returns it.
type SizeError struct {
	Shape []int
	Why   string // continues "a tensor of shape ..."
}

// Error gives the shape and what it exceeds.
func (e *SizeError) Error() string {
	return "a tensor of shape " + strings.ReplaceAll(fmt.Sprint(e.Shape), " ", ",") + " " + e.Why
}

// CheckSize returns a [*SizeError] if a tensor cannot be made: its elements are too many, or they need more memory than the
// machine has, or more than is left of it by what is in use.
func CheckSize(elem graph.DataType, shape []int, wide bool) error {
	if _, e := allocation(shape, storedBytes(elem, wide)); e != nil {
		return e
	}
	return nil
}

// storedBytes is what an element takes in an Array.
func storedBytes(elem graph.DataType, wide bool) int {
	switch {
	case elem.IsFloat() && !wide && elem != graph.Double:
		return 4
	case elem.IsComplex(), elem == graph.String:
		return 16
	}
	return 8
}

// allocation returns the number of elements of a shape, unless so many of the given width cannot be allocated.
func allocation(shape []int, width int) (int, *SizeError) {
	n, why := elements(shape)
	if why == "" && n >= largeAlloc/width {
		why = memory().refuses(uint64(n) * uint64(width))
	}
	if why != "" {
		return 0, &SizeError{slices.Clone(shape), why}
	}
	return n, nil
}

// elements multiplies sizes; why says what is wrong with them, "" if nothing is.
func elements(shape []int) (n int, why string) {
	for i, d := range shape {
		if d < 0 {
			return 0, fmt.Sprintf("has the negative size %d along axis %d", d, i)
		}
	}
	if slices.Contains(shape, 0) {
		return 0, ""
	}
	n = 1
	for _, d := range shape {
		hi, lo := bits.Mul64(uint64(n), uint64(d))
		if hi != 0 || lo > maxElements {
			return 0, "would have more than 2^31 elements"
		}
		n = int(lo)
	}
	return n, ""
}

// scratch returns zeros for a kernel's own use, the product of sizes many, within the bounds of [NewArray].
func scratch[T any](sizes ...int) []T {
	n, err := allocation(sizes, int(reflect.TypeFor[T]().Size()))
	if err != nil {
		panic(err)
	}
	return make([]T, n)
}

// machineMemory is the memory that the program may use, in bytes, 0 if that is not known, and how much of it is in use.
type machineMemory struct {
	total uint64
	used  func() uint64
}

// refuses says why n bytes more cannot be allocated, "" if they can. Memory counts as used until it is collected.
func (m machineMemory) refuses(n uint64) string {
	switch {
	case m.total == 0:
		return ""
	case n > m.total:
		return fmt.Sprintf("would take %s, the machine has %s", size.Bytes(int64(n)), size.Bytes(int64(m.total)))
	case m.used()+n <= m.total:
		return ""
	}
	runtime.GC()
	if used := m.used(); used+n > m.total {
		return fmt.Sprintf("would take %s beside the %s in use, the machine has %s", size.Bytes(int64(n)), size.Bytes(int64(used)), size.Bytes(int64(m.total)))
	}
	return ""
}

// memory is the machine's memory with its swap space, or what the control group of the process may have of it, on Linux.
var memory = sync.OnceValue(func() machineMemory {
	m := machineMemory{used: heapBytes}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		m.total = meminfo(string(text))
	}
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 && (m.total == 0 || n < m.total) {
			m.total = n
		}
	}
	return m
})

// meminfo returns the bytes of memory and swap space that /proc/meminfo tells of.
func meminfo(text string) uint64 {
	total := uint64(0)
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 3 && (f[0] == "MemTotal:" || f[0] == "SwapTotal:") && f[2] == "kB" {
			n, _ := strconv.ParseUint(f[1], 10, 54)
			total += n << 10
		}
	}
	return total
}

// heapBytes returns what is allocated, garbage that was not collected yet included.
func heapBytes() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return s[0].Value.Uint64()
}
