package onnxio

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gradtool/graph"
	"gradtool/onnxio/onnxpb"
)

// A folder is a temporary folder with files in it.
type folder string

func newFolder(t *testing.T, files map[string]string) folder {
	dir := folder(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(dir.path(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir.path(name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func (dir folder) path(name string) string { return filepath.Join(string(dir), name) }

// externalModel has an initializer w of 4 bytes whose data are external, as the entries say.
func externalModel(t testing.TB, entries ...string) string {
	text := ""
	for i := 0; i < len(entries); i += 2 {
		text += fmt.Sprintf(" external_data { key: %q value: %q }", entries[i], entries[i+1])
	}
	return string(encode(t, `ir_version: 8 graph { name: "g" initializer { name: "w" dims: 4 data_type: 2 data_location: EXTERNAL doc_string: "d"`+text+` } }`))
}

func TestExternal(t *testing.T) {
	sum := fmt.Sprintf("%x", sha1.Sum([]byte("0123456789")))
	for _, tc := range []struct {
		name    string
		entries []string
		want    string // data, or part of the error
		fails   bool
	}{
		{"all of it", []string{"location", "four"}, "abcd", false},
		{"part", []string{"location", "w.bin", "offset", "2", "length", "4"}, "2345", false},
		{"no length", []string{"location", "w.bin", "offset", "6"}, "6789", false},
		{"subfolder", []string{"location", "sub/w.bin"}, "efgh", false},
		{"checksum", []string{"location", "w.bin", "length", "4", "checksum", sum}, "0123", false},
		{"wrong checksum", []string{"location", "w.bin", "length", "4", "checksum", strings.Repeat("0", 40)}, "SHA-1 checksum", true},
		{"missing", []string{"location", "none.bin"}, "put it beside the model", true},
		{"beyond the end", []string{"location", "w.bin", "offset", "7"}, "reach beyond", true},
		{"wrong length", []string{"location", "w.bin", "length", "5"}, "5 bytes in external data, want 4 for uint8[4]", true},
		{"huge offset", []string{"location", "w.bin", "offset", "9223372036854775807"}, "reach beyond", true},
		{"negative offset", []string{"location", "w.bin", "offset", "-4"}, `offset "-4" is not a size`, true},
		{"no location", []string{"offset", "0"}, "without a location", true},
		{"absolute", []string{"location", "/etc/passwd"}, "must lie in the model's folder", true},
		{"parent", []string{"location", "../w.bin"}, "must lie in the model's folder", true},
		{"hidden parent", []string{"location", "sub/../../w.bin"}, "must lie in the model's folder", true},
		{"link out", []string{"location", "link"}, "external data file \"link\"", true},
		{"folder", []string{"location", "sub"}, "external data file \"sub\"", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			model := externalModel(t, tc.entries...)
			dir := newFolder(t, map[string]string{"m/model.onnx": model, "m/w.bin": "0123456789", "m/four": "abcd", "m/sub/w.bin": "efgh", "w.bin": "out!"})
			if err := os.Symlink("../w.bin", dir.path("m/link")); err != nil {
				t.Skip(err)
			}
			m, c, err := Open(dir.path("m/model.onnx"), ReadOptions{Checksums: true})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			w := m.Graph.Inits[0].Init
			got, err := w.Data.Bytes()
			if tc.fails {
				if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), `initializer "w"`) {
					t.Errorf("got %q, %v, want the error %q", got, err, tc.want)
				}
			} else if err != nil || string(got) != tc.want {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
			// In the same folder the reference stays, whatever it is worth.
			if err := WriteFile(dir.path("m/same.onnx"), m); err != nil {
				t.Error(err)
			} else if b, err := os.ReadFile(dir.path("m/same.onnx")); err != nil || string(b) != model {
				t.Errorf("same folder: got %q, %v, want %q", b, err, model)
			}
			// Elsewhere the data are embedded.
			var b bytes.Buffer
			err = Write(&b, m)
			if tc.fails {
				if err == nil || !strings.Contains(err.Error(), tc.want) || b.Len() > 0 {
					t.Errorf("embedding: got %v and %d bytes, want the error %q", err, b.Len(), tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			pb := decode(t, m).Graph.Initializer[0]
			if string(pb.RawData) != tc.want || len(pb.ExternalData) > 0 || pb.DataLocation != nil || pb.GetDocString() != "d" {
				t.Errorf("embedding: got %v", pb)
			}
		})
	}
}

// TestExternalTraining: training graphs, which are kept as they are, have their data embedded too.
func TestExternalTraining(t *testing.T) {
	b := encode(t, `ir_version: 8 graph {} training_info { algorithm { name: "s" initializer { name: "t" dims: 4 data_type: 2 data_location: EXTERNAL external_data { key: "location" value: "w.bin" } } } }`)
	dir := newFolder(t, map[string]string{"m.onnx": string(b), "w.bin": "0123"})
	m, c, err := Open(dir.path("m.onnx"), ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if pb := decode(t, m).TrainingInfo[0].Algorithm.Initializer[0]; string(pb.RawData) != "0123" || pb.ExternalData != nil {
		t.Errorf("got %v", pb)
	}
	var same bytes.Buffer
	if err := (WriteOptions{Dir: string(dir)}).Write(&same, m); err != nil || !bytes.Equal(same.Bytes(), b) {
		t.Errorf("in the same folder: got %q, %v", same.Bytes(), err)
	}
}

// TestExternalStream: a model from a stream finds its data in the base directory.
func TestExternalStream(t *testing.T) {
	dir := newFolder(t, map[string]string{"w.bin": "0123"})
	for base, want := range map[string]string{string(dir): "0123", t.TempDir(): "base directory"} {
		m, c, err := Read(strings.NewReader(externalModel(t, "location", "w.bin")), "-", ReadOptions{BaseDir: base})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		got, err := m.Graph.Inits[0].Init.Data.Bytes()
		if text := fmt.Sprint(string(got), err); !strings.Contains(text, want) {
			t.Errorf("got %s, want %s", text, want)
		}
	}
}

// TestExternalCache: model and data are links into a folder that keeps files by content.
func TestExternalCache(t *testing.T) {
	dir := newFolder(t, map[string]string{"blobs/aaa": externalModel(t, "location", "w.bin"), "blobs/bbb": "0123", "secret": "4567"})
	if err := os.MkdirAll(dir.path("snap"), 0o777); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"model.onnx": "../blobs/aaa", "w.bin": "../blobs/bbb"} {
		if err := os.Symlink(to, dir.path("snap/"+name)); err != nil {
			t.Skip(err)
		}
	}
	read := func() (string, error) {
		m, c, err := Open(dir.path("snap/model.onnx"), ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		b, err := m.Graph.Inits[0].Init.Data.Bytes()
		return string(b), err
	}
	if got, err := read(); err != nil || got != "0123" {
		t.Errorf("got %q, %v", got, err)
	}
	os.Remove(dir.path("snap/w.bin"))
	if err := os.Symlink("../secret", dir.path("snap/w.bin")); err != nil {
		t.Fatal(err)
	}
	if got, err := read(); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("got %q, %v, want a refusal", got, err)
	}
}

// TestWriteExternal moves data to a file beside the model and back.
func TestWriteExternal(t *testing.T) {
	m := graph.NewModel("g", 18)
	large := func(n int, fill byte) *graph.Tensor {
		return &graph.Tensor{Elem: graph.Uint8, Dims: []int64{int64(n)}, Data: graph.Bytes(bytes.Repeat([]byte{fill}, n))}
	}
	m.Graph.AddInit("a", large(5000, 1))
	m.Graph.AddInit("small", large(10, 2))
	m.Graph.AddInit("b", large(3000, 3))
	want := dump(m)
	dir := newFolder(t, nil)
	path := dir.path("m.onnx")
	if err := (WriteOptions{External: true}).WriteFile(path, m); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path + ".data")
	if err != nil || len(data) != 8192+3000 || data[0] != 1 || data[8192] != 3 || data[6000] != 0 {
		t.Errorf("got %d bytes, %v", len(data), err)
	}
	m, c, err := Open(path, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i, external := range []bool{true, false, true} {
		pb := m.Graph.Inits[i].Init.Src.(*origin[*onnxpb.TensorProto]).pb
		if (pb.GetDataLocation() == onnxpb.TensorProto_EXTERNAL) != external || len(pb.RawData) > 0 == external {
			t.Errorf("initializer %d: got %v", i, pb)
		}
	}
	if got := dump(m); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// The same again over the file that is being read, with one tensor less.
	m.Graph.RemoveInits(func(v *graph.Value) bool { return v.Name == "a" })
	if err := (WriteOptions{External: true, Threshold: 8}).WriteFile(path, m); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path + ".data"); err != nil || len(data) != 4096+3000 || data[0] != 2 || data[4096] != 3 {
		t.Errorf("got %d bytes, %v", len(data), err)
	}
	// And embedded.
	again, c2, err := Open(path, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c2.Close()
	if got, want := dump(reread(t, again)), dump(again); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := (WriteOptions{External: true}).Write(new(bytes.Buffer), m); err == nil {
		t.Error("external data beside a stream")
	}
	if err := (WriteOptions{Exclusive: true}).WriteFile(path, m); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v, want fs.ErrExist", err)
	}
}

// sparseFile is a file of n zero bytes that takes no space.
func sparseFile(t *testing.T, path string, n int64) {
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(n); err != nil {
		t.Skip(err)
	}
}

// TestTooLarge: 3 GiB of weights cannot be embedded; that is said before anything is written.
func TestTooLarge(t *testing.T) {
	const size = 3 << 30
	dir := newFolder(t, map[string]string{"m.onnx": string(encode(t, fmt.Sprintf(
		`ir_version: 8 graph { initializer { name: "w" dims: %d data_type: 2 data_location: EXTERNAL external_data { key: "location" value: "w" } } }`, size)))})
	sparseFile(t, dir.path("w"), size)
	m, c, err := Open(dir.path("m.onnx"), ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var b bytes.Buffer
	if err := Write(&b, m); err == nil || b.Len() > 0 || !strings.Contains(err.Error(), "external data") {
		t.Errorf("got %v after %d bytes", err, b.Len())
	}
	other := filepath.Join(t.TempDir(), "m.onnx")
	if err := WriteFile(other, m); err == nil || !strings.Contains(err.Error(), "external data") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(other); err == nil {
		t.Error("a file was written")
	}
	if err := WriteFile(dir.path("again.onnx"), m); err != nil {
		t.Error(err)
	}
}
