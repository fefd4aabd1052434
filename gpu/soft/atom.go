package soft

import (
	"fmt"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// atom and red (PTX ISA, "Parallel Synchronization": atom, red).

var atomNames = map[string]bool{
	"add": true, "min": true, "max": true, "inc": true, "dec": true, "cas": true, "exch": true,
	"and": true, "or": true, "xor": true, "noftz": true,
}

// update gives the new value from the old and the sources.
type update func(old, b, c uint64) uint64

func (c *compiler) atom(in *ptx.Inst) ([]step, error) {
	args := in.Args
	withResult := in.Op == "atom"
	if withResult {
		if len(args) < 1 {
			return nil, in.Errorf("wrong number of operands")
		}
		args = args[1:]
	}
	if len(args) < 2 {
		return nil, in.Errorf("wrong number of operands")
	}
	a, err := c.access(in, &args[0], atomNames)
	if err != nil {
		return nil, err
	}
	op := ""
	for _, m := range in.Mods {
		if atomNames[m] && m != "noftz" {
			op = m
		}
	}
	f := updateFor(op, a.typ)
	want := 2
	if op == "cas" {
		want = 3
	}
	if f == nil || len(args) != want || a.n != 1 || a.space == spParam {
		return nil, in.Errorf("unsupported instruction")
	}
	cl := classOf(a.typ)
	b, err := c.source(&args[1], cl, a.typ)
	if err != nil {
		return nil, err
	}
	b2 := b
	if op == "cas" {
		if b2, err = c.source(&args[2], cl, a.typ); err != nil {
			return nil, err
		}
	}
	d := ref{class: classNone}
	if withResult {
		if d, err = c.dest(&in.Args[0], cl); err != nil {
			return nil, err
		}
	}
	size := uint64(a.typ.Size())
	return []step{{masked: func(m *machine, act []uint32) error {
		addrs := m.addresses(&a)
		return eachLaneErr(act, func(l int) error {
			addr := a.at(addrs[l], a.off)
			if a.space == spGeneric && addr-m.env.spaces.param < spaceSize {
				return fmt.Errorf("%w: atomic on parameters", abi.ErrIllegalAddress)
			}
			mem, err := m.window(a.space, addr, size, l)
			if err != nil {
				return err
			}
			x, y := m.get(b, l), m.get(b2, l)
			var old uint64
			if size == 8 {
				old = atomic64(mem, func(o uint64) uint64 { return f(o, x, y) })
			} else {
				old = uint64(atomic32(mem, func(o uint32) uint32 { return uint32(f(uint64(o), x, y)) }))
			}
			m.set(d, l, old)
			return nil
		})
	}}}, nil
}

// updateFor is nil for combinations that do not exist or are not supported.
func updateFor(op string, t ptx.Type) update {
	if n := t.Size(); n != 4 && n != 8 {
		return nil
	}
	if t.Float() {
		if op != "add" {
			return nil
		}
		switch t {
		case ptx.F32: // global f32 atomics flush no denormals on sm_60 and later
			return func(o, b, _ uint64) uint64 { return uint64(b32(f32(uint32(o)) + f32(uint32(b)))) }
		case ptx.F64:
			return func(o, b, _ uint64) uint64 { return b64(f64(o) + f64(b)) }
		case ptx.F16x2:
			return func(o, b, _ uint64) uint64 {
				x, y := uint32(o), uint32(b)
				return uint64(toF16(float64(f16(x)+f16(y))) | toF16(float64(f16(x>>16)+f16(y>>16)))<<16)
			}
		}
		return nil
	}
	bitwise := strings.HasPrefix(t.String(), "b")
	switch op {
	case "exch":
		return func(_, b, _ uint64) uint64 { return b }
	case "cas":
		return func(o, b, c uint64) uint64 {
			if o == b {
				return c
			}
			return o
		}
	case "and":
		return func(o, b, _ uint64) uint64 { return o & b }
	case "or":
		return func(o, b, _ uint64) uint64 { return o | b }
	case "xor":
		return func(o, b, _ uint64) uint64 { return o ^ b }
	}
	if bitwise {
		return nil
	}
	switch op {
	case "add":
		return func(o, b, _ uint64) uint64 { return o + b }
	case "min":
		if t.Signed() {
			return func(o, b, _ uint64) uint64 { return uint64(min(int64(extended(o, t)), int64(extended(b, t)))) }
		}
		return func(o, b, _ uint64) uint64 { return min(o, b) }
	case "max":
		if t.Signed() {
			return func(o, b, _ uint64) uint64 { return uint64(max(int64(extended(o, t)), int64(extended(b, t)))) }
		}
		return func(o, b, _ uint64) uint64 { return max(o, b) }
	}
	if t != ptx.U32 {
		return nil
	}
	switch op {
	case "inc":
		return func(o, b, _ uint64) uint64 {
			if o >= b {
				return 0
			}
			return o + 1
		}
	case "dec":
		return func(o, b, _ uint64) uint64 {
			if o == 0 || o > b {
				return b
			}
			return o - 1
		}
	}
	return nil
}
