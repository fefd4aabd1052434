package native

import (
	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// Local memory: each lane's own bytes, one lane's behind the other's. As no lane sees
// another's, a run may have loads and stores of it in any order, beside those of other
// memory. A run in which an access comes after a local store has no quick body, which
// might begin again behind it.

// localBase makes room the memory of a tile's first lane.
func (x *access) localBase(a *amd64.Assembler) {
	a.Emit(amd64.IMUL, amd64.Q(room), amd64.Q(regTile), amd64.Imm(int64(ir.Tile*x.local)))
	a.Emit(amd64.ADD, amd64.Q(room), amd64.Mem(regContext, localOffset))
}

// emitLocalLoad loads from one address in all lanes, as most often, or from any.
func (x *access) emitLocalLoad(a *amd64.Assembler, r regs) {
	apart, done, out := a.Label(), a.Label(), a.Label()
	x.mask(a, r, done)
	if x.N == 1 {
		x.together(a, r, apart)
		x.collect(a, r, func(l int) amd64.Arg { return amd64.Mem(offset, int32(l)*int32(x.local)) })
		a.Jump(done)
		a.Bind(apart)
		x.gather(a, r, out, out)
	} else {
		x.locate(a, r, out)
		each(a, addressOffset, func() {
			for i := range x.N {
				x.element(a, i)
				a.Emit(amd64.MOV, x.parked(i, 0).Index(lane, uint8(max(x.Size, 4))), x.scalar(amd64.RAX))
			}
		})
		x.unpark(a, r)
	}
	a.Jump(done)
	x.leave(a, out)
	a.Bind(done)
}

// emitLocalStore stores to one address in all lanes, or to any.
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
			x.put(a, amd64.Mem(offset, int32(l)*int32(x.local)), x.parked(0, l))
		}
		a.Jump(done)
	}
	a.Bind(apart)
	x.locate(a, r, out)
	x.scatter(a)
	a.Jump(done)
	x.leave(a, out)
	a.Bind(done)
}

// together makes offset the element of the first lane. It goes on at apart unless all
// lanes have one address, and a good one.
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
