package native

import (
	"math"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/regalloc"
)

// Loads of a quick body. Loads whose addresses differ by constants form a group, which
// examines the addresses of the lanes once: an unrolled loop has many of them.

// maxGroups is the maximum number of groups of a run.
const maxGroups = 32

// maxSpan is the maximum distance of the addresses of a group.
const maxSpan = 1 << 20

// Kind is the pattern of the addresses of a tile's lanes.
type Kind uint8

// The kinds of addresses.
const (
	equal       Kind = iota
	consecutive      // where loads of consecutive elements are supported
	inside           // all in the window, and aligned
	apart            // any other
	Unknown          // Options.Expect: any of them
)

// groupKey is what the loads of a group have in common: the vectors of their addresses,
// and the alignment.
type groupKey struct {
	lo, hi id
	space  ir.Space
	size   uint64
	n      int
	part   uint64 // of the offset, less than the alignment
}

// group is a set of loads with one key. The access of the first one has their window.
type group struct {
	access
	number    int
	expect    Kind
	low, high int64 // the least and the greatest offset, relative to the first one's
	walk      *walk // of a loop that examines the addresses once, or nil
	walkIndex int
	reg       amd64.Reg // has its address in memory, or NoReg
	base      value     // the addresses of its lanes, without the offset
	span      int64     // the greatest distance of other tiles' addresses from its own
}

// groupPointers hold the addresses in memory of the first groups.
var groupPointers = []amd64.Reg{amd64.R14, amd64.R15}

// pointer returns the register with the group's address, which is loaded to offset if
// it is in none.
func (g *group) pointer(a *amd64.Assembler) amd64.Reg {
	if g.reg != amd64.NoReg {
		return g.reg
	}
	a.Emit(amd64.MOV, amd64.Q(offset), amd64.Mem(regContext, groupOffset(g.number)+groupData))
	return offset
}

// grouped adds a load to its group. ok is false if it cannot be in one.
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
			b.warp.enter(b.tile, g, 0)
			return groupedLoad{x, g, int32(rel + b.warp.more(b.tile, g))}, true
		}
	}
	if g, more := b.sharedGroup(v); g != nil {
		b.groups[key] = append(b.groups[key], g)
		return groupedLoad{x, g, int32(int64(x.Off-g.Off) + more)}, true
	}
	if b.groupCount == maxGroups {
		return load, false
	}
	g := b.newGroup(x)
	g.base = v
	b.groups[key] = append(b.groups[key], g)
	b.warp.enter(b.tile, g, 0)
	if !b.walks(g, x.exit) {
		b.add(regalloc.Inst{Uses: []id{v.lo, v.hi}, Temps: []regalloc.Class{0, 0, 0}}, 0, g.emitMatch)
	}
	return groupedLoad{x, g, 0}, true
}

// newGroup returns a group of the current tile whose first access is x.
func (b *builder) newGroup(x access) *group {
	g := &group{access: x, number: b.groupCount, expect: Unknown, reg: amd64.NoReg}
	index, registers := g.number, groupPointers
	if b.warp != nil {
		index, registers = len(b.warp.tiles[b.tile].groups), warpPointers
	}
	if index < len(b.expect) && (b.expect[index] != consecutive || g.transposed()) {
		g.expect = b.expect[index]
	}
	if g.number < len(registers) {
		g.reg = registers[g.number]
	}
	b.groupCount++
	return g
}

// emitMatch determines the pattern of the addresses, and the address in memory of the
// lowest element of the first lane, or of each lane. Where one pattern is expected and
// not found, it falls back to another body. low and high must be final.
func (g *group) emitMatch(a *amd64.Assembler, r regs) {
	if g.expect < apart {
		g.match(a, r, g.expect, g.quick.general)
		if g.expect == consecutive && g.quick.warp != nil {
			g.prefetchNext(a)
		}
		return
	}
	if g.of == nil { // the addresses are being observed
		a.Emit(amd64.MOV, amd64.D(amd64.RAX), amd64.D(regTile))
		a.Emit(amd64.AND, amd64.D(amd64.RAX), amd64.Imm(tilesOfWarp-1))
		a.Emit(amd64.VMOVQ, amd64.Mem(regContext, firstOffset(g.number)).Index(amd64.RAX, 8), amd64.X(r.use[0]))
	}
	other, done := a.Label(), a.Label()
	patterns := []Kind{equal, inside}
	if g.transposed() {
		patterns = []Kind{consecutive, equal, inside}
	}
	for i, k := range patterns {
		next := other
		if i+1 < len(patterns) {
			next = a.Label()
		}
		g.match(a, r, k, next)
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

// match continues at no if the addresses do not have a pattern.
func (g *group) match(a *amd64.Assembler, r regs, k Kind, no amd64.Label) {
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

// point stores the address of the first lane's lowest element, if everything that the
// group loads is in the window. more is the distance of the last lane from the first.
func (g *group) point(a *amd64.Assembler, r regs, more uint64, no amd64.Label) {
	a.Emit(amd64.VMOVQ, amd64.Q(offset), amd64.X(r.use[0]))
	if n := int64(g.Off) + g.low; n != int64(int32(n)) {
		a.Jump(no)
		return
	} else if n != 0 {
		a.Emit(amd64.ADD, amd64.Q(offset), amd64.Imm(n))
	}
	g.inside(a, g.Size*uint64(g.N)+more+uint64(g.high-g.low+g.span), no, no)
	if g.reg != amd64.NoReg {
		a.Emit(amd64.MOV, amd64.Q(g.reg), amd64.Q(offset))
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
	rel   int32 // its offset relative to the first one's
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

// load emits a load whose addresses have a known pattern.
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

// equal loads the elements at one address for all lanes.
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

// spread broadcasts the elements of 4 or 8 bytes at an address to all lanes.
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

// fixedParam is a load of a parameter at a constant offset, the same for all lanes.
type fixedParam struct {
	access
	place int32
}

// fixed returns a load as a fixedParam, if it is one.
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
