//go:build !ort

package ort

// Available reports whether the library can be called, and if not, why.
func Available() error { return ErrNotBuilt }

// Version returns the library's version, "" without one.
func Version() string { return "" }

// Session is a loaded model.
type Session struct{}

// Load creates a session for the model file.
func Load(path string, inputs []string, outputs []Output, opt Options) (*Session, error) {
	return nil, ErrNotBuilt
}

// Run evaluates the model.
func (s *Session) Run(inputs []Tensor) ([]Tensor, error) { return nil, ErrNotBuilt }

// Close frees the session.
func (s *Session) Close() {}
