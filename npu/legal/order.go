package legal

// touch says what a kernel does to buffers.
type touch struct{ reads, writes map[*Buffer]bool }

func touches(k Kernel) touch {
	t := touch{map[*Buffer]bool{}, map[*Buffer]bool{}}
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

// conflict reports whether the order of two kernels matters.
func (t touch) conflict(u touch) bool {
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
