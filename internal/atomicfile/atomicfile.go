// Package atomicfile writes a file so that its path never names a half-written
// one: the data goes to a temporary file in the same folder, which takes the
// place of the target when all of it is written. The target may therefore be a
// file that is still being read.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// Options says how a file is created.
type Options struct {
	// Sync has the data reach the disk before Commit returns.
	Sync bool
	// Exclusive refuses to replace a file, also one that appears before Commit;
	// the error wraps fs.ErrExist.
	Exclusive bool
}

// File is a file being written. It ends with Commit or Abort.
type File struct {
	f      *os.File
	target string
	direct bool // the target is a device or a pipe, written in place
	opt    Options
	done   bool
}

// Create starts a file that will appear at path. A symbolic link is followed, so
// that the link stays. The permissions are those of the file replaced, or what
// the umask leaves of 0666. A device or a pipe, such as /dev/null, is opened and
// written directly. A directory is an error.
func Create(path string, opt Options) (*File, error) {
	target, info, err := resolve(path)
	if err != nil {
		return nil, err
	}
	switch {
	case info == nil:
	case info.IsDir():
		return nil, &fs.PathError{Op: "create", Path: path, Err: errors.New("is a directory")}
	case !info.Mode().IsRegular():
		f, err := os.OpenFile(target, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		return &File{f: f, target: target, direct: true}, nil
	case opt.Exclusive:
		return nil, &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
	f, err := temporary(target)
	if err != nil {
		return nil, err
	}
	if info != nil {
		if err := f.Chmod(info.Mode().Perm()); err != nil {
			f.Close()
			os.Remove(f.Name())
			return nil, err
		}
	}
	return &File{f: f, target: target, opt: opt}, nil
}

// maxLinks limits the symbolic links followed.
const maxLinks = 40

// resolve follows symbolic links at the end of path, also to a file that does
// not exist; info is nil then.
func resolve(path string) (target string, info fs.FileInfo, err error) {
	if path == "" {
		return "", nil, &fs.PathError{Op: "create", Path: path, Err: fs.ErrNotExist}
	}
	target = path
	for range maxLinks {
		info, err = os.Lstat(target)
		if errors.Is(err, fs.ErrNotExist) {
			return target, nil, nil
		}
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return target, info, err
		}
		link, err := os.Readlink(target)
		if err != nil {
			return "", nil, err
		}
		if !filepath.IsAbs(link) {
			link = filepath.Join(filepath.Dir(target), link)
		}
		target = link
	}
	return "", nil, &fs.PathError{Op: "create", Path: path, Err: errors.New("too many symbolic links")}
}

// temporary creates a file beside target. ErrUnlike os.CreateTemp it leaves the
// permissions to the umask.
func temporary(target string) (*os.File, error) {
	dir, base := filepath.Split(target)
	if len(base) > 200 {
		base = base[:200] // file names are limited to 255 bytes
	}
	for try := 0; ; try++ {
		name := dir + "." + base + "." + strconv.FormatUint(rand.Uint64(), 36) + ".tmp"
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, fs.ErrExist) || try == 100 {
			var pe *fs.PathError
			if errors.As(err, &pe) {
				err = pe.Err
			}
			return nil, &fs.PathError{Op: "create", Path: target, Err: err} // the temporary name says nothing to anybody
		}
	}
}

// Write implements io.Writer.
func (f *File) Write(p []byte) (int, error) { return f.f.Write(p) }

// File returns the file written to, for what Write cannot do: seeking, or
// copying from another file within the kernel. It must not be closed.
func (f *File) File() *os.File { return f.f }

// Name returns the path the file will have.
func (f *File) Name() string { return f.target }

// Commit puts the file in its place. On an error, a full disk seen only now
// included, the target is as it was before and no temporary file stays.
func (f *File) Commit() error {
	if f.done {
		return fmt.Errorf("commit %s: %w", f.target, fs.ErrClosed)
	}
	f.done = true
	if f.direct {
		return f.f.Close()
	}
	var err error
	if f.opt.Sync {
		err = f.f.Sync()
	}
	if cerr := f.f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = f.place()
	}
	if err != nil {
		os.Remove(f.f.Name())
		return err
	}
	if f.opt.Sync {
		syncDir(filepath.Dir(f.target))
	}
	return nil
}

// place gives the temporary file the name of the target.
func (f *File) place() error {
	temp := f.f.Name()
	if !f.opt.Exclusive {
		return os.Rename(temp, f.target)
	}
	// A hard link, unlike a rename, does not replace.
	err := os.Link(temp, f.target)
	if err == nil {
		return os.Remove(temp)
	}
	if errors.Is(err, fs.ErrExist) {
		return &fs.PathError{Op: "create", Path: f.target, Err: fs.ErrExist}
	}
	// No links on this file system: look, then rename.
	if _, err := os.Lstat(f.target); err == nil {
		return &fs.PathError{Op: "create", Path: f.target, Err: fs.ErrExist}
	}
	return os.Rename(temp, f.target)
}

// Abort gives the file up and removes what was written. After Commit or Abort it
// does nothing, so that it can be deferred.
func (f *File) Abort() {
	if f.done {
		return
	}
	f.done = true
	f.f.Close()
	if !f.direct {
		os.Remove(f.f.Name())
	}
}

// syncDir has the new name reach the disk. Where folders cannot be synced that is
// left to the system: the data itself is safe.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		d.Sync()
		d.Close()
	}
}
