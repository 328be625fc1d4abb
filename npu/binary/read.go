package binary

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"gradtool/npu/isa"
)

// Is reports whether a file begins as a program does.
func Is(head []byte) bool {
	return len(head) >= 20 && string(head[:4]) == elf.ELFMAG && binary.LittleEndian.Uint16(head[18:]) == MachineType
}

// Read reads a program; the data of its segments are parts of file. A file that is not exactly as it was written is refused:
// the digest covers every byte.
func Read(file []byte) (*isa.Program, error) {
	if !Is(file) || len(file) < phdrAt {
		return nil, errors.New("not a program of the NPU: no ELF file of its machine type")
	}
	digest := file[digestAt : digestAt+sha256.Size]
	h := sha256.New()
	h.Write(file[:digestAt])
	h.Write(make([]byte, sha256.Size))
	h.Write(file[digestAt+sha256.Size:])
	if !bytes.Equal(h.Sum(nil), digest) {
		return nil, errors.New("the file is damaged: its contents do not have the SHA-256 that it carries")
	}
	p, err := read(file)
	if err != nil {
		return nil, fmt.Errorf("not a valid program of the NPU: %w", err)
	}
	return p, nil
}

func read(file []byte) (*isa.Program, error) {
	f, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	if len(f.Progs) < 1+int(isa.NumQueues) {
		return nil, fmt.Errorf("%d program headers", len(f.Progs))
	}
	body := func(p *elf.Prog, t elf.ProgType) ([]byte, error) {
		if p.Type != t || p.Off > uint64(len(file)) || p.Filesz > uint64(len(file))-p.Off || t == elf.PT_LOAD && p.Memsz != p.Filesz {
			return nil, errors.New("a program header is wrong")
		}
		return file[p.Off : p.Off+p.Filesz], nil
	}
	note, err := body(f.Progs[0], elf.PT_NOTE)
	if err != nil {
		return nil, err
	}
	m, err := readManifest(note)
	if err != nil {
		return nil, err
	}
	p := &isa.Program{
		Machine: m.Machine, Name: m.Name, SourceHash: m.SourceHash, Nodes: m.Nodes, DRAMBytes: m.DRAMBytes, Inputs: m.Inputs, Outputs: m.Outputs,
		State: m.State, Fallbacks: m.Fallbacks, Cost: m.Cost,
	}
	if len(m.Queues) != int(isa.NumQueues) || len(f.Progs) != 1+len(m.Queues)+len(m.Segments) {
		return nil, fmt.Errorf("%d queues and %d segments in %d program headers", len(m.Queues), len(m.Segments), len(f.Progs))
	}
	for q, info := range m.Queues {
		code, err := body(f.Progs[1+q], elf.PT_LOAD)
		if err != nil {
			return nil, err
		}
		if p.Queues[q], err = decode(code, info.Instructions); err != nil {
			return nil, fmt.Errorf("%s queue: %w", isa.Queue(q), err)
		}
	}
	for i, s := range m.Segments {
		prog := f.Progs[1+len(m.Queues)+i]
		data, err := body(prog, elf.PT_LOAD)
		if err != nil {
			return nil, err
		}
		if s.Addr < 0 || prog.Vaddr != uint64(s.Addr) || len(data) != s.Bytes {
			return nil, fmt.Errorf("segment %q is not where the manifest says", s.Name)
		}
		p.Segments = append(p.Segments, isa.Segment{Name: s.Name, Addr: s.Addr, Data: data})
	}
	return p, nil
}

// readManifest reads the note of the manifest.
func readManifest(note []byte) (*manifest, error) {
	head := 12 + len(noteOwner)
	if len(note) < head || binary.LittleEndian.Uint32(note) != 9 || binary.LittleEndian.Uint32(note[8:]) != noteManifest || string(note[12:head]) != noteOwner {
		return nil, errors.New("the first note is not a manifest")
	}
	size := binary.LittleEndian.Uint32(note[4:])
	if uint64(size) > uint64(len(note)-head) {
		return nil, errors.New("the manifest is cut off")
	}
	d := json.NewDecoder(bytes.NewReader(note[head : head+int(size)]))
	d.DisallowUnknownFields()
	m := new(manifest)
	if err := d.Decode(m); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("manifest: text after the object")
	}
	switch {
	case m.Schema != Schema:
		return nil, fmt.Errorf("the manifest's schema is %q, this program reads %q", m.Schema, Schema)
	case m.ISA != isa.Version:
		return nil, fmt.Errorf("version %d of the instruction set, this program knows %d", m.ISA, isa.Version)
	case m.Machine == nil:
		return nil, errors.New("the manifest has no machine")
	case m.Machine.Hash() != m.MachineHash:
		return nil, errors.New("the machine does not have the SHA-256 that the manifest gives")
	}
	return m, m.Machine.Check()
}

// decode reads the n instructions of a queue.
func decode(code []byte, n int) ([]isa.Instr, error) {
	if n < 0 || n > len(code)/16 {
		return nil, fmt.Errorf("%d instructions in %d bytes", n, len(code))
	}
	var enc isa.Encoder
	list := make([]isa.Instr, 0, n)
	for len(code) > 0 {
		in, rest, err := enc.Decode(code)
		if err != nil {
			return nil, fmt.Errorf("instruction %d: %w", len(list), err)
		}
		list, code = append(list, in), rest
	}
	if len(list) != n {
		return nil, fmt.Errorf("%d instructions, the manifest says %d", len(list), n)
	}
	return list, nil
}
