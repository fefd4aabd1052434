package amd64

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// MaxCode is the maximum number of bytes that an Assembler writes.
const MaxCode = 4 << 20

// Label is a position in the code. The zero Label is invalid.
type Label int

// Assembler appends instructions to a buffer. After the first error, which Finish
// returns, nothing is written. The zero Assembler is ready to use.
type Assembler struct {
	buf    []byte
	places []int // of label i+1, or -1
	fixups []fixup
	pool   []constant
	known  map[string]Label // labels of the pool, by content
	err    error
}

// fixup is a distance of 32 bits from end to a label, which is added to the value at
// at.
type fixup struct {
	at, end int
	label   Label
}

type constant struct {
	label Label
	bytes []byte
}

func (a *Assembler) put(b ...byte) { a.buf = append(a.buf, b...) }

func (a *Assembler) put32(v int32) { a.buf = binary.LittleEndian.AppendUint32(a.buf, uint32(v)) }

func (a *Assembler) fail(format string, args ...any) {
	if a.err == nil {
		a.err = fmt.Errorf(format, args...)
	}
}

// Len returns the number of bytes written so far.
func (a *Assembler) Len() int { return len(a.buf) }

// Emit appends an instruction with its operands in the order of Intel's syntax.
func (a *Assembler) Emit(in *Inst, args ...Arg) {
	if a.err != nil {
		return
	}
	if len(a.buf) > MaxCode {
		a.fail("generated code: more than %d bytes", MaxCode)
		return
	}
	m, ok := in.find(args)
	if !ok {
		a.fail("%s: no encoding takes the operands %+v", in.name, slices.Clone(args))
		return
	}
	a.encode(&m)
}

// Label returns a new label, to be bound once.
func (a *Assembler) Label() Label {
	a.places = append(a.places, -1)
	return Label(len(a.places))
}

// Bind sets a label to the current position.
func (a *Assembler) Bind(l Label) {
	if a.places[l-1] >= 0 {
		a.fail("label %d: bound at %d and again at %d", l, a.places[l-1], len(a.buf))
	}
	a.places[l-1] = len(a.buf)
}

// Place returns the position of a label, or -1 before it is bound.
func (a *Assembler) Place(l Label) int { return a.places[l-1] }

// Jump appends a jump to a label.
func (a *Assembler) Jump(l Label) {
	a.put(0xe9)
	a.distance(l)
}

// JumpIf appends a jump to a label that is taken if a condition is true.
func (a *Assembler) JumpIf(c Cond, l Label) {
	a.put(0x0f, 0x80|byte(c))
	a.distance(l)
}

func (a *Assembler) distance(l Label) {
	a.put32(0)
	a.fixups = append(a.fixups, fixup{len(a.buf) - 4, len(a.buf), l})
}

// Const returns the label of some bytes, which Finish appends to the code, aligned to
// their number if that is a power of two. Equal constants are stored once.
func (a *Assembler) Const(b []byte) Label {
	if l, ok := a.known[string(b)]; ok {
		return l
	}
	if a.known == nil {
		a.known = map[string]Label{}
	}
	l := a.Label()
	a.known[string(b)] = l
	a.pool = append(a.pool, constant{l, slices.Clone(b)})
	return l
}

// Broadcast32 returns the label of a vector of 256 bits with v in each lane.
func (a *Assembler) Broadcast32(v uint32) Label {
	var b []byte
	for range 8 {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return a.Const(b)
}

// Broadcast64 returns the label of a vector of 256 bits with v in each lane.
func (a *Assembler) Broadcast64(v uint64) Label {
	var b []byte
	for range 4 {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return a.Const(b)
}

// Align appends traps up to a multiple of n. The position must not be reachable.
func (a *Assembler) Align(n int) {
	for len(a.buf)%n != 0 {
		a.put(0xcc)
	}
}

// Finish returns the code with its constants and distances, or the first error. The
// code can be loaded at any address that is a multiple of CodeAlign.
func (a *Assembler) Finish() ([]byte, error) {
	for _, c := range a.pool {
		if n := len(c.bytes); n&(n-1) == 0 && n > 0 && n <= CodeAlign {
			a.Align(n)
		}
		a.Bind(c.label)
		a.put(c.bytes...)
	}
	a.pool, a.known = nil, nil
	if a.err == nil && len(a.buf) > MaxCode {
		a.fail("generated code: %d bytes, the most is %d", len(a.buf), MaxCode)
	}
	for _, f := range a.fixups {
		a.patch(f)
	}
	a.fixups = nil
	if a.err != nil {
		return nil, a.err
	}
	return a.buf, nil
}

func (a *Assembler) patch(f fixup) {
	to := a.places[f.label-1]
	if to < 0 {
		a.fail("label %d: used at %d and never bound", f.label, f.at)
		return
	}
	at := a.buf[f.at:]
	distance := int64(to-f.end) + int64(int32(binary.LittleEndian.Uint32(at)))
	if distance != int64(int32(distance)) {
		a.fail("label %d: %w", f.label, errFar)
	}
	binary.LittleEndian.PutUint32(at, uint32(distance))
}

var errFar = errors.New("further away than " + fmt.Sprint(math.MaxInt32) + " bytes")

// CodeAlign is the alignment of the code of a function, that of its widest constants.
const CodeAlign = 64
