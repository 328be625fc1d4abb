package machine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
)

// Parse reads the JSON form of a machine. Fields that are missing, unknown or of another kind, trailing text and values out of range are
// errors.
func Parse(data []byte) (*Machine, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); errors.Is(err, io.EOF) {
		return nil, errors.New("machine description: the input is empty")
	} else if err != nil {
		return nil, fmt.Errorf("machine description: not JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("machine description: text after the object")
	}
	if err := form("", reflect.TypeFor[Machine](), v); err != nil {
		return nil, fmt.Errorf("machine description: %w", err)
	}
	m := new(Machine)
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("machine description: %w", err)
	}
	if err := m.Check(); err != nil {
		return nil, err
	}
	return m, nil
}

// JSON returns the JSON form of a machine, the same bytes for the same machine.
func (m *Machine) JSON() []byte {
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		panic("machine: " + err.Error()) // the type holds only numbers, strings and booleans
	}
	return append(b, '\n')
}

// Hash returns the SHA-256 of the JSON form in hexadecimal. A program is bound to the machine of its hash.
func (m *Machine) Hash() string {
	sum := sha256.Sum256(m.JSON())
	return hex.EncodeToString(sum[:])
}
