package prune

import (
	"crypto/sha256"
	"encoding/binary"

	"gradtool/graph"
)

// digest returns a hash of a tensor's elements; false if they cannot be read.
func digest(t *graph.Tensor) (string, bool) {
	if t.Check() != nil {
		return "", false
	}
	h := sha256.New()
	for _, s := range t.Strings {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(s))))
		h.Write([]byte(s))
	}
	if t.Data != nil {
		raw, err := t.Data.Bytes()
		if err != nil {
			return "", false
		}
		h.Write(raw)
	}
	return string(h.Sum(nil)), true
}
