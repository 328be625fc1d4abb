package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"gradtool/onnxio/onnxpb"
)

func TestSourceKinds(t *testing.T) {
	for _, n := range []int{0, 1, spoolAt - 1, spoolAt, spoolAt + 1, 3 * spoolAt} {
		data := payload(n)
		path := writeFile(t, data)
		for _, tc := range []struct {
			name string
			open func() (*Source, error)
			want []byte
		}{
			{"Open", func() (*Source, error) { return Open(path) }, data},
			{"FromBytes", func() (*Source, error) { return FromBytes(data), nil }, data},
			{"stream", func() (*Source, error) { return FromReader(bytes.NewReader(data), "stdin") }, data},
			{"redirected file", func() (*Source, error) {
				f, err := os.Open(path)
				if err != nil {
					return nil, err
				}
				t.Cleanup(func() { f.Close() })
				return FromReader(f, "stdin")
			}, data},
			{"redirected file, read from", func() (*Source, error) {
				f, err := os.Open(path)
				if err != nil {
					return nil, err
				}
				t.Cleanup(func() { f.Close() })
				io.CopyN(io.Discard, f, 100)
				return FromReader(f, "stdin")
			}, data[min(n, 100):]},
		} {
			t.Run(fmt.Sprintf("%s/%d", tc.name, n), func(t *testing.T) {
				src, err := tc.open()
				if err != nil {
					t.Fatal(err)
				}
				if src.Len() != int64(len(tc.want)) {
					t.Fatalf("got %d bytes, want %d", src.Len(), len(tc.want))
				}
				all, err := src.Ref(0, src.Len())
				if err != nil {
					t.Fatal(err)
				}
				if got, err := all.Bytes(); err != nil || !bytes.Equal(got, tc.want) {
					t.Errorf("other bytes, %v", err)
				}
				out, err := os.Create(filepath.Join(t.TempDir(), "out"))
				if err != nil {
					t.Fatal(err)
				}
				defer out.Close()
				if n, err := all.WriteTo(out); err != nil || n != src.Len() {
					t.Errorf("WriteTo: %d bytes, %v", n, err)
				}
				if got, _ := os.ReadFile(out.Name()); !bytes.Equal(got, tc.want) {
					t.Error("WriteTo: other bytes")
				}
				if _, err := src.Ref(1, src.Len()); err == nil {
					t.Error("a range beyond the end was accepted")
				}
				if _, err := src.Ref(-1, 1); err == nil {
					t.Error("a negative offset was accepted")
				}
				if err := src.Close(); err != nil {
					t.Error(err)
				}
				if _, err := all.Bytes(); !errors.Is(err, ErrClosed) {
					t.Errorf("after Close: got %v, want ErrClosed", err)
				}
				if _, err := NewStore().ReadModel(src); !errors.Is(err, ErrClosed) {
					t.Errorf("read after Close: got %v, want ErrClosed", err)
				}
			})
		}
	}
}

func TestOpenErrors(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that it does not exist", err)
	}
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("a folder was opened")
	}
}

// TestReplacedAndConcurrent writes one model from several goroutines, after the
// file was replaced by name: each copy must come from the file that was opened.
func TestReplacedAndConcurrent(t *testing.T) {
	enc := marshal(t, testModel(1<<20, 70_000, 2<<20))
	path := writeFile(t, enc)
	src, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, make([]byte, len(enc)), 0o666); err != nil {
		t.Fatal(err)
	}
	store := NewStore()
	m, err := store.ReadModel(src)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			out, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
			if err != nil {
				t.Error(err)
				return
			}
			defer out.Close()
			if _, err := store.Write(out, m); err != nil {
				t.Error(err)
			}
			if got, _ := os.ReadFile(out.Name()); !bytes.Equal(got, enc) {
				t.Errorf("writer %d: other bytes", i)
			}
		})
	}
	wg.Wait()
}

// TestTruncatedWhileOpen must end in errors and not in a fault.
func TestTruncatedWhileOpen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skipf("whether a mapping sees a truncation is not known on %s", runtime.GOOS)
	}
	path := writeFile(t, marshal(t, testModel(1<<20, 1<<20)))
	src, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	store := NewStore()
	m, err := store.ReadModel(src)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	if _, err := NewStore().ReadModel(src); !errors.Is(err, ErrChanged) {
		t.Errorf("read: got %v, want ErrChanged", err)
	}
	var out bytes.Buffer
	if _, err := store.Write(&out, m); !errors.Is(err, ErrChanged) {
		t.Errorf("write: got %v, want ErrChanged", err)
	}
}

// largest is a real model whose weights fill hundreds of megabytes, by the
// environment variable that names it.
const largest = "GRADTOOL_BENCH_MODEL"

func benchModel(b *testing.B) string {
	path := os.Getenv(largest)
	if path == "" {
		path = writeFile(b, marshal(b, testModel(16<<20, 16<<20, 16<<20)))
	}
	return path
}

// BenchmarkCopy is reading and writing an untouched model into a file;
// BenchmarkSystemCopy, copying that file whole, is the measure for it.
func BenchmarkCopy(b *testing.B) {
	path := benchModel(b)
	out := filepath.Join(b.TempDir(), "out.onnx")
	var heap uint64
	for b.Loop() {
		src, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		store := NewStore()
		m, err := store.ReadModel(src)
		if err != nil {
			b.Fatal(err)
		}
		f, err := os.Create(out)
		if err != nil {
			b.Fatal(err)
		}
		n, err := store.Write(f, m)
		if err != nil {
			b.Fatal(err)
		}
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		heap = max(heap, stats.HeapSys)
		b.SetBytes(n)
		f.Close()
		src.Close()
		os.Remove(out)
	}
	b.ReportMetric(float64(heap)/1e6, "MB-heap")
}

func BenchmarkSystemCopy(b *testing.B) {
	path := benchModel(b)
	out := filepath.Join(b.TempDir(), "out.onnx")
	for b.Loop() {
		in, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		f, err := os.Create(out)
		if err != nil {
			b.Fatal(err)
		}
		n, err := f.ReadFrom(in)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(n)
		in.Close()
		f.Close()
		os.Remove(out)
	}
}

func BenchmarkReadModel(b *testing.B) {
	src, err := Open(benchModel(b))
	if err != nil {
		b.Fatal(err)
	}
	defer src.Close()
	var m *onnxpb.ModelProto
	for b.Loop() {
		if m, err = NewStore().ReadModel(src); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(m.Graph.Node)), "nodes")
}
