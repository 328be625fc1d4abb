// Package public finds the public test data that may lie beside the repository, in a folder named shared. They are not part of it:
// tests that use them are skipped where they are absent.
package public

import (
	"os"
	"path/filepath"
	"testing"
)

// Path returns the path of a file or folder of the data, links followed. Without it the test is skipped, and says so.
func Path(t testing.TB, parts ...string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the working directory")
		}
		dir = up
	}
	path, err := filepath.EvalSymlinks(filepath.Join(append([]string{dir, "..", "shared"}, parts...)...))
	if err != nil {
		t.Skipf("the public test data are not here: %v", err)
	}
	return path
}
