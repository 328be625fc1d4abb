// Package binary is the file form of programs: ELF64 files that standard tools open.
//
// The file holds, in this order: the ELF header; a note with the SHA-256 of the whole file, computed with the digest's own
// bytes as zeros; the program headers; a note with the manifest, JSON of the schema "gradtool.npu/1"; the code of each queue; the
// data of each segment; section names and section headers. Data segments are loaded at their DRAM addresses. Code is loaded
// at CodeBase + queue << 40, an address space of its own.
package binary

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"gradtool/npu/isa"
	"gradtool/npu/machine"
)

// Schema is the schema of the manifest.
const Schema = "gradtool.npu/1"

// MachineType is the number in e_machine. It is not assigned to any processor.
const MachineType = 0x6e75

// CodeBase is the virtual address of the code of queue 0; the next queue's is 1 << 40 higher.
const CodeBase = 1 << 56

// The notes are of the owner "gradtool".
const (
	noteOwner    = "gradtool\x00\x00\x00\x00" // padded to 12
	noteManifest = 1
	noteDigest   = 2
)

// Sizes and places of the parts of the file that do not move.
const (
	ehdrSize   = 64
	phdrSize   = 56
	shdrSize   = 64
	digestAt   = ehdrSize + 12 + len(noteOwner)
	digestNote = 12 + len(noteOwner) + sha256.Size
	phdrAt     = ehdrSize + digestNote
)

// manifest is the JSON in the note.
type manifest struct {
	Schema      string           `json:"schema"`
	ISA         int              `json:"isa"`
	Name        string           `json:"name"`
	SourceHash  string           `json:"source_sha256,omitempty"`
	MachineHash string           `json:"machine_sha256"`
	Machine     *machine.Machine `json:"machine"`
	Conversions string           `json:"conversions"`
	DRAMBytes   int64            `json:"dram_bytes"`
	Inputs      []isa.Tensor     `json:"inputs"`
	Outputs     []isa.Tensor     `json:"outputs"`
	State       []isa.Pair       `json:"state,omitempty"`
	Fallbacks   []string         `json:"fallbacks,omitempty"`
	Cost        *isa.Cost        `json:"cost,omitempty"`
	Queues      []queueInfo      `json:"queues"`
	Segments    []segmentInfo    `json:"segments"`
	Nodes       []isa.Source     `json:"nodes"`
}

type queueInfo struct {
	Name         string `json:"name"`
	Instructions int    `json:"instructions"`
	Bytes        int    `json:"bytes"`
}

type segmentInfo struct {
	Name  string `json:"name"`
	Addr  int64  `json:"addr"`
	Bytes int    `json:"bytes"`
}

const conversions = "device numbers: 0 f32, 1 i32, 2 f16, 3 bf16; int64, uint64, int32, uint32, int16, uint16, int8, uint8 and bool are i32 words in DRAM, float is f32, float16 and bfloat16 are as they are"

// part is a stretch of the file.
type part struct {
	data []byte
	at   int64
}

// Write writes a program. The same program gives the same bytes.
func Write(w io.Writer, p *isa.Program) error {
	m := manifest{
		Schema: Schema, ISA: isa.Version, Name: p.Name, SourceHash: p.SourceHash, MachineHash: p.Machine.Hash(), Machine: p.Machine,
		Conversions: conversions, DRAMBytes: p.DRAMBytes, Inputs: shaped(p.Inputs), Outputs: shaped(p.Outputs), State: p.State,
		Fallbacks: p.Fallbacks, Cost: p.Cost, Nodes: p.Nodes,
	}
	var enc isa.Encoder
	var code [isa.NumQueues][]byte
	for q := isa.Queue(0); q < isa.NumQueues; q++ {
		for i := range p.Queues[q] {
			var err error
			if code[q], err = enc.Append(code[q], &p.Queues[q][i]); err != nil {
				return fmt.Errorf("%s queue, instruction %d: %w", q, i, err)
			}
		}
		m.Queues = append(m.Queues, queueInfo{q.String(), len(p.Queues[q]), len(code[q])})
	}
	for _, s := range p.Segments {
		m.Segments = append(m.Segments, segmentInfo{s.Name, s.Addr, len(s.Data)})
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	parts, err := layout(text, code, p.Segments)
	if err != nil {
		return err
	}
	h := sha256.New()
	if err := emit(h, parts); err != nil {
		return err
	}
	copy(parts[0].data[digestAt:], h.Sum(nil))
	return emit(w, parts)
}

// shaped returns tensors whose shapes are lists even if they are empty: one program has one form.
func shaped(list []isa.Tensor) []isa.Tensor {
	out := make([]isa.Tensor, len(list))
	for i, t := range list {
		if t.Shape == nil {
			t.Shape = []int64{}
		}
		out[i] = t
	}
	return out
}

// emit writes parts with zeros between them.
func emit(w io.Writer, parts []part) error {
	at := int64(0)
	for _, p := range parts {
		if _, err := w.Write(make([]byte, p.at-at)); err != nil {
			return err
		}
		if _, err := w.Write(p.data); err != nil {
			return err
		}
		at = p.at + int64(len(p.data))
	}
	return nil
}

// section is what the section header table says of a part.
type section struct {
	name       string
	typ        elf.SectionType
	flags      elf.SectionFlag
	addr       uint64
	off, bytes int64
	align      uint64
}

// layout places the parts of the file. The first holds all headers up to the manifest, its digest being zero.
func layout(text []byte, code [isa.NumQueues][]byte, segments []isa.Segment) ([]part, error) {
	phnum := 1 + int(isa.NumQueues) + len(segments)
	if phnum >= 0xff00 {
		return nil, fmt.Errorf("%d segments are more than an ELF file has", len(segments))
	}
	note := noteBytes(noteManifest, text)
	at := int64(phdrAt + phnum*phdrSize)
	sections := []section{{}, {".note.gradtool", elf.SHT_NOTE, 0, 0, at, int64(len(note)), 4}}
	parts := []part{{}, {note, at}}
	at += int64(len(note))
	var phdrs []elf.Prog64
	phdrs = append(phdrs, elf.Prog64{Type: uint32(elf.PT_NOTE), Flags: uint32(elf.PF_R), Off: uint64(parts[1].at), Filesz: uint64(len(note)), Align: 4})
	add := func(name string, data []byte, addr uint64, flags elf.SectionFlag, pf elf.ProgFlag) {
		const align = 64
		at = (at + align - 1) &^ (align - 1)
		at += int64(addr % align) // file offset and address agree modulo the alignment
		parts = append(parts, part{data, at})
		sections = append(sections, section{name, elf.SHT_PROGBITS, elf.SHF_ALLOC | flags, addr, at, int64(len(data)), 4})
		phdrs = append(phdrs, elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | pf), Off: uint64(at), Vaddr: addr, Paddr: addr, Filesz: uint64(len(data)), Memsz: uint64(len(data)), Align: align})
		at += int64(len(data))
	}
	for q := range code {
		add(".text."+isa.Queue(q).String(), code[q], CodeBase+uint64(q)<<40, elf.SHF_EXECINSTR, elf.PF_X)
	}
	for i, s := range segments {
		add(fmt.Sprintf(".data.%d", i), s.Data, uint64(s.Addr), elf.SHF_WRITE, elf.PF_W)
	}
	var names bytes.Buffer
	var table bytes.Buffer
	sections = append(sections, section{name: ".shstrtab", typ: elf.SHT_STRTAB, align: 1})
	offsets := make([]uint32, len(sections))
	for i, s := range sections {
		offsets[i] = uint32(names.Len())
		names.WriteString(s.name + "\x00")
	}
	last := &sections[len(sections)-1]
	last.off, last.bytes = at, int64(names.Len())
	parts = append(parts, part{names.Bytes(), at})
	at = (at + int64(names.Len()) + 7) &^ 7
	for i, s := range sections {
		put(&table, elf.Section64{Name: offsets[i], Type: uint32(s.typ), Flags: uint64(s.flags), Addr: s.addr, Off: uint64(s.off), Size: uint64(s.bytes), Addralign: s.align})
	}
	parts = append(parts, part{table.Bytes(), at})
	h := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: MachineType, Version: uint32(elf.EV_CURRENT), Phoff: uint64(phdrAt), Shoff: uint64(at), Ehsize: ehdrSize,
		Phentsize: phdrSize, Phnum: uint16(phnum), Shentsize: shdrSize, Shnum: uint16(len(sections)), Shstrndx: uint16(len(sections) - 1),
	}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS] = byte(elf.ELFCLASS64)
	h.Ident[elf.EI_DATA] = byte(elf.ELFDATA2LSB)
	h.Ident[elf.EI_VERSION] = byte(elf.EV_CURRENT)
	var head bytes.Buffer
	put(&head, h)
	head.Write(noteBytes(noteDigest, make([]byte, sha256.Size)))
	for _, p := range phdrs {
		put(&head, p)
	}
	parts[0].data = head.Bytes()
	return parts, nil
}

// put appends a header.
func put(b *bytes.Buffer, v any) {
	if err := binary.Write(b, binary.LittleEndian, v); err != nil {
		panic("binary: " + err.Error()) // a header of fixed size goes to memory
	}
}

// noteBytes returns a note, padded to a multiple of 4.
func noteBytes(typ uint32, desc []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 9)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(desc)))
	b = binary.LittleEndian.AppendUint32(b, typ)
	b = append(b, noteOwner...)
	b = append(b, desc...)
	return append(b, make([]byte, -len(b)&3)...)
}
