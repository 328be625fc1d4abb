//go:build !unix

package wire

import (
	"io"
	"os"
)

// mapFile reads the first size bytes of f: there is no mapping here.
func mapFile(f *os.File, size int64) (data []byte, free func() error, err error) {
	data = make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, size), data); err != nil {
		return nil, nil, err
	}
	return data, func() error { return nil }, nil
}
