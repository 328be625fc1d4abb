package onnxio

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// benchModel is the model that GRADTOOL_BENCH_MODEL names; without it the benchmark is skipped.
func benchModel(b *testing.B) (path string, size int64) {
	path = os.Getenv("GRADTOOL_BENCH_MODEL")
	if path == "" {
		b.Skip("GRADTOOL_BENCH_MODEL names no model")
	}
	st, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	return path, st.Size()
}

// BenchmarkOpenWrite reads a model and writes it to a new file; heap-MB is what reading keeps on the heap.
func BenchmarkOpenWrite(b *testing.B) {
	path, size := benchModel(b)
	to := filepath.Join(b.TempDir(), "m.onnx")
	b.SetBytes(size)
	var before, after runtime.MemStats
	for b.Loop() {
		b.StopTimer()
		runtime.GC()
		runtime.ReadMemStats(&before)
		b.StartTimer()
		m, c, err := Open(path, ReadOptions{})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.StartTimer()
		m.Producer = "gradtool" // a change, so that not only bytes are copied
		if err := WriteFile(to, m); err != nil {
			b.Fatal(err)
		}
		c.Close()
		b.StopTimer()
		os.Remove(to)
		b.StartTimer()
	}
	b.ReportMetric(float64(after.HeapAlloc)/1e6-float64(before.HeapAlloc)/1e6, "heap-MB")
}

// BenchmarkOpen only reads.
func BenchmarkOpen(b *testing.B) {
	path, size := benchModel(b)
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		_, c, err := Open(path, ReadOptions{})
		if err != nil {
			b.Fatal(err)
		}
		c.Close()
	}
}

// BenchmarkCopy copies the file as cp does, for comparison.
func BenchmarkCopy(b *testing.B) {
	path, size := benchModel(b)
	to := filepath.Join(b.TempDir(), "m.onnx")
	b.SetBytes(size)
	for b.Loop() {
		in, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		out, err := os.Create(to)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(out, in); err != nil {
			b.Fatal(err)
		}
		if err := out.Close(); err != nil {
			b.Fatal(err)
		}
		in.Close()
		b.StopTimer()
		os.Remove(to)
		b.StartTimer()
	}
}
