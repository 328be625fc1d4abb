package wire

import "os"

// A window is a part of a mapped file, and the pages of it that can be asked for.
type window struct{ bytes, pages []byte }

// window is the n bytes at off of a mapped source.
func (s *Source) window(off, n int64) window {
	page := int64(os.Getpagesize())
	first := off - (s.base+off)%page
	if first < 0 {
		first += page
	}
	return window{s.data[off : off+n], s.data[min(first, off+n) : off+n]}
}
