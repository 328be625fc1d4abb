package wire

import (
	"fmt"
	"os"
)

// reopen opens the file of f again, for a handle with an offset of its own, so
// that several goroutines can copy from one source. The path may name another
// file by now, or none; the link in /proc still leads to this one.
func reopen(f *os.File) (*os.File, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var again *os.File
	var openErr error
	err = conn.Control(func(fd uintptr) {
		again, openErr = os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
	})
	if err != nil {
		return nil, err
	}
	return again, openErr
}
