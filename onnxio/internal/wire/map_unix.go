//go:build unix

package wire

import (
	"os"
	"syscall"
)

// mapFile maps the first size bytes of f, size > 0. The mapping is shared, so
// that its pages are those of the page cache.
func mapFile(f *os.File, size int64) (data []byte, free func() error, err error) {
	data, err = syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	return data, func() error { return os.NewSyscallError("munmap", syscall.Munmap(data)) }, nil
}
