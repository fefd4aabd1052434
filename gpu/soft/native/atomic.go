package native

import (
	"strings"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/regalloc"
)

// Atomic operations on shared memory that one goroutine accesses: one lane after
// another, without a lock. Like a store, an atomic operation is alone in its run except
// for loads of parameters, so that lanes are processed in order. A run with one has no
// quick body, as that could execute it twice.

// updates compute the new value in room, from the old one in RAX and the lane's source
// in room. 32-bit values are zero-extended.
var updates = map[string]func(a *amd64.Assembler){
	"add":  func(a *amd64.Assembler) { a.Emit(amd64.ADD, amd64.Q(room), amd64.Q(amd64.RAX)) },
	"and":  func(a *amd64.Assembler) { a.Emit(amd64.AND, amd64.Q(room), amd64.Q(amd64.RAX)) },
	"or":   func(a *amd64.Assembler) { a.Emit(amd64.OR, amd64.Q(room), amd64.Q(amd64.RAX)) },
	"xor":  func(a *amd64.Assembler) { a.Emit(amd64.XOR, amd64.Q(room), amd64.Q(amd64.RAX)) },
	"exch": func(*amd64.Assembler) {},
	"min":  func(a *amd64.Assembler) { keepOld(a, amd64.CondB) },
	"max":  func(a *amd64.Assembler) { keepOld(a, amd64.CondA) },
}

// keepOld keeps the old value if it compares so with the source.
func keepOld(a *amd64.Assembler, c amd64.Cond) {
	a.Emit(amd64.CMP, amd64.Q(amd64.RAX), amd64.Q(room))
	a.Emit(amd64.CMOV[c], amd64.Q(room), amd64.Q(amd64.RAX))
}

// updatable reports whether an atomic operation can be in a run.
func updatable(o *ir.Atomic) bool {
	op, typ, _ := strings.Cut(o.What, ".")
	if o.Space != ir.Shared || o.N != 1 || updates[op] == nil {
		return false
	}
	class := ir.Class32
	switch typ {
	case "u32", "b32":
	case "s32":
		if op != "add" { // signed comparisons
			return false
		}
	case "u64", "b64":
		class = ir.Class64
	default:
		return false
	}
	return o.B.Class == class && (o.D.Class == class || o.D.Class == ir.ClassNone)
}

func (b *builder) atomic(o *ir.Atomic, in *ir.Inst, index int, opt *Options) []value {
	x := b.newAccess(&o.Access, index, opt)
	x.window = exclusiveOffset
	data := b.settle(b.read(o.B))
	uses := append(b.access(&x, in, opt), data.lo)
	vectors := 1
	if o.Size == 8 {
		uses, vectors = append(uses, data.hi), 2
	}
	op, _, _ := strings.Cut(o.What, ".")
	old := b.add(regalloc.Inst{Uses: uses, Temps: []regalloc.Class{0, 0, 0}, Early: true}, vectors, func(a *amd64.Assembler, r regs) { x.emitAtomic(a, r, updates[op]) })
	switch {
	case o.D.Class == ir.ClassNone:
		return nil
	case vectors == 2:
		return []value{{ir.Class64, old[0], old[1]}}
	}
	return []value{{class: ir.Class32, lo: old[0]}}
}

// emitAtomic checks the addresses of all lanes before the first lane writes, as a store
// does.
func (x *access) emitAtomic(a *amd64.Assembler, r regs, update func(a *amd64.Assembler)) {
	done, out := a.Label(), a.Label()
	data := r.use[2:]
	if x.masked {
		data = r.use[3:]
	}
	x.mask(a, r, done)
	x.parkData(a, data)
	x.locate(a, r, r.address, out)
	if x.masked {
		each(a, addressOffset, func() {
			x.change(a, update, x.parked(0, 0).Index(lane, uint8(x.Size)))
			a.Emit(amd64.MOV, x.parked(0, 0).Index(lane, uint8(x.Size)), x.scalar(amd64.RAX))
			a.Emit(amd64.OR, amd64.Mem(regContext, changedOffset), amd64.Q(room))
		})
		x.unpark(a, r)
	} else {
		const changed = lane
		a.Emit(amd64.XOR, amd64.D(changed), amd64.D(changed))
		x.collect(a, r, func(l int) amd64.Arg {
			a.Emit(amd64.MOV, amd64.Q(offset), amd64.Mem(regContext, addressOffset+8*int32(l)))
			x.change(a, update, x.parked(0, l))
			a.Emit(amd64.OR, amd64.Q(changed), amd64.Q(room))
			return x.scalar(amd64.RAX)
		})
		a.Emit(amd64.OR, amd64.Mem(regContext, changedOffset), amd64.Q(changed))
	}
	a.Jump(done)
	x.leave(a, out)
	a.Bind(done)
}

// change performs the operation of one lane on the element at offset. It leaves the old
// value in RAX, and in room the bits that have changed, which wakes lanes that wait for
// a change.
func (x *access) change(a *amd64.Assembler, update func(a *amd64.Assembler), source amd64.Arg) {
	a.Emit(amd64.MOV, x.scalar(amd64.RAX), amd64.Mem(offset, 0))
	a.Emit(amd64.MOV, x.scalar(room), source)
	update(a)
	a.Emit(amd64.MOV, amd64.Mem(offset, 0), x.scalar(room))
	a.Emit(amd64.XOR, x.scalar(room), x.scalar(amd64.RAX))
}

// scalar returns a register as wide as an element of 4 or 8 bytes.
func (x *access) scalar(r amd64.Reg) amd64.Arg {
	if x.Size == 8 {
		return amd64.Q(r)
	}
	return amd64.D(r)
}
