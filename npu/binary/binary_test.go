package binary_test

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"gradtool/npu/binary"
	"gradtool/npu/internal/sample"
	"gradtool/npu/isa"
)

func encoded(t *testing.T) (*isa.Program, []byte) {
	t.Helper()
	p, err := sample.Program()
	if err != nil {
		t.Fatal(err)
	}
	p.SourceHash = strings.Repeat("ab", 32)
	p.State = []isa.Pair{{Input: "x", Output: "z"}}
	p.Cost = &isa.Cost{Cycles: 1}
	var b bytes.Buffer
	if err := binary.Write(&b, p); err != nil {
		t.Fatal(err)
	}
	return p, b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	p, file := encoded(t)
	back, err := binary.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back, p) {
		t.Errorf("the program changed: %+v, was %+v", back, p)
	}
	var again bytes.Buffer
	if err := binary.Write(&again, back); err != nil || !bytes.Equal(again.Bytes(), file) {
		t.Errorf("other bytes the second time, %v", err)
	}
}

// TestDamage flips a bit in each byte and cuts the file at each length.
func TestDamage(t *testing.T) {
	_, file := encoded(t)
	for i := range file {
		bad := bytes.Clone(file)
		bad[i] ^= 1 << (i % 8)
		if _, err := binary.Read(bad); err == nil {
			t.Fatalf("a change of byte %d goes unnoticed", i)
		}
	}
	for i := range file {
		if i%7 != 0 && i < len(file)-20 {
			continue
		}
		if _, err := binary.Read(file[:i]); err == nil {
			t.Fatalf("a cut at byte %d goes unnoticed", i)
		}
	}
	if _, err := binary.Read(append(bytes.Clone(file), 0)); err == nil {
		t.Error("a byte at the end goes unnoticed")
	}
}

// TestTools opens the file with the ELF package of the standard library and with readelf where it is installed.
func TestTools(t *testing.T) {
	p, file := encoded(t)
	f, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if f.Section(".text.matrix") == nil || f.Section(".note.gradtool") == nil {
		t.Error("sections are missing")
	}
	data, err := f.Section(".data.0").Data()
	if err != nil || !bytes.Equal(data, p.Segments[0].Data) {
		t.Errorf("the segment is not in .data.0: %v", err)
	}
	readelf, err := exec.LookPath("readelf")
	if err != nil {
		t.Skip("readelf is not installed")
	}
	name := filepath.Join(t.TempDir(), "step.npu")
	if err := os.WriteFile(name, file, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(readelf, "-W", "-a", name).CombinedOutput()
	if err != nil {
		t.Fatalf("readelf: %v\n%s", err, out)
	}
	for _, want := range []string{".text.vector", "gradtool", "NOTE", "LOAD"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("readelf prints no %q:\n%s", want, out)
		}
	}
	for _, word := range []string{"Warning", "Error"} {
		if strings.Contains(string(out), word) {
			t.Errorf("readelf warns:\n%s", out)
		}
	}
}
