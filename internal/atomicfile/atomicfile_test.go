package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// put writes text to path in one go.
func put(path, text string, opt Options) error {
	f, err := Create(path, opt)
	if err != nil {
		return err
	}
	defer f.Abort()
	if _, err := io.WriteString(f, text); err != nil {
		return err
	}
	return f.Commit()
}

// want checks the contents of path and that dir holds nothing but names.
func want(t *testing.T, path, text string, names ...string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != text {
		t.Errorf("%s holds %q, %v; want %q", path, got, err, text)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, e := range entries {
		have = append(have, e.Name())
	}
	if strings.Join(have, " ") != strings.Join(names, " ") {
		t.Errorf("folder holds %q, want %q", have, names)
	}
}

func TestCommit(t *testing.T) {
	for _, opt := range []Options{{}, {Sync: true}, {Exclusive: true}} {
		path := filepath.Join(t.TempDir(), "out")
		if err := put(path, "one", opt); err != nil {
			t.Fatal(err)
		}
		want(t, path, "one", "out")
		err := put(path, "two", opt)
		if opt.Exclusive {
			if !errors.Is(err, fs.ErrExist) {
				t.Errorf("replacing: %v", err)
			}
			want(t, path, "one", "out")
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		want(t, path, "two", "out")
	}
}

func TestNothingUntilCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Create(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	// The output may be the input: copy the old file into the new one.
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	io.WriteString(f, "new ")
	if _, err := io.Copy(f.File(), in); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "old" {
		t.Errorf("before the commit: %q", got)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	f.Abort() // does nothing now
	want(t, path, "new old", "out")
	if err := f.Commit(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("second commit: %v", err)
	}
}

func TestAbort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Create(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(f, "new")
	f.Abort()
	f.Abort()
	want(t, path, "old", "out")
}

// TestFailedCommit has the last step fail and finds the target untouched.
func TestFailedCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Create(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	f.File().Close() // so that the Close of Commit fails, as on a full disk
	if err := f.Commit(); err == nil {
		t.Error("no error")
	}
	want(t, path, "old", "out")

	if f, err = Create(path, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err == nil {
		t.Error("no error for a folder that took the target's place")
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

// TestExclusiveRace creates the target between Create and Commit.
func TestExclusiveRace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	f, err := Create(path, Options{Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("other"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error %v", err)
	}
	want(t, path, "other", "out")
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	if err := put(dir, "x", Options{}); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("folder: %v", err)
	}
	if err := put(filepath.Join(dir, "no", "out"), "x", Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing folder: %v", err)
	}
	if err := put("", "x", Options{}); err == nil {
		t.Error("no error for an empty path")
	}
	long := filepath.Join(dir, strings.Repeat("n", 240))
	if err := put(long, "x", Options{}); err != nil {
		t.Errorf("long name: %v", err)
	}
}

func TestUnix(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no Unix permissions and links")
	}
	dir := t.TempDir()
	path, link := filepath.Join(dir, "out"), filepath.Join(dir, "link")
	if err := os.Symlink("out", link); err != nil {
		t.Fatal(err)
	}
	if err := put(link, "one", Options{}); err != nil { // a link to nothing yet
		t.Fatal(err)
	}
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	mode := func(p string) fs.FileMode {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode()
	}
	if mode(path) != mode(plain) {
		t.Errorf("a new file has mode %v, an ordinary one %v", mode(path), mode(plain))
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := put(link, "two", Options{}); err != nil {
		t.Fatal(err)
	}
	want(t, path, "two", "link", "out", "plain")
	if mode(path) != 0o640 {
		t.Errorf("mode of the replaced file is %v", mode(path))
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	if err := os.Symlink("loop", filepath.Join(dir, "loop")); err != nil {
		t.Fatal(err)
	}
	if err := put(filepath.Join(dir, "loop"), "x", Options{}); err == nil {
		t.Error("no error for a link to itself")
	}
}

// TestDevices writes devices in place of replacing them.
func TestDevices(t *testing.T) {
	if _, err := os.Stat("/dev/null"); err != nil {
		t.Skip("no /dev/null")
	}
	if err := put("/dev/null", "x", Options{}); err != nil {
		t.Errorf("/dev/null: %v", err)
	}
	if info, err := os.Stat("/dev/null"); err != nil || info.Mode().IsRegular() {
		t.Fatal("/dev/null was replaced")
	}
	if _, err := os.Stat("/dev/full"); err == nil {
		if err := put("/dev/full", "x", Options{}); err == nil {
			t.Error("/dev/full takes data")
		}
	}
}
