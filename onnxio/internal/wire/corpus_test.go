package wire

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"gradtool/internal/public"
	"gradtool/onnxio/onnxpb"
)

// TestCorpusIdentity reads every public model and tensor there is and writes it
// back: the bytes must be the same.
func TestCorpusIdentity(t *testing.T) {
	root := public.Path(t, "corpus")
	var models, values, marked, refused int
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), "LICENSE") {
			return err
		}
		var m proto.Message
		switch filepath.Ext(path) {
		case ".onnx":
			m = new(onnxpb.ModelProto)
			models++
		case ".pb":
			m = new(onnxpb.TensorProto) // right for most; any other message must survive as well
			values++
		default:
			return nil
		}
		want, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if len(want) == 0 {
			return nil
		}
		src, err := Open(path)
		if err != nil {
			t.Error(err)
			return nil
		}
		defer src.Close()
		store := NewStore()
		if err := store.Read(src, m); err != nil {
			if strings.HasSuffix(path, ".pb") {
				refused++ // a sequence or optional value, or not protobuf
				return nil
			}
			t.Error(err)
			return nil
		}
		var got bytes.Buffer
		if n, err := store.Write(&got, m); err != nil || n != int64(got.Len()) {
			t.Errorf("%s: wrote %d bytes, said %d: %v", path, got.Len(), n, err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s: %d bytes written, %d read, not identical", path, got.Len(), len(want))
		}
		if len(store.origins) > 0 {
			marked++
			t.Logf("%s: %d messages are not encoded canonically", path, len(store.origins))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d models, %d values (%d of another type), %d not encoded canonically", models, values, refused, marked)
	if models == 0 {
		t.Skip("the corpus holds no models")
	}
}
