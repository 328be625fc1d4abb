package wire

import "syscall"

// populateRead is MADV_POPULATE_READ of Linux 5.14: it maps the pages of a range
// at once, where touching them would take a fault for every few.
const populateRead = 22

// populate brings the window in. Advice only: an older kernel refuses it, and a
// file that was cut short meanwhile is noticed by who reads the bytes.
func (w window) populate() { syscall.Madvise(w.pages, populateRead) }

// release lets go of the pages; they stay in the page cache.
func (w window) release() { syscall.Madvise(w.pages, syscall.MADV_DONTNEED) }
