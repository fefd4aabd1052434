package soft_test

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/exec"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// Random programs of what machine code computes once for a warp (native, Steady):
// registers that are computed from special registers, parameters and constants,
// everywhere and at several places, up to where they wrap around; loads and stores at
// such addresses, of lanes with consecutive addresses and with one, that overlap and
// that do not; branches on such predicates, on which lanes agree or not; barriers,
// shuffles, arms and loops, in which registers that machine code has deferred are read;
// and blocks of threads whose warps are rows of threads, of one dimension and of two,
// and others.

// steadyShapes are the shapes of blocks of threads.
var steadyShapes = [][2]uint32{{96, 1}, {32, 3}, {64, 2}, {16, 6}, {104, 1}, {48, 2}, {32, 4}}

// Bytes of memory of each warp, and registers and bytes of output of each thread.
const (
	steadyArea = 1024
	steadyRegs = 6
	steadyOut  = 8 * steadyRegs
)

// randSteady writes such programs.
type randSteady struct {
	rnd    *rand.Rand
	out    strings.Builder
	shape  [2]uint32
	step   bool // lanes may access memory that others write: only the engines agree on the result
	wild   bool // some access is outside of all memory
	ends   bool // only where n is odd, so that there is machine code by then; and warps may access memory of others then
	labels int
	n      map[string]int      // number of registers, by class
	have   map[string][]string // registers that have been computed, by class
}

func newRandSteady(seed int64) *randSteady {
	g := &randSteady{rnd: rand.New(rand.NewSource(seed)), n: map[string]int{}, have: map[string][]string{}}
	g.shape = steadyShapes[g.rnd.Intn(len(steadyShapes))]
	g.step = g.warps() && seed%2 == 0
	g.wild = g.rnd.Intn(12) == 0
	g.ends = g.wild && g.rnd.Intn(2) == 0
	return g
}

// warps reports whether all warps are whole.
func (g *randSteady) warps() bool { return g.shape[0]*g.shape[1]%32 == 0 }

// rows reports whether warps are rows of threads.
func (g *randSteady) rows() bool { return g.shape[0]%32 == 0 }

func (g *randSteady) one(list ...string) string { return list[g.rnd.Intn(len(list))] }

// some returns a register that has been computed.
func (g *randSteady) some(class string) string { return g.one(g.have[class]...) }

// fresh returns a new register, which later instructions may read.
func (g *randSteady) fresh(class string) string {
	r := fmt.Sprintf("%%%s%d", class, g.n[class])
	g.n[class]++
	return r
}

func (g *randSteady) f(format string, args ...any) { fmt.Fprintf(&g.out, format, args...) }

// data returns a register whose value depends on memory.
func (g *randSteady) data() string { return fmt.Sprintf("%%r%d", g.rnd.Intn(steadyRegs)) }

// program returns the whole program.
func (g *randSteady) program() string {
	g.f("mov.u32 %%s0, %%tid.x; mov.u32 %%s1, %%tid.y; mov.u32 %%s2, %%ntid.x; mov.u32 %%s3, %%ctaid.x; mov.u32 %%s4, %%laneid; ld.param.u32 %%s5, [n];\n")
	g.f("mul.wide.u32 %%w2, %%s0, 12;\n")
	g.f("mad.lo.u32 %%s6, %%s1, 5, %%s3; setp.lt.u32 %%q1, %%s1, 1;\n") // depend on the row only
	g.n["s"], g.n["w"] = 7, 3
	g.have["s"] = []string{"%s0", "%s1", "%s2", "%s3", "%s4", "%s5", "%s0", "%s4", "%s6", "%s6"}
	g.f("mad.lo.u32 %%lin, %%s1, %%s2, %%s0; mad.lo.u32 %%all, %%s3, %d, %%lin;\n", g.shape[0]*g.shape[1])
	g.f("ld.param.u64 %%w0, [regs]; ld.param.u64 %%w1, [scratch]; mad.wide.u32 %%base, %%all, %d, %%w0;\n", steadyOut)
	if g.rows() {
		g.f("shr.u32 %%wx, %%s0, 5; shr.u32 %%nx, %%s2, 5; mad.lo.u32 %%warp, %%s1, %%nx, %%wx; and.b32 %%lane, %%s0, 31;\n")
	} else {
		g.f("shr.u32 %%warp, %%lin, 5; mov.u32 %%lane, %%s4;\n")
	}
	g.f("mad.lo.u32 %%aw, %%s3, %d, %%warp; mad.wide.u32 %%area, %%aw, %d, %%w1;\n", (g.shape[0]*g.shape[1]+31)/32, steadyArea)
	g.f("mov.u32 %%sa, sh; mad.lo.u32 %%sarea, %%warp, %d, %%sa; setp.lt.u32 %%q0, %%s0, 40;\n", steadyArea)
	g.n["q"], g.have["q"], g.have["w"] = 2, []string{"%q0", "%q1"}, []string{"%w2"}
	for i := range steadyRegs {
		g.f("ld.global.u32 %%r%d, [%%base+%d];\n", i, 8*i)
	}
	for _, st := range []string{"1 st.shared.u8 0 %r0", "2 st.shared.u16 64 %r1", "4 st.shared.u32 128 %r2", "8 st.shared.v2.b32 256 {%r3, %r4}", "16 st.shared.v4.b32 512 {%r0, %r1, %r2, %r5}"} {
		x := strings.SplitN(st, " ", 4) // per lane
		g.f("mad.lo.u32 %%t, %%lane, %s, %%sarea; %s [%%t+%s], %s;\n", x[0], x[1], x[2], x[3])
	}
	if g.step { // and the bytes between them
		for _, at := range []int{0, 128, 384, 512} {
			g.f("mad.lo.u32 %%t, %%lane, 4, %%sarea; st.shared.u32 [%%t+%d], %s;\n", at, g.data())
		}
	}
	g.body(3, 10+g.rnd.Intn(14))
	for i := range steadyRegs {
		g.f("st.global.u32 [%%base+%d], %%r%d;\n", 8*i, i)
	}
	var w strings.Builder
	w.WriteString(ptxHead + randTable + ".entry k(.param .u64 regs, .param .u64 scratch, .param .u32 n) {\n.shared .align 128 .b8 sh[8192];\n")
	w.WriteString(".reg .b32 %k0, %k1, %k2, %k3; .reg .b64 %ka, %kp, %kw; .reg .b32 %t, %lin, %all, %warp, %lane, %aw, %sa, %sarea, %wx, %nx, %m0, %m1, %m2, %m3; .reg .b64 %base, %area, %x; .reg .pred %c;\n")
	fmt.Fprintf(&w, ".reg .b32 %%s<%d>; .reg .b64 %%w<%d>; .reg .pred %%q<%d>; .reg .b32 %%r<%d>; .reg .b64 %%e<4>;\n", g.n["s"], g.n["w"], g.n["q"], steadyRegs)
	return w.String() + "mov.b64 %e0, 1; mov.b64 %e1, 2; mov.b64 %e2, 3; mov.b64 %e3, 4;\n" + g.out.String() + "ret;\n}\n"
}

func (g *randSteady) body(depth, n int) {
	for range n {
		switch k := g.rnd.Intn(30); {
		case k < 6:
			g.define()
		case k < 9:
			g.use()
		case k < 11 && depth > 0:
			g.junction(depth)
		case k < 12 && depth > 0:
			g.loop(depth)
		case k == 12 && depth == 3 && g.warps():
			g.together()
		case k == 13 && depth == 3:
			g.f("%s;\n", g.one("bar.sync 0", "bar.sync 0", "bar.red.popc.u32 "+g.data()+", 0, "+g.some("q")))
		case k == 14: // not compiled, or left by lanes
			g.f("ld.volatile.global.u32 %%t, [%%base];\n")
		case k < 18:
			for range 1 + g.rnd.Intn(4) {
				g.access(depth)
			}
		case k < 20:
			g.edge()
		case k < 22:
			g.walk()
		default:
			g.f("%s %s, %s, %s;\n", g.one("add.u32", "add.f32", "mul.f32", "xor.b32", "sub.u32", "min.s32"), g.data(), g.data(), g.data())
		}
	}
}

// together writes an instruction that all lanes of a warp execute.
func (g *randSteady) together() {
	switch g.rnd.Intn(3) {
	case 0:
		g.f("vote.sync.ballot.b32 %s, %s, -1;\n", g.data(), g.some("q"))
	default:
		g.f("shfl.sync.%s.b32 %s, %s, %d, %d, -1;\n", g.one("up", "down", "bfly"), g.data(), g.one(g.data(), g.some("s")), 1<<g.rnd.Intn(5), []int{0, 31}[g.rnd.Intn(2)])
	}
}

// edge writes a comparison whose result changes within a warp, or would change without
// wrapping around.
func (g *randSteady) edge() {
	a, b, p := g.fresh("s"), g.fresh("s"), g.fresh("q")
	from := g.one("%s0", "%s4", "%lane", g.some("s"))
	at := []uint32{0, 1 << 31}[g.rnd.Intn(2)] - uint32(g.rnd.Intn(70))
	if g.rnd.Intn(3) == 0 {
		at = uint32(g.rnd.Intn(40))
	}
	g.f("%s.u32 %s, %s, %d; ", g.one("add", "add", "sub"), a, from, at)
	switch g.rnd.Intn(4) {
	case 0:
		g.f("%s.%s %s, %s, %s; ", g.one("min", "max"), g.one("u32", "s32"), b, a, g.operand())
		a = b
	case 1: // with one that decreases, or that increases faster
		g.f("mad.lo.u32 %s, %s, %s, %d; setp.%s.%s %s, %s, %s;\n", b, from, g.one("2", "3", "-1"), g.rnd.Intn(64), g.one("eq", "ne", "lt", "ge"), g.one("u32", "s32"), p, a, b)
		a = ""
	}
	if a != "" {
		with := g.one(fmt.Sprint(at+uint32(g.rnd.Intn(40))), fmt.Sprint(g.rnd.Intn(40)), "%s3", g.operand())
		g.f("setp.%s.%s %s, %s, %s;\n", g.one("eq", "ne", "lt", "le", "gt", "ge"), g.one("u32", "s32"), p, a, with)
	}
	g.labels++
	g.f("@%s%s bra G%d; add.u32 %s, %s, %d;\nG%d:\n", g.one("", "!"), p, g.labels, g.data(), g.data(), 1+g.rnd.Intn(9), g.labels)
	g.have["q"] = append(g.have["q"], p)
}

// constant returns a number, often a small one.
func (g *randSteady) constant() string {
	return g.one("1", "4", "31", "32", "7", "0x7fffffff", "0xffffffff", "0x80000000", "0xffffffe0", fmt.Sprint(g.rnd.Intn(256)))
}

// operand returns a register of 32 bits or a constant.
func (g *randSteady) operand() string {
	if g.rnd.Intn(3) == 0 {
		return g.constant()
	}
	return g.some("s")
}

// define writes the computation of a register.
func (g *randSteady) define() {
	class := g.one("s", "s", "w", "q")
	r := g.fresh(class)
	g.f("%s", g.definition(class, r))
	g.have[class] = append(g.have[class], r)
}

// definition returns an instruction that computes a register.
func (g *randSteady) definition(class, r string) string {
	s, w, q := func() string { return g.some("s") }, func() string { return g.some("w") }, func() string { return g.some("q") }
	switch class {
	case "q":
		if g.rnd.Intn(3) == 0 {
			return fmt.Sprintf(g.one("not.pred %s, %s;\n", "mov.pred %s, %s;\n"), r, q())
		} else if g.rnd.Intn(2) == 0 {
			return fmt.Sprintf("%s.pred %s, %s, %s;\n", g.one("and", "or"), r, q(), q())
		}
		return fmt.Sprintf("setp.%s.%s %s, %s, %s;\n", g.one("eq", "ne", "lt", "le", "gt", "ge"), g.one("u32", "s32"), r, s(), g.operand())
	case "w":
		switch g.rnd.Intn(5) {
		case 0:
			return fmt.Sprintf("%s %s, %s;\n", g.one("cvt.u64.u32", "cvt.s64.s32"), r, s())
		case 1:
			return fmt.Sprintf("mad.wide.%s %s, %s, %s, %s;\n", g.one("u32", "s32"), r, s(), g.operand(), w())
		case 2:
			return fmt.Sprintf("%s.%s %s, %s, %s;\n", g.one("add", "sub"), g.one("u64", "s64"), r, w(), w())
		case 3:
			return fmt.Sprintf("shl.b64 %s, %s, %d;\n", r, w(), g.rnd.Intn(6))
		}
		return fmt.Sprintf("mul.wide.%s %s, %s, %s;\n", g.one("u32", "s32"), r, s(), g.operand())
	}
	switch g.rnd.Intn(9) {
	case 0:
		return fmt.Sprintf("cvt.u32.u64 %s, %s;\n", r, w())
	case 1:
		return fmt.Sprintf("mad.lo.%s %s, %s, %s, %s;\n", g.one("u32", "s32"), r, s(), g.operand(), s())
	case 2:
		return fmt.Sprintf("mul.lo.u32 %s, %s, %s;\n", r, s(), g.operand())
	case 3:
		return fmt.Sprintf("%s.b32 %s, %s, %d;\n", g.one("shl", "shr"), r, s(), g.rnd.Intn(8))
	case 4:
		return fmt.Sprintf("%s.b32 %s, %s, %s;\n", g.one("and", "or"), r, s(), g.operand())
	case 5:
		return fmt.Sprintf("%s.%s %s, %s, %s;\n", g.one("min", "max"), g.one("u32", "s32"), r, s(), g.operand())
	}
	return fmt.Sprintf("%s.u32 %s, %s, %s;\n", g.one("add", "sub"), r, s(), g.operand())
}

// use combines a register into a result that is stored at the end.
func (g *randSteady) use() {
	r := g.data()
	switch g.rnd.Intn(4) {
	case 0:
		g.f("cvt.u32.u64 %%t, %s; xor.b32 %s, %s, %%t;\n", g.some("w"), r, r)
	case 1:
		g.f("selp.b32 %s, %s, %s, %s;\n", r, g.data(), r, g.some("q"))
	case 2:
		g.f("@%s%s add.u32 %s, %s, %s;\n", g.one("", "!"), g.some("q"), r, r, g.some("s"))
	default:
		g.f("add.u32 %s, %s, %s;\n", r, r, g.some("s"))
	}
}

// inside writes statements whose registers are not read afterwards.
func (g *randSteady) inside(depth, n int) {
	before := map[string][]string{}
	for class, list := range g.have {
		before[class] = slices.Clip(list)
	}
	g.body(depth, n)
	g.have = before
}

// decide returns the guard of a branch.
func (g *randSteady) decide() string {
	if g.rnd.Intn(4) == 0 {
		g.f("setp.lt.s32 %%c, %s, 0;\n", g.data())
		return g.one("@%c", "@!%c")
	}
	return g.one("@", "@!") + g.some("q")
}

// junction writes an if, with an else or without. Both arms may compute one register
// with the same instruction.
func (g *randSteady) junction(depth int) {
	g.labels++
	l := g.labels
	class, both := g.one("s", "w"), ""
	r := ""
	if g.rnd.Intn(2) == 0 {
		r = g.fresh(class)
		both = g.definition(class, r)
	}
	g.f("%s bra E%d;\n%s", g.decide(), l, both)
	g.inside(depth-1, g.rnd.Intn(4))
	g.f("bra D%d;\nE%d:\n%s", l, l, both)
	if g.rnd.Intn(2) == 0 {
		g.inside(depth-1, g.rnd.Intn(4))
	}
	g.f("D%d:\n", l)
	if r != "" {
		g.have[class] = append(g.have[class], r)
	}
}

// loop writes a loop of a few turns, the same number in all lanes or not.
func (g *randSteady) loop(depth int) {
	g.labels++
	l, m := g.labels, fmt.Sprintf("%%m%d", depth)
	g.f("and.b32 %s, %s, 3;\nL%d:\n", m, g.one("%warp", "%s3", "%lane", g.data()), l)
	g.inside(depth-1, 1+g.rnd.Intn(4))
	g.f("sub.s32 %s, %s, 1; setp.ge.s32 %%c, %s, 0; @%%c bra L%d;\n", m, m, m, l)
}

// walk writes a loop that loads at addresses that increase by one step from turn to
// turn, the same in all lanes or not, from the table, which is not written. Where lanes
// execute different numbers of turns, those of a warp enter it again with different
// indices.
func (g *randSteady) walk() {
	g.labels++
	l, most := g.labels, randTableWords-16
	from := g.one("%s0", "%s4", "%lane", "%lane", g.some("s"), g.data())
	scale, pointer := []int{4, 4, 4, 8}[g.rnd.Intn(4)], g.rnd.Intn(3) == 0
	first := []int{7, 31, 0}[g.rnd.Intn(3)]
	if scale == 8 {
		first, most = min(first, 7), 20
	}
	g.f("and.b32 %%k0, %s, %d; ", from, first)
	g.f("and.b32 %%k1, %s, 3; add.u32 %%k1, %%k1, 1; mov.u64 %%kp, tab;\n", g.one("%s3", "%s3", "%s5", "%warp", "%warp", "%lane", g.data()))
	kind := g.one("u32", "s32")
	if kind == "s32" { // starting with negative numbers
		g.f("sub.u32 %%k0, %%k0, 8; add.u64 %%kp, %%kp, %d;\n", 8*scale)
		most -= 8
	}
	if g.wild && !g.ends && g.rnd.Intn(2) == 0 {
		most = 1 << 20
	}
	if pointer {
		g.f("mad.wide.%s %%ka, %%k0, %d, %%kp; mul.wide.u32 %%kw, %%k1, %d;\n", kind, scale, scale)
	}
	g.f("W%d:\n", l)
	if !pointer {
		g.f("mul.wide.%s %%kw, %%k0, %d; add.s64 %%ka, %%kp, %%kw;\n", kind, scale)
	}
	off := 4 * g.rnd.Intn(4)
	for i := range []int{1, 1, 4, 5}[g.rnd.Intn(4)] {
		g.f("ld.global.u32 %%k2, [%%ka+%d]; %s %s, %s, %%k2;\n", off+4*i, g.one("xor.b32", "add.u32", "add.f32"), g.data(), g.data())
	}
	g.f("add.u32 %%k0, %%k0, %%k1; ")
	if pointer {
		g.f("add.s64 %%ka, %%ka, %%kw; ")
	}
	g.f("setp.lt.s32 %%c, %%k0, %d; @%%c bra W%d;\n", most, l)
}

// steadyPlace describes where the lanes of an access have their memory in that of the
// warp: scale bytes apart, from one of the given offsets on.
type steadyPlace struct {
	size, scale, first, slots int
}

// steadyPlaces are where lanes have memory of their own, by size. Those of 16 bytes are
// also used in parts.
var steadyPlaces = map[int]int{1: 0, 2: 64, 4: 128, 8: 256, 16: 512}

// place returns where lanes access memory. They may access that of others if alone is
// not set, and all the same if one is set.
func (g *randSteady) place(alone, one bool) steadyPlace {
	size := []int{1, 2, 4, 4, 4, 8, 8, 16}[g.rnd.Intn(8)]
	p := steadyPlace{size, size, steadyPlaces[size], 1}
	if size < 16 && g.rnd.Intn(3) == 0 {
		p = steadyPlace{size, 16, steadyPlaces[16], 16 / size}
	}
	if alone {
		return p
	}
	switch k := g.rnd.Intn(6); {
	case k < 2 && one:
		p.scale = 0
	case k == 2:
		p.scale = size * (1 + g.rnd.Intn(min(6, 32/size)))
	}
	p.first, p.slots = 0, (steadyArea-31*p.scale-size)/size+1
	return p
}

// offset returns one of the offsets of a place, often one of the first.
func (g *randSteady) offset(p steadyPlace) int {
	slots := p.slots
	if g.rnd.Intn(2) == 0 {
		slots = min(slots, 8)
	}
	return p.first + p.size*g.rnd.Intn(slots)
}

// block begins a basic block.
func (g *randSteady) block() {
	g.labels++
	g.f("bra B%d;\nB%d:\n", g.labels, g.labels)
}

// access writes loads and stores in the warp's memory, relative to one register.
func (g *randSteady) access(depth int) {
	store := g.rnd.Intn(2) == 0
	if store && g.step && depth < 3 { // the order of arms is undefined
		return
	}
	p := g.place(!g.step || depth < 3, !store)
	space, reg := "global", g.fresh("w")
	if g.rnd.Intn(3) == 0 {
		space = "shared"
	}
	if space == "global" {
		g.f("mad.wide.u32 %s, %%lane, %d, %%area;\n", reg, p.scale)
	} else {
		at := g.fresh("s")
		g.f("mad.lo.u32 %s, %%lane, %d, %%sarea;\n", at, p.scale)
		if g.rnd.Intn(2) == 0 {
			g.f("cvt.u64.u32 %s, %s;\n", reg, at)
		} else {
			reg = at
		}
	}
	if g.wild && depth == 3 && g.rnd.Intn(3) == 0 && space == "global" {
		to := g.fresh("w")
		k := uint32(g.rnd.Intn(70))
		switch {
		case g.ends: // around the end of the warp's memory, and in the last warp of all memory
			odd, more := g.fresh("s"), g.fresh("w")
			g.f("and.b32 %s, %%s5, 1; mul.wide.u32 %s, %s, %d; ", odd, more, odd, steadyArea-31*p.scale-p.first-p.size*(1+g.rnd.Intn(min(p.slots, 16))))
			g.f("add.u64 %s, %s, %s;\n", to, reg, more)
		case g.rnd.Intn(2) == 0: // where an index wraps around
			i, at := g.fresh("s"), g.fresh("w")
			g.f("sub.u32 %s, %%lane, %d; mad.wide.u32 %s, %s, %d, %%area; add.u64 %s, %s, %d;\n", i, k, at, i, p.size, to, at, int64(k)*int64(p.size))
		default:
			g.f("add.u64 %s, %s, %s;\n", to, reg, g.one("0x100000000000", "-4096", "0x40000000", "-1024"))
		}
		reg = to
	}
	alone := g.rnd.Intn(2) == 0
	if alone {
		g.block()
	}
	g.accessAt(p, space, reg, store)
	for range g.rnd.Intn(5) {
		g.accessAt(p, space, reg, store && g.rnd.Intn(2) == 0)
	}
	if alone {
		g.block()
	}
}

// accessAt writes a load or a store at one of the offsets of a place.
func (g *randSteady) accessAt(p steadyPlace, space, reg string, store bool) {
	e, r := func() string { return fmt.Sprintf("%%e%d", g.rnd.Intn(4)) }, g.data
	forms := map[int][]string{
		1: {"u8 " + r(), "s8 " + r()}, 2: {"u16 " + r(), "s16 " + r()}, 4: {"u32 " + r(), "f32 " + r()}, 8: {"b64 " + e(), "v2.b32 {%r0, %r1}", "v2.b32 {%r4, %r3}"},
		16: {"v4.b32 {%r0, %r1, %r2, %r3}", "v2.b64 {%e0, %e1}", "v2.b64 {%e3, %e1}"},
	}
	t, to, _ := strings.Cut(g.one(forms[p.size]...), " ")
	if store {
		g.f("st.%s.%s [%s+%d], %s;\n", space, t, reg, g.offset(p), to)
	} else {
		g.f("ld.%s.%s %s, [%s+%d];\n", space, t, to, reg, g.offset(p))
	}
	if g.rnd.Intn(2) == 0 {
		g.f("cvt.u32.u64 %%t, %s; xor.b32 %%r5, %%r5, %%t;\n", e())
	}
}

// FuzzSteady compares interpreter and machine code, and both with the oracle where no
// lane accesses memory that others write.
func FuzzSteady(f *testing.F) {
	n := int64(24)
	if testing.Short() {
		n = 6
	}
	for seed := range n {
		f.Add(seed)
	}
	f.Add(int64(5000)) // compares the minimum of signed numbers as unsigned
	engines := randEngines(f, exec.Interpreted, exec.Compiled)
	f.Fuzz(func(t *testing.T, seed int64) {
		if card(t) != nil {
			t.Skip("the order of a warp's lanes is undefined")
		}
		g := newRandSteady(seed)
		steadyAgree(t, engines, g, g.program(), seed)
	})
}

// steadyRounds is the number of times that a program is executed, as its code is
// compiled in two steps, and steadyBlocks the number of blocks of threads each time.
const steadyRounds, steadyBlocks = 3, 4

// steadyAgree executes a program on engines, and on the oracle, and compares the
// results.
func steadyAgree(t *testing.T, engines []worker.Driver, g *randSteady, src string, seed int64) {
	t.Helper()
	threads := int(g.shape[0] * g.shape[1])
	var rigs []*rig
	for _, d := range engines {
		rigs = append(rigs, loadRandom(t, d, src))
	}
	for round := range int64(steadyRounds) {
		rnd := rand.New(rand.NewSource(seed + round))
		regs, scratch := make([]byte, steadyBlocks*threads*steadyOut), make([]byte, steadyBlocks*((threads+31)/32)*steadyArea)
		rnd.Read(regs)
		rnd.Read(scratch)
		n := []uint32{0, 1, 31, 100, 1 << 31, ^uint32(0)}[rnd.Intn(6)]
		want, failed := g.onOracle(t, src, regs, scratch, n), ""
		for i, r := range rigs {
			got, err := g.on(r, regs, scratch, n)
			kind := ""
			if err != nil {
				kind, _, _ = strings.Cut(err.Error(), ":") // which lane fails first is undefined
			}
			switch {
			case kind != "" && !g.wild || i > 0 && failed != kind:
				t.Fatalf("seed %d, round %d, engine %d: kernel error = %v, want the kind %q as the engine before\n%s", seed, round, i, err, failed, src)
			case kind != "":
				failed = kind
			case g.ends && n%2 == 1: // the order of warps is undefined
				continue
			case want == nil:
				want = got
			}
			if at := firstDifference(got, want[:min(len(got), len(want))]); at >= 0 {
				t.Fatalf("seed %d, round %d, engine %d, shape %v, thread %d, register %d, or byte %d of memory = %x, want %x\n%s",
					seed, round, i, g.shape, at/steadyOut, at%steadyOut/8, at-len(regs), got[at:at+8], want[at:at+8], src)
			}
		}
		if failed != "" { // the context has failed
			return
		}
	}
}

// onOracle executes the program on the oracle, or returns nil if the results may
// differ.
func (g *randSteady) onOracle(t *testing.T, src string, regs, scratch []byte, n uint32) []byte {
	t.Helper()
	if g.step || g.wild {
		return nil
	}
	r, s := bytes.Clone(regs), bytes.Clone(scratch)
	oracleRun(t, src, "k", [3]uint32{steadyBlocks, 1, 1}, [3]uint32{g.shape[0], g.shape[1], 1}, 0, pack(uint64(1<<40), uint64(2<<40), n), oracleMemory{1 << 40: r, 2 << 40: s})
	return append(r, s...)
}

// on executes the program that a rig has loaded.
func (g *randSteady) on(r *rig, regs, scratch []byte, n uint32) ([]byte, error) {
	r.Helper()
	a, b := r.buffer(regs), r.buffer(scratch)
	r.launch("k", [3]uint32{steadyBlocks, 1, 1}, [3]uint32{g.shape[0], g.shape[1], 1}, 0, a, b, n)
	got, err := r.read(a, len(regs))
	if err != nil {
		return nil, err
	}
	more, err := r.read(b, len(scratch))
	return append(got, more...), err
}
