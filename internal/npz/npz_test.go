package npz

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// samples has an array of every element type, and shapes of several ranks.
func samples() []Array {
	out := []Array{
		{Name: "scalar", Descr: "<f4", Shape: []int{}, Data: []byte{0, 0, 128, 63}},
		{Name: "empty", Descr: "<i8", Shape: []int{0, 3}, Data: []byte{}},
		{Name: "/block/größe:0", Descr: "|b1", Shape: []int{2}, Data: []byte{0, 1}},
	}
	for _, d := range []string{"|b1", "|i1", "|u1", "<i2", "<u2", "<f2", "<i4", "<u4", "<f4", "<i8", "<u8", "<f8", "<c8", "<c16"} {
		size, _, _ := elementSize(d)
		data := make([]byte, 6*size)
		for i := range data {
			if data[i] = byte(i * 7 % 61); d == "|b1" {
				data[i] = byte(i % 2)
			}
		}
		out = append(out, Array{Name: "type" + d[1:], Descr: d, Shape: []int{3, 2}, Data: data})
	}
	return out
}

func TestRoundTrip(t *testing.T) {
	var b, again bytes.Buffer
	if err := Write(&b, samples()); err != nil {
		t.Fatal(err)
	}
	if err := Write(&again, samples()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Error("two writes differ")
	}
	got, err := Read(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(samples(), got); diff != "" {
		t.Error(diff)
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	a := samples()[0]
	var one, many bytes.Buffer
	if err := WriteNPY(&one, a); err != nil {
		t.Fatal(err)
	}
	if err := Write(&many, []Array{a}); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"a.npy": one.Bytes(), "a.npz": many.Bytes()} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		got, err := ReadFile(path)
		if err != nil || len(got) != 1 || !bytes.Equal(got[0].Data, a.Data) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := ReadFile(filepath.Join(dir, "missing")); err == nil {
		t.Error("a missing file is no error")
	}
}

// npy makes a version 1.0 file of a header text and data.
func npy(text, data string) string {
	return string(magic) + "\x01\x00" + string(binary.LittleEndian.AppendUint16(nil, uint16(len(text)))) + text + data
}

func TestReadForms(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     Array
	}{
		{"big endian", npy("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }\n", "\x01\x02\x03\x04"),
			Array{Descr: "<i2", Shape: []int{2}, Data: []byte("\x02\x01\x04\x03")}},
		{"big-endian complex", npy("{'descr': '>c8', 'fortran_order': False, 'shape': ()}", "12345678"),
			Array{Descr: "<c8", Shape: []int{}, Data: []byte("43218765")}},
		{"column-major", npy(`{"descr":"|u1","fortran_order":True,"shape":(2,3)}`, "\x00\x03\x01\x04\x02\x05"),
			Array{Descr: "|u1", Shape: []int{2, 3}, Data: []byte("\x00\x01\x02\x03\x04\x05")}},
		{"column-major of rank 3", npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2, 2)}", "\x00\x04\x02\x06\x01\x05\x03\x07"),
			Array{Descr: "|u1", Shape: []int{2, 2, 2}, Data: []byte("\x00\x01\x02\x03\x04\x05\x06\x07")}},
		{"long integers", npy("{'shape': (1L,), 'descr': '|b1', 'fortran_order': False}", "\x01"),
			Array{Descr: "|b1", Shape: []int{1}, Data: []byte{1}}},
		{"version 2", "\x93NUMPY\x02\x00\x3b\x00\x00\x00{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1), }A",
			Array{Descr: "|u1", Shape: []int{1, 1}, Data: []byte("A")}},
	} {
		got, err := ReadNPY(strings.NewReader(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestReadMalformed(t *testing.T) {
	head := func(descr, order, shape string) string {
		return npy("{'descr': "+descr+", 'fortran_order': "+order+", 'shape': "+shape+"}", "")
	}
	for _, c := range []struct{ name, in, want string }{
		{"nothing", "", "unexpected EOF"},
		{"other file", "PK\x03\x04abcdefgh", "not an npy file"},
		{"version", "\x93NUMPY\x09\x00\x00\x00\x00\x00", "version 9.0"},
		{"huge header", "\x93NUMPY\x02\x00\xff\xff\xff\xff", "too large"},
		{"cut header", "\x93NUMPY\x01\x00\xff\x00{", "unexpected EOF"},
		{"no dictionary", npy("[]", ""), "no dictionary"},
		{"no shape", npy("{'descr': '<f4', 'fortran_order': False}", ""), `"shape" is missing`},
		{"twice", npy("{'descr': '<f4', 'descr': '<f4'}", ""), "appears twice"},
		{"trailing", npy("{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", ""), "text after"},
		{"structured", head("[('a', '<f4')]", "False", "()"), "structured"},
		{"objects", head("'|O'", "False", "()"), `"|O" is not supported`},
		{"strings", head("'<U8'", "False", "()"), "not supported"},
		{"order", head("'<f4'", "0", "()"), "neither"},
		{"negative", head("'<f4'", "False", "(-1,)"), "other than sizes"},
		{"no tuple", head("'<f4'", "False", "3"), "not a tuple"},
		{"overflow", head("'<f4'", "False", "(4294967296, 4294967296, 4294967296)"), "too large"},
		{"no such data", head("'<f4'", "False", "(1099511627776,)"), "unexpected EOF"},
		{"short data", head("'<f4'", "False", "(2,)") + "1234567", "unexpected EOF"},
		{"rank", head("'<f4'", "False", "("+strings.Repeat("1,", 65)+")"), "dimensions"},
	} {
		if _, err := ReadNPY(strings.NewReader(c.in)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

func TestReadBadArchives(t *testing.T) {
	good := npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}", "A")
	archive := func(method uint16, members ...string) []byte {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for i := 0; i < len(members); i += 2 {
			w, err := z.CreateHeader(&zip.FileHeader{Name: members[i], Method: method})
			if err == nil {
				_, err = io.WriteString(w, members[i+1])
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	deflated := archive(zip.Deflate, "a.npy", good, "b.npy", good)
	if got, err := Read(bytes.NewReader(deflated), int64(len(deflated))); err != nil || len(got) != 2 || got[1].Name != "b" {
		t.Errorf("deflated: %v, %v", got, err)
	}
	damaged := archive(zip.Store, "a.npy", good)
	damaged[bytes.IndexByte(damaged, '}')+1]++ // the data
	for _, c := range []struct {
		name string
		in   []byte
		want string
	}{
		{"no archive", []byte("hello"), "not an npz archive"},
		{"other member", archive(zip.Store, "a.txt", "x"), "not an npy file"},
		{"twice", archive(zip.Store, "a.npy", good, "a.npy", good), "appears twice"},
		{"rest", archive(zip.Store, "a.npy", good+"B"), "bytes after the array"},
		{"checksum", damaged, "checksum"},
	} {
		if _, err := Read(bytes.NewReader(c.in), int64(len(c.in))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

func TestWriteErrors(t *testing.T) {
	a := Array{Name: "a", Descr: "<f4", Shape: []int{1}, Data: make([]byte, 4)}
	for _, c := range []struct {
		name   string
		arrays []Array
		want   string
	}{
		{"size", []Array{{Name: "a", Descr: "<f4", Shape: []int{2}, Data: make([]byte, 4)}}, "takes 8 bytes, not 4"},
		{"type", []Array{{Name: "a", Descr: ">f4", Shape: []int{1}, Data: make([]byte, 4)}}, "not supported"},
		{"negative", []Array{{Name: "a", Descr: "<f4", Shape: []int{-1}}}, "negative"},
		{"twice", []Array{a, a}, "two arrays"},
		{"no name", []Array{{Descr: "|u1", Data: []byte{1}}}, "without a name"},
	} {
		if err := Write(io.Discard, c.arrays); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

// numpy returns the path of a Python that has NumPy.
func numpy(t *testing.T) string {
	py, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 on the path")
	}
	if err := exec.Command(py, "-c", "import numpy").Run(); err != nil {
		t.Skip("python3 has no numpy")
	}
	return py
}

// TestNumPy has NumPy load an archive of ours and save it again, stored and
// compressed, in column-major order and big-endian.
func TestNumPy(t *testing.T) {
	py := numpy(t)
	dir := t.TempDir()
	in := filepath.Join(dir, "in.npz")
	var b bytes.Buffer
	if err := Write(&b, samples()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(in, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	script := `
import numpy as np, sys
z = dict(np.load(sys.argv[1]))
np.savez(sys.argv[2] + "/stored.npz", **z)
np.savez_compressed(sys.argv[2] + "/deflated.npz", **z)
np.savez(sys.argv[2] + "/fortran.npz", **{k: np.asfortranarray(v) if v.ndim else v for k, v in z.items()})
np.savez(sys.argv[2] + "/big.npz", **{k: v.astype(v.dtype.newbyteorder(">")) for k, v in z.items()})
`
	if out, err := exec.Command(py, "-c", script, in, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"stored.npz", "deflated.npz", "fortran.npz", "big.npz"} {
		got, err := ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(samples(), got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := Write(&b, samples()); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(npy("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 1), }\n", "\x01\x02\x03\x04")))
	f.Fuzz(func(t *testing.T, in []byte) {
		arrays, _ := Read(bytes.NewReader(in), int64(len(in)))
		if a, err := ReadNPY(bytes.NewReader(in)); err == nil {
			arrays = append(arrays, a)
		}
		// What is read can be written and read back.
		for _, a := range arrays {
			var b bytes.Buffer
			if err := WriteNPY(&b, a); err != nil {
				t.Fatal(err)
			}
			back, err := ReadNPY(&b)
			back.Name = a.Name
			if err != nil || !cmp.Equal(a, back) {
				t.Fatalf("%v becomes %v, %v", a, back, err)
			}
		}
	})
}
