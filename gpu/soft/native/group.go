package native

import (
	"math"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/regalloc"
)

// Loads of a quick body. Those whose addresses differ by constants are a group, which
// looks at the lanes' addresses once: an unrolled loop has many of them.

// maxGroups is how many a run has.
const maxGroups = 32

// maxSpan is how far apart the addresses of a group are.
const maxSpan = 1 << 20

// Kind is how the addresses of a tile's lanes lie.
type Kind uint8

// The kinds of addresses.
const (
	equal       Kind = iota
	consecutive      // side by side, where loads can use that
	inside           // all in the window, and aligned
	apart            // else
	Unknown          // Options.Expect: any of them
)

// groupKey is what the loads of a group have in common: the vectors of their
// addresses, and that all are aligned when one is.
type groupKey struct {
	lo, hi id
	space  ir.Space
	size   uint64
	n      int
	part   uint64 // of the offset, less than the alignment
}

// group is loads of one key. The first one's access has their window.
type group struct {
	access
	number    int
	expect    Kind
	low, high int64 // the least and the greatest offset, from the first one's on
	walk      *walk // of a loop that looks at the addresses once, or nil
	walkIndex int
}

// groupPointers keep the place in memory that the first groups have found.
var groupPointers = []amd64.Reg{amd64.R14, amd64.R15}

// pointer is the register with the group's place, or offset after a load of it.
func (g *group) pointer(a *amd64.Assembler) amd64.Reg {
	if g.number < len(groupPointers) {
		return groupPointers[g.number]
	}
	a.Emit(amd64.MOV, amd64.Q(offset), amd64.Mem(regContext, groupOffset(g.number)+groupData))
	return offset
}

// grouped adds a load to its group. It reports false when it can be in none.
func (b *builder) grouped(x access) (load groupedLoad, ok bool) {
	if int64(x.Off) != int64(int32(x.Off)) {
		return load, false
	}
	v := b.base(x.Access)
	key := groupKey{v.lo, v.hi, max(x.Space, ir.Global), x.Size, x.N, x.Off & (x.Size*uint64(x.N) - 1)}
	for _, g := range b.groups[key] {
		rel := int64(x.Off - g.Off)
		if low, high := min(g.low, rel), max(g.high, rel); high-low <= maxSpan {
			g.low, g.high = low, high
			return groupedLoad{x, g, int32(rel)}, true
		}
	}
	if b.groupCount == maxGroups {
		return load, false
	}
	g := &group{access: x, number: b.groupCount, expect: Unknown}
	if g.number < len(b.expect) && (b.expect[g.number] != consecutive || g.transposed()) {
		g.expect = b.expect[g.number]
	}
	b.groupCount++
	b.groups[key] = append(b.groups[key], g)
	if !b.walks(g, x.exit) {
		b.add(regalloc.Inst{Uses: []id{v.lo, v.hi}, Temps: []regalloc.Class{0, 0, 0}}, 0, g.emitLook)
	}
	return groupedLoad{x, g, 0}, true
}

// emitLook finds how the addresses lie, and where in memory the lowest element of the
// first lane is, or of each lane. Where it expects one way it begins again in another
// body if that is not so. It reads low and high when all loads are known.
func (g *group) emitLook(a *amd64.Assembler, r regs) {
	if g.expect < apart {
		g.look(a, r, g.expect, g.quick.general)
		return
	}
	other, done := a.Label(), a.Label()
	looks := []Kind{equal, inside}
	if g.transposed() {
		looks = []Kind{consecutive, equal, inside}
	}
	for i, k := range looks {
		next := other
		if i+1 < len(looks) {
			next = a.Label()
		}
		g.look(a, r, k, next)
		g.found(a, k)
		a.Jump(done)
		if next != other {
			a.Bind(next)
		}
	}
	a.Bind(other)
	at := parkedOffset(g.number)
	a.Emit(amd64.VMOVDQU, amd64.Mem(regContext, at), amd64.Y(r.use[0]))
	a.Emit(amd64.VMOVDQU, amd64.Mem(regContext, at+32), amd64.Y(r.use[1]))
	g.found(a, apart)
	a.Bind(done)
}

// look goes on at no if the addresses do not lie in one way.
func (g *group) look(a *amd64.Assembler, r regs, k Kind, no amd64.Label) {
	each := g.Size * uint64(g.N)
	switch k {
	case equal:
		unless(a, r, 0, no)
		g.point(a, r, 0, no)
	case consecutive:
		unless(a, r, each, no)
		g.point(a, r, 7*each, no)
	default:
		g.locateAll(a, r, no)
	}
}

// point keeps the place of the first lane's lowest element, if all that the group
// loads is in the window; more is how far the last lane is from the first.
func (g *group) point(a *amd64.Assembler, r regs, more uint64, no amd64.Label) {
	a.Emit(amd64.VMOVQ, amd64.Q(offset), amd64.X(r.use[0]))
	if n := int64(g.Off) + g.low; n != int64(int32(n)) {
		a.Jump(no)
		return
	} else if n != 0 {
		a.Emit(amd64.ADD, amd64.Q(offset), amd64.Imm(n))
	}
	g.inside(a, g.Size*uint64(g.N)+more+uint64(g.high-g.low), no, no)
	if g.number < len(groupPointers) {
		a.Emit(amd64.MOV, amd64.Q(groupPointers[g.number]), amd64.Q(offset))
	} else {
		a.Emit(amd64.MOV, amd64.Mem(regContext, groupOffset(g.number)+groupData), amd64.Q(offset))
	}
}

func (g *group) found(a *amd64.Assembler, how Kind) {
	a.Emit(amd64.MOV, amd64.Mem(regContext, groupOffset(g.number)+groupKind).Size(8), amd64.Imm(int64(how)))
}

// groupedLoad is one load of a group.
type groupedLoad struct {
	access
	group *group
	rel   int32 // its offset from the first one's on
}

func (x *groupedLoad) emit(a *amd64.Assembler, r regs) {
	if k := x.group.expect; k < apart {
		x.load(a, r, k)
		return
	}
	several, lanes, scattered, done, out := a.Label(), a.Label(), a.Label(), a.Label(), a.Label()
	a.Emit(amd64.CMP, amd64.Mem(regContext, groupOffset(x.group.number)+groupKind).Size(8), amd64.Imm(int64(consecutive)))
	a.JumpIf(amd64.CondE, several)
	a.JumpIf(amd64.CondA, lanes)
	x.load(a, r, equal)
	a.Jump(done)
	a.Bind(several)
	if x.transposed() {
		x.load(a, r, consecutive)
	}
	a.Jump(done)
	a.Bind(lanes)
	a.Emit(amd64.CMP, amd64.Mem(regContext, groupOffset(x.group.number)+groupKind).Size(8), amd64.Imm(int64(inside)))
	a.JumpIf(amd64.CondNE, scattered)
	x.load(a, r, inside)
	a.Jump(done)
	a.Bind(scattered)
	a.Emit(amd64.MOV, amd64.D(lanesLeft), amd64.Imm(0xff))
	x.eachLane(a, r, parkedOffset(x.group.number), int32(x.Off), out)
	a.Jump(done)
	x.leave(a, out)
	a.Bind(done)
}

// load is one whose addresses lie in a way that has been looked at.
func (x *groupedLoad) load(a *amd64.Assembler, r regs, k Kind) {
	rel := x.rel - int32(x.group.low)
	if k == inside {
		x.collectParked(a, r, rel)
		return
	}
	x.at = x.group.pointer(a)
	switch {
	case k == equal:
		x.equal(a, r, rel)
	case x.N == 1:
		x.wide(a, r, rel)
	default:
		x.gathered(a, r, rel)
	}
}

// equal gives all lanes the elements at one place.
func (x *access) equal(a *amd64.Assembler, r regs, rel int32) {
	if x.Space > ir.Global && x.Size >= 4 {
		x.spread(a, r, rel)
		return
	}
	if x.at != offset || rel != 0 {
		a.Emit(amd64.LEA, amd64.Q(offset), amd64.Mem(x.at, rel))
	}
	for i := range x.N {
		x.once(a, i)
		x.broadcast(a, r, i)
	}
}

// spread gives all lanes the elements of 4 or 8 bytes at a place.
func (x *access) spread(a *amd64.Assembler, r regs, rel int32) {
	for i := range x.N {
		at := amd64.Mem(x.at, rel+int32(i)*int32(x.Size))
		if x.Size == 4 {
			a.Emit(amd64.VPBROADCASTD, amd64.Y(r.def[i]), at)
			continue
		}
		a.Emit(amd64.VPBROADCASTQ, amd64.Y(r.def[2*i]), at)
		a.Emit(amd64.VMOVDQA, amd64.Y(r.def[2*i+1]), amd64.Y(r.def[2*i]))
	}
}

// fixedParam is a load of a parameter whose place is a constant: it has no lanes.
type fixedParam struct {
	access
	place int32
}

// fixed makes one of a load.
func (b *builder) fixed(x access, o *Options) (p fixedParam, ok bool) {
	if x.Space != ir.Param || o.Constant == nil || x.Size < 4 {
		return p, false
	}
	base, ok := o.Constant(x.Base)
	n := (base + x.Off) & (1<<32 - 1)
	if !ok || n%(x.Size*uint64(x.N)) != 0 || n > math.MaxInt32/2 {
		return p, false
	}
	return fixedParam{x, int32(n)}, true
}

func (p *fixedParam) emit(a *amd64.Assembler, r regs) {
	need := int64(p.place) + int64(p.Size)*int64(p.N)
	a.Emit(amd64.CMP, amd64.Mem(regContext, p.window+windowSize).Size(8), amd64.Imm(need))
	a.JumpIf(amd64.CondB, p.quick.general)
	a.Emit(amd64.MOV, amd64.Q(offset), amd64.Mem(regContext, p.window+windowData))
	p.spread(a, r, p.place)
}
