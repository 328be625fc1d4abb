package legal

// Touch says what a kernel does to buffers.
type Touch struct{ reads, writes map[*Buffer]bool }

// Touches returns the buffers that a kernel reads and writes.
func Touches(k Kernel) Touch {
	t := Touch{map[*Buffer]bool{}, map[*Buffer]bool{}}
	for _, a := range k.Reads() {
		if a != nil {
			t.reads[a.Buf] = true
		}
	}
	for _, a := range k.Writes() {
		t.writes[a.Buf] = true
	}
	return t
}

// Conflict reports whether the order of two kernels matters.
func (t Touch) Conflict(u Touch) bool {
	for b := range t.writes {
		if u.reads[b] || u.writes[b] {
			return true
		}
	}
	for b := range t.reads {
		if u.writes[b] {
			return true
		}
	}
	return false
}
