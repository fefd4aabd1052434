package native

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/regalloc"
)

// Local memory: the bytes of each lane, one lane after another. As no lane accesses
// that of another, a run may have loads and stores of it in any order, besides those of
// other memory. A run in which an access follows a local store has no quick body, as
// that could execute the store twice.

// localBase sets room to the address of the local memory of the tile's first lane.
func (x *access) localBase(a *amd64.Assembler) {
	a.Emit(amd64.IMUL, amd64.Q(room), amd64.Q(regTile), amd64.Imm(int64(ir.Tile*x.local)))
	a.Emit(amd64.ADD, amd64.Q(room), amd64.Mem(regContext, localOffset))
}

// emitLocalLoad loads from one address in all lanes, which is the most frequent case,
// or from different ones.
func (x *access) emitLocalLoad(a *amd64.Assembler, r regs) {
	apart, done, out := a.Label(), a.Label(), a.Label()
	x.mask(a, r, done)
	if x.N == 1 {
		x.together(a, r, apart)
		x.collect(a, r, func(l int) amd64.Arg { return amd64.Mem(offset, int32(l)*int32(x.local)) })
		a.Jump(done)
		a.Bind(apart)
		x.gather(a, r, r.address, out, out)
	} else {
		x.locate(a, r, r.address, out)
		each(a, addressOffset, func() {
			for i := range x.N {
				x.element(a, i)
				x.parkElement(a, i)
			}
		})
		x.unpark(a, r)
	}
	a.Jump(done)
	x.leave(a, out)
	a.Bind(done)
}

// emitLocalStore stores to one address in all lanes, or to different ones.
func (x *access) emitLocalStore(a *amd64.Assembler, r regs) {
	apart, done, out := a.Label(), a.Label(), a.Label()
	data := r.use[2:]
	if x.masked {
		data = r.use[3:]
	}
	x.mask(a, r, done)
	x.parkData(a, data)
	if x.N == 1 && !x.masked {
		x.together(a, r, apart)
		for l := range ir.Tile {
			x.storeElement(a, amd64.Mem(offset, int32(l)*int32(x.local)), x.parked(0, l))
		}
		a.Jump(done)
	}
	a.Bind(apart)
	x.locate(a, r, r.address, out)
	x.scatter(a)
	a.Jump(done)
	x.leave(a, out)
	a.Bind(done)
}

// together sets offset to the element of the first lane. It continues at apart unless
// all lanes have one address, and a valid one.
func (x *access) together(a *amd64.Assembler, r regs, apart amd64.Label) {
	unless(a, r, 0, apart)
	a.Emit(amd64.VMOVQ, amd64.Q(offset), amd64.X(r.use[0]))
	if x.Size > 1 {
		a.Emit(amd64.TEST, amd64.D(offset), amd64.Imm(int64(x.Size-1)))
		a.JumpIf(amd64.CondNE, apart)
	}
	if x.local < x.Size {
		a.Jump(apart)
		return
	}
	a.Emit(amd64.CMP, amd64.Q(offset), amd64.Imm(int64(x.local-x.Size)))
	a.JumpIf(amd64.CondA, apart)
	x.localBase(a)
	a.Emit(amd64.ADD, amd64.Q(offset), amd64.Q(room))
}

// localStore records that local memory has been written, which must not be repeated: no
// later access may leave a quick body.
func (b *builder) localStore() { b.stored = true }

// copyable reports whether a word can be copied in a run.
func copyable(o *ir.CopyWord) bool {
	to, from := o.To.Reg.Class, o.From.Reg.Class
	return to != ir.ClassPred && from != ir.ClassPred && (to == ir.ClassNone) != (from == ir.ClassNone)
}

// copyWord copies a word at a fixed offset of local memory to a register, or back.
func (b *builder) copyWord(o *ir.CopyWord, in *ir.Inst, index int, opt *Options) []value {
	w := o.From
	if o.To.Reg.Class == ir.ClassNone {
		w = o.To
	}
	x := access{Access: &ir.Access{Space: ir.Local, Size: 8, N: 1}, local: opt.LocalBytes}
	if w.Half || o.To.Reg.Class == ir.Class32 {
		x.Size = 4
	}
	if uint64(w.Local)+x.Size > opt.LocalBytes {
		b.err = fmt.Errorf("instruction %d: local memory has %d bytes, want %d at %d", index, opt.LocalBytes, x.Size, w.Local)
	}
	at := func(l int) amd64.Arg { return amd64.Mem(room, int32(w.Local)+int32(l)*int32(x.local)) }
	if o.To.Reg.Class == ir.ClassNone {
		b.storeWord(&x, b.settle(b.read(o.From.Reg)), b.activeMask(in, opt), at)
		return nil
	}
	v := b.add(regalloc.Inst{Temps: []regalloc.Class{0}}, int(x.Size/4), func(a *amd64.Assembler, r regs) {
		x.localBase(a)
		x.collect(a, r, at)
	})
	switch {
	case x.Size == 8:
		return []value{{ir.Class64, v[0], v[1]}}
	case o.To.Reg.Class == ir.Class64:
		return []value{b.extend(amd64.VPMOVZXDQ, v[0])}
	}
	return []value{{class: ir.Class32, lo: v[0]}}
}

// storeWord stores a word in the lanes of a mask; without a mask in all lanes.
func (b *builder) storeWord(x *access, v value, mask []id, at func(l int) amd64.Arg) {
	data := []id{v.lo}
	switch {
	case x.Size == 4 && v.class == ir.Class64:
		data = []id{b.low(v)}
	case x.Size == 8 && v.class == ir.Class64:
		data = append(data, v.hi)
	case x.Size == 8:
		v = b.extend(amd64.VPMOVZXDQ, v.lo)
		data = []id{v.lo, v.hi}
	}
	b.localStore()
	b.add(regalloc.Inst{Uses: append(data, mask...)}, 0, func(a *amd64.Assembler, r regs) {
		x.localBase(a)
		x.parkData(a, r.use[:len(data)])
		if len(mask) > 0 {
			a.Emit(amd64.VMOVMSKPS, amd64.D(lanesLeft), amd64.Y(r.use[len(data)]))
		}
		for l := range ir.Tile {
			skip := a.Label()
			if len(mask) > 0 {
				a.Emit(amd64.TEST, amd64.D(lanesLeft), amd64.Imm(1<<l))
				a.JumpIf(amd64.CondE, skip)
			}
			x.storeElement(a, at(l), x.parked(0, l))
			a.Bind(skip)
		}
	})
}
