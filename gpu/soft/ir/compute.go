package ir

import (
	"fmt"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// Operations on registers, as the PTX ISA defines them. Only ActiveMask and Fail depend
// on the active lanes.

// Arith is an operation of the table with its registers.
type Arith struct {
	F       ops.Operation
	D       Ref
	S       []Ref
	Scratch bool // D is only read by adjacent instructions, in the same lanes
}

// Name implements Op.
func (o *Arith) Name() string { return o.F.String() }

// Registers implements Op.
func (o *Arith) Registers() (results, sources []Ref) { return registers(o.D), registers(o.S...) }

// Clock reads the time in nanoseconds, or in cycles of the device's clock, shifted right.
type Clock struct {
	D      Ref
	Shift  int
	Cycles bool
}

// Name implements Op.
func (o *Clock) Name() string {
	if o.Cycles {
		return fmt.Sprintf("cycles>>%d", o.Shift)
	}
	return fmt.Sprintf("clock>>%d", o.Shift)
}

// Registers implements Op.
func (o *Clock) Registers() (results, sources []Ref) { return registers(o.D), nil }

// Pack combines the low Each bits of registers of 32 bits to one register, the first
// lowest.
type Pack struct {
	D    Ref
	S    []Ref
	Each int
}

// Name implements Op.
func (o *Pack) Name() string { return fmt.Sprintf("pack.b%d", o.Each) }

// Registers implements Op.
func (o *Pack) Registers() (results, sources []Ref) { return registers(o.D), registers(o.S...) }

// Unpack is the reverse of Pack.
type Unpack struct {
	D    []Ref
	S    Ref
	Each int
}

// Name implements Op.
func (o *Unpack) Name() string { return fmt.Sprintf("unpack.b%d", o.Each) }

// Registers implements Op.
func (o *Unpack) Registers() (results, sources []Ref) { return registers(o.D...), registers(o.S) }

// Logic is a bitwise operation on predicates: and, or, xor, not, or mov.
type Logic struct {
	F    string
	D    Ref
	A, B Pred
}

// Name implements Op.
func (o *Logic) Name() string { return o.F + ".pred" + negations(o.A, o.B) }

// Registers implements Op.
func (o *Logic) Registers() (results, sources []Ref) {
	return registers(o.D), registers(o.A.Ref(), o.B.Ref())
}

// LogicPair computes P = F(A, B) and Q = F(!A, B), as setp with two results does.
type LogicPair struct {
	F       string
	P, Q, A Ref
	B       Pred
}

// Name implements Op.
func (o *LogicPair) Name() string { return o.F + ".pair.pred" + negations(o.B) }

// Registers implements Op.
func (o *LogicPair) Registers() (results, sources []Ref) {
	return registers(o.P, o.Q), registers(o.A, o.B.Ref())
}

func negations(list ...Pred) string {
	var b strings.Builder
	for i, p := range list {
		if p.Not {
			fmt.Fprintf(&b, "[!%d]", i)
		}
	}
	return b.String()
}

// Select returns A where P is true and B elsewhere. D, A and B have the same class.
type Select struct {
	D, A, B Ref
	P       Pred
}

// Name implements Op.
func (o *Select) Name() string { return "selp" + negations(o.P) }

// Registers implements Op.
func (o *Select) Registers() (results, sources []Ref) {
	return registers(o.D), registers(o.A, o.B, o.P.Ref())
}

// Convert is a cvt that is not in the table. The result is masked with Keep.
type Convert struct {
	F    ops.Conversion
	D, S Ref
	Keep uint64
}

// Name implements Op.
func (o *Convert) Name() string { return "cvt." + o.F.String() }

// Registers implements Op.
func (o *Convert) Registers() (results, sources []Ref) { return registers(o.D), registers(o.S) }

// StackAddress computes the address of a variable on the lanes' stack, with the width
// of D.
type StackAddress struct {
	D, Base Ref
	Off     uint64
}

// Name implements Op.
func (o *StackAddress) Name() string { return fmt.Sprintf("stack+%d", o.Off) }

// Registers implements Op.
func (o *StackAddress) Registers() (results, sources []Ref) {
	return registers(o.D), registers(o.Base)
}

// Alloca allocates local memory in each lane: Size bytes below Pointer, which it lowers
// to the address in D. Pointer is not below From.
type Alloca struct {
	D, Size, Pointer Ref
	From, To         uint32 // the range of local memory
	Align            uint32
}

// Name implements Op.
func (o *Alloca) Name() string { return fmt.Sprintf("alloca.%d", o.Align) }

// Registers implements Op.
func (o *Alloca) Registers() (results, sources []Ref) {
	return registers(o.D, o.Pointer), registers(o.Size, o.Pointer)
}

// AddCarry is an addition or subtraction of a number of several words.
type AddCarry struct {
	D       Ref
	S       []Ref // of D's class: two, or three with a product
	Flag    Ref   // the predicate with the carry, or with the inverted borrow
	In, Out bool  // the flag is added; the flag is set
	Minus   bool
	Product *ops.Product // the product of the first two sources replaces the first one, or nil
}

// Name implements Op.
func (o *AddCarry) Name() string {
	name := "add"
	switch {
	case o.Minus:
		name = "sub"
	case o.Product != nil:
		name = "mad." + o.Product.String()
	}
	if o.In {
		name += ".in"
	}
	if o.Out {
		name += ".out"
	}
	return name
}

// Registers implements Op.
func (o *AddCarry) Registers() (results, sources []Ref) {
	results, sources = registers(o.D), registers(o.S...)
	if o.Out {
		results = append(results, o.Flag)
	}
	if o.In {
		sources = append(sources, o.Flag)
	}
	return results, sources
}

// ActiveMask returns to each lane the active lanes of its warp.
type ActiveMask struct{ D Ref }

// Name implements Op.
func (o *ActiveMask) Name() string { return "activemask" }

// Registers implements Op.
func (o *ActiveMask) Registers() (results, sources []Ref) { return registers(o.D), nil }

// Fail ends the kernel with an error.
type Fail struct{ Err error }

// Name implements Op.
func (o *Fail) Name() string { return fmt.Sprintf("fail %q", o.Err) }

// Registers implements Op.
func (o *Fail) Registers() (results, sources []Ref) { return nil, nil }

// Nanosleep lets other groups run.
type Nanosleep struct{}

// Name implements Op.
func (o *Nanosleep) Name() string { return "nanosleep" }

// Registers implements Op.
func (o *Nanosleep) Registers() (results, sources []Ref) { return nil, nil }
