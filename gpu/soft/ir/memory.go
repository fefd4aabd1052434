package ir

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// Space is the state space of an access.
type Space uint8

// The spaces.
const (
	Generic Space = iota
	Global        // .global and .const: device memory
	Shared
	Local
	Param // a kernel's parameters
)

func (s Space) String() string {
	return [...]string{"generic", "global", "shared", "local", "param"}[s]
}

// Access is the memory operand of a load, a store or an atomic operation.
type Access struct {
	Space  Space
	Base   Ref // of Class32 or Class64
	Off    uint64
	Size   uint64 // bytes of one element
	Signed bool   // a narrow element is sign-extended
	N      int    // vector elements
	Mask   uint64 // of the register's width
	Strong bool   // volatile, or ordered with other threads' (PTX ISA, "Memory Consistency Model")
	Local  uint64 // start of local memory in the generic space
}

func (a *Access) text() string {
	s := fmt.Sprintf("%s.b%d", a.Space, a.Size*8)
	if a.N > 1 {
		s += fmt.Sprintf(".v%d", a.N)
	}
	if a.Signed {
		s += ".signed"
	}
	if a.Off != 0 {
		s += fmt.Sprintf("[%+d]", int64(a.Off))
	}
	return s
}

// Load loads into one register for each element.
type Load struct {
	Access
	D     []Ref
	Fixed bool // all lanes have one address
}

// Name implements Op.
func (o *Load) Name() string { return "ld." + o.text() }

// Registers implements Op.
func (o *Load) Registers() (results, sources []Ref) { return registers(o.D...), registers(o.Base) }

// Store stores one register for each element.
type Store struct {
	Access
	S []Ref
}

// Name implements Op.
func (o *Store) Name() string { return "st." + o.text() }

// Registers implements Op.
func (o *Store) Registers() (results, sources []Ref) {
	return nil, append(registers(o.Base), registers(o.S...)...)
}

// Atomic is an atomic operation on one element of 4 or 8 bytes: F returns the new
// value, given the old one and B and C, and D receives the old one. D may be None.
type Atomic struct {
	Access
	F       ops.Update
	Device  ops.Update // the operation in device memory if it differs, or nil
	What    string     // the operation and its type
	D, B, C Ref
}

// Name implements Op.
func (o *Atomic) Name() string { return "atom." + o.What + "." + o.text() }

// Registers implements Op.
func (o *Atomic) Registers() (results, sources []Ref) {
	return registers(o.D), registers(o.Base, o.B, o.C)
}

// CopyAsync is cp.async: each lane copies from device memory to shared memory (PTX ISA,
// "Data Movement and Conversion Instructions: Asynchronous copy"). The copy may be
// executed at once, as a program may not read the result before it has waited.
type CopyAsync struct {
	To, From Access // Size: bytes of the copy
	Count    Ref    // number of bytes that are copied, the others become zero; None: all
	Ignore   *Pred  // nothing is copied where it is true
}

// Name implements Op.
func (o *CopyAsync) Name() string { return "copy." + o.To.text() + "." + o.From.text() }

// Registers implements Op.
func (o *CopyAsync) Registers() (results, sources []Ref) {
	sources = registers(o.To.Base, o.From.Base, o.Count)
	if o.Ignore != nil {
		sources = append(sources, o.Ignore.Ref())
	}
	return nil, sources
}
