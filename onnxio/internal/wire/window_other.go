//go:build !linux

package wire

func (window) populate() {}
func (window) release()  {}
