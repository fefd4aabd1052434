package fatbin

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Cubin is what an image of machine code declares.
type Cubin struct {
	Arch    int // 61 for sm_61
	Kernels []Kernel
	Vars    []Var
}

// Kernel is a kernel of a cubin. Its parameters are in the order of their
// declaration.
type Kernel struct {
	Name   string
	Params []Param
}

// Param is the position of a parameter in the kernel's parameter space, in bytes.
type Param struct{ Offset, Size uint32 }

// Var is a variable of a module; Size in bytes.
type Var struct {
	Name string
	Size uint64
}

// ErrForeign is the error for machine code that is not a GPU's, or that has
// nothing to load.
var ErrForeign = errors.New("not code for a GPU")

// A cubin is a 64-bit ELF file (System V ABI, "Object Files") for machine 190.
// Its contents are known from public tools: kernels are functions with
// STO_CUDA_ENTRY in st_other, variables are objects in sections .nv.global… and
// .nv.constant3…, and .nv.info.KERNEL has the parameters.
const (
	elfHeader      = 64
	elfSection     = 64 // bytes of a section header
	elfSymbol      = 24 // bytes of a symbol
	machineCUDA    = 190
	sectionSymbols = 2 // SHT_SYMTAB
	sectionNoBits  = 8 // SHT_NOBITS
	symbolObject   = 1 // STT_OBJECT
	symbolFunction = 2 // STT_FUNC
	otherEntry     = 0x10

	// These bound what a hostile cubin may create from a few bytes.
	maxKernels = 1 << 14
	maxVars    = 1 << 16
	maxParams  = 1 << 10
)

// Attributes of .nv.info: u8 format, u8 attribute, then a u16, which is the value
// or the number of bytes that follow.
const (
	infoSized   = 4    // the format of attributes whose bytes follow
	infoParam   = 0x17 // KPARAM_INFO: index u32, ordinal u16, offset u16, size<<18 u32
	paramRecord = 12   // size in bytes
)

// IsELF reports whether an image begins like machine code.
func IsELF(image []byte) bool { return bytes.HasPrefix(image, []byte("\x7fELF")) }

// section is one section of an ELF file; body is nil where the file has none.
type section struct {
	name string
	kind uint32
	link uint32
	body []byte
}

func badCubin(what string) error {
	return fmt.Errorf("%w: cubin: %s", ErrMalformed, what)
}

func badELF(what string) error {
	return fmt.Errorf("%w: ELF file: %s", ErrMalformed, what)
}

// part returns size bytes from off on, if the image has them.
func part(image []byte, off, size uint64) ([]byte, bool) {
	if off > uint64(len(image)) || size > uint64(len(image))-off {
		return nil, false
	}
	return image[off : off+size], true
}

// reader limits the cost of names: many symbols of a hostile file may share one
// long name.
type reader struct {
	o     *Cubin
	names int // bytes of names that may still be read
	seen  map[string]bool
}

// text returns the string that begins at an offset of a string table.
func (r *reader) text(table []byte, off uint32) (string, bool) {
	if uint64(off) >= uint64(len(table)) || r.names <= 0 {
		return "", false
	}
	table = table[off:]
	table = table[:min(len(table), r.names)]
	s, _, ok := bytes.Cut(table, []byte{0})
	r.names -= len(s) + 1
	return string(s), ok
}

// sections reads the section headers. A name outside its table is empty.
func (r *reader) sections(image []byte) ([]section, error) {
	le := binary.LittleEndian
	if len(image) < elfHeader || image[4] != 2 || image[5] != 1 {
		return nil, badELF("it is not a 64-bit little-endian ELF file")
	}
	n, names := int(le.Uint16(image[60:])), int(le.Uint16(image[62:]))
	headers, ok := part(image, le.Uint64(image[40:]), uint64(n)*elfSection)
	if !ok || le.Uint16(image[58:]) != elfSection || names >= n {
		return nil, badELF("its section headers are outside of the file")
	}
	list := make([]section, n)
	for i := range list {
		h := headers[i*elfSection:]
		list[i].kind, list[i].link = le.Uint32(h[4:]), le.Uint32(h[40:])
		if list[i].kind == 0 || list[i].kind == sectionNoBits {
			continue
		}
		if list[i].body, ok = part(image, le.Uint64(h[24:]), le.Uint64(h[32:])); !ok {
			return nil, badELF(fmt.Sprintf("section %d is outside of the file", i))
		}
	}
	for i := range list {
		list[i].name, _ = r.text(list[names].body, le.Uint32(headers[i*elfSection:]))
	}
	return list, nil
}

// ReadCubin returns the kernels, their parameters and the variables of a cubin.
// The error wraps ErrMalformed or ErrForeign.
func ReadCubin(image []byte) (*Cubin, error) {
	r := &reader{o: &Cubin{}, names: 2*len(image) + 1<<16, seen: map[string]bool{}}
	list, err := r.sections(image)
	if err != nil {
		return nil, err
	}
	if machine := binary.LittleEndian.Uint16(image[18:]); machine != machineCUDA {
		return nil, fmt.Errorf("%w: the ELF file is for machine %d, not for a GPU", ErrForeign, machine)
	}
	// The low byte of the flags is the architecture: 61 for sm_61.
	r.o.Arch = int(image[48])
	info := map[string][]byte{}
	for _, s := range list {
		if name, ok := strings.CutPrefix(s.name, ".nv.info."); ok {
			info[name] = s.body
		}
	}
	// There is one symbol table (System V ABI, "Sections").
	if i := slices.IndexFunc(list, func(s section) bool { return s.kind == sectionSymbols }); i >= 0 {
		if uint64(list[i].link) >= uint64(len(list)) {
			return nil, badCubin("its symbols have no names")
		}
		if err := r.symbols(list[i].body, list[list[i].link].body, list, info); err != nil {
			return nil, err
		}
	}
	if len(r.o.Kernels) == 0 && len(r.o.Vars) == 0 {
		return nil, fmt.Errorf("%w: the cubin has no kernels and no variables", ErrForeign)
	}
	return r.o, nil
}

func (r *reader) symbols(table, names []byte, list []section, info map[string][]byte) error {
	le, o := binary.LittleEndian, r.o
	for ; len(table) >= elfSymbol; table = table[elfSymbol:] {
		kind, other, in := table[4]&15, table[5], int(le.Uint16(table[6:]))
		if in == 0 || in >= len(list) {
			continue
		}
		kernelSymbol := kind == symbolFunction && other&otherEntry != 0
		variableSymbol := kind == symbolObject && (strings.HasPrefix(list[in].name, ".nv.global") || strings.HasPrefix(list[in].name, ".nv.constant3"))
		if !kernelSymbol && !variableSymbol {
			continue
		}
		name, ok := r.text(names, le.Uint32(table))
		if !ok || name == "" {
			return badCubin("a symbol has no name")
		}
		if r.seen[name] {
			continue
		}
		r.seen[name] = true
		if variableSymbol {
			if o.Vars = append(o.Vars, Var{name, le.Uint64(table[16:])}); len(o.Vars) > maxVars {
				return badCubin("it has too many variables")
			}
			continue
		}
		params, err := parameters(info[name])
		if err != nil {
			return fmt.Errorf("kernel %s: %w", name, err)
		}
		if o.Kernels = append(o.Kernels, Kernel{Name: name, Params: params}); len(o.Kernels) > maxKernels {
			return badCubin("it has too many kernels")
		}
	}
	return nil
}

// parameters decodes a kernel's .nv.info section.
func parameters(info []byte) ([]Param, error) {
	le := binary.LittleEndian
	type param struct {
		ordinal uint16
		Param
	}
	var list []param
	for len(info) >= 4 {
		size := 0
		if info[0] == infoSized {
			size = int(le.Uint16(info[2:]))
		}
		if size > len(info)-4 {
			return nil, badCubin("an attribute is outside of its section")
		}
		if info[0] == infoSized && info[1] == infoParam && size >= paramRecord {
			b := info[4:]
			p := param{le.Uint16(b[4:]), Param{Offset: uint32(le.Uint16(b[6:])), Size: le.Uint32(b[8:]) >> 18}}
			if list = append(list, p); len(list) > maxParams {
				return nil, badCubin("a kernel has too many parameters")
			}
		}
		info = info[4+size:]
	}
	slices.SortStableFunc(list, func(a, b param) int { return cmp.Compare(a.ordinal, b.ordinal) })
	out := make([]Param, 0, len(list))
	for _, p := range list {
		out = append(out, p.Param)
	}
	return out, nil
}
