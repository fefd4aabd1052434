package soft_test

import (
	"fmt"
	"strconv"
	"strings"
)

// Instructions of random programs that all threads of a block, or all lanes of its
// first warp, execute together.

// whole writes a barrier of the block, or a matrix instruction.
func (g *randProg) whole() {
	switch g.rnd.Intn(4) {
	case 0:
		g.barrier()
	case 1:
		g.exchange()
	default: // the last warp has fewer lanes
		g.labels++
		fmt.Fprintf(&g.out, "setp.gt.u32 %%c, %%thread, 31; @%%c bra W%d;\n", g.labels)
		label := g.labels
		switch g.rnd.Intn(4) {
		case 0:
			g.tiles()
		case 1:
			g.wmma()
		default:
			g.mma()
		}
		fmt.Fprintf(&g.out, "W%d:\n", label)
	}
}

// barrier writes a barrier of any kind, with a number and with or without a count.
func (g *randProg) barrier() {
	w, name := &g.out, g.one("bar", "barrier", "barrier.cta")
	number := fmt.Sprint(g.rnd.Intn(8))
	if g.rnd.Intn(4) == 0 {
		fmt.Fprintf(w, "mov.b32 %%t, %s;\n", number)
		number = "%t"
	}
	number += g.one("", ", 64")
	switch g.rnd.Intn(5) {
	case 0:
		fmt.Fprintf(w, "%s.sync %s;\n", name, number)
	case 1:
		fmt.Fprintf(w, "%s.red.popc.u32 %s, %s, %s%s;\n", name, g.reg("r"), number, g.one("", "!"), g.reg("p"))
	case 2:
		fmt.Fprintf(w, "%s.red.%s.pred %s, %s, %s%s;\n", name, g.one("and", "or"), g.reg("p"), number, g.one("", "!"), g.reg("p"))
	default: // one warp arrives, and the other waits for it; the second barrier separates iterations
		g.labels++
		fmt.Fprintf(w, "setp.%s.u32 %%c, %%thread, 32; @%%c bra WAIT%d; %s.arrive 8, 64; bra GO%d;\nWAIT%d: %s.sync 8, 64;\nGO%d: bar.sync 0;\n",
			g.one("lt", "ge"), g.labels, name, g.labels, g.labels, name, g.labels)
	}
}

// exchange writes a read of another thread's part of shared memory between two
// barriers.
func (g *randProg) exchange() {
	fmt.Fprintf(&g.out, "bar.sync 0; add.u32 %%t, %%thread, %d; mov.u32 %%pm, %%ntid.x; rem.u32 %%t, %%t, %%pm; mov.u32 %%pm, sh; mad.lo.u32 %%t, %%t, %d, %%pm;\n", 1+g.rnd.Intn(randThreads-1), randShared)
	fmt.Fprintf(&g.out, "ld.shared.b64 %s, [%%t+%d]; bar.sync 0;\n", g.reg("d"), 8*g.rnd.Intn(randShared/8))
}

// mma writes any form of mma.
func (g *randProg) mma() {
	inst := g.one(mmaInstructions()...)
	for !g.open && !strings.Contains(inst, ".s32.") && !strings.Contains(inst, ".f64.") { // the rounding of other sums is undefined
		inst = g.one(mmaInstructions()...)
	}
	f := mmaFormOf(inst)
	class := map[bool]string{true: "d", false: "r"}[f.wide()]
	fmt.Fprintf(&g.out, "%s %s, %s, %s, %s;\n", inst, g.braced(class, f.regs[0], true), g.braced(class, f.regs[1], false), g.braced(class, f.regs[2], false), g.braced(class, f.regs[3], false))
}

// braced returns a vector in braces even if it has one element.
func (g *randProg) braced(class string, n int, written bool) string {
	return "{" + strings.Trim(g.vector(class, n, written), "{}") + "}"
}

// tiles writes ldmatrix, stmatrix or movmatrix, whose rows are the lanes' parts of
// shared memory.
func (g *randProg) tiles() {
	if g.rnd.Intn(3) == 0 {
		fmt.Fprintf(&g.out, "movmatrix.sync.aligned.m8n8.trans.b16 %s, %s;\n", g.reg("r"), g.reg("r"))
		return
	}
	n := 1 << g.rnd.Intn(3)
	form := fmt.Sprintf(".sync.aligned.m8n8.x%d", n) + g.one("", ".trans")
	compute, at := g.place("shared", 16)
	form += g.spelled("shared", at) + ".b16"
	if g.rnd.Intn(2) == 0 {
		fmt.Fprintf(&g.out, "bar.warp.sync -1; %sldmatrix%s %s, %s;\nbar.warp.sync -1;\n", compute, form, g.braced("r", n, true), at)
		return
	}
	fmt.Fprintf(&g.out, "bar.warp.sync -1; %sstmatrix%s %s, %s;\nbar.warp.sync -1;\n", compute, form, at, g.braced("r", n, false))
}

// wmma writes loads of matrices from the first warp's shared memory, and a store of a
// product there. The layout of fragments is undefined, so they have registers of their
// own.
func (g *randProg) wmma() {
	c := wmmaCases[g.rnd.Intn(len(wmmaCases))]
	for !g.open && !strings.HasPrefix(c.types, "s32.") && !strings.HasPrefix(c.types, "f64.") {
		c = wmmaCases[g.rnd.Intn(len(wmmaCases))]
	}
	shape := g.one(strings.Fields(c.shapes)...)
	layouts := strings.Split(g.one("row.col", "col.row", "row.row", "col.col"), ".")
	types := wmmaTypes(c.types)
	if elementBits[types[1]] < 8 {
		layouts = []string{"row", "col"}
	}
	s := shapePattern.FindStringSubmatch(shape)
	m, _ := strconv.Atoi(s[1])
	n, _ := strconv.Atoi(s[2])
	k, _ := strconv.Atoi(s[3])
	regs := wmmaRegisters(shape, types)
	w := &g.out
	at := func(elements int, typ string) string {
		size := elements * elementBits[typ] / 8
		return fmt.Sprintf("[sh+%d]", 32*g.rnd.Intn((32*randShared-size)/32+1))
	}
	reg := map[bool]string{true: "f64", false: "b32"}[types[1] == "f64"]
	fmt.Fprintf(w, "{ .reg .%s %%wd<8>, %%wa<8>, %%wb<8>, %%wc<8>; bar.warp.sync -1;\n", reg)
	fmt.Fprintf(w, "wmma.load.a.sync.aligned.%s.%s.shared.%s %s, %s;\n", layouts[0], shape, types[1], list("wa", regs[1]), at(m*k, types[1]))
	fmt.Fprintf(w, "wmma.load.b.sync.aligned.%s.%s.shared.%s %s, %s;\n", layouts[1], shape, types[2], list("wb", regs[2]), at(k*n, types[2]))
	fmt.Fprintf(w, "wmma.load.c.sync.aligned.%s.%s.shared.%s %s, %s;\n", g.one("row", "col"), shape, types[3], list("wc", regs[3]), at(m*n, types[3]))
	op := map[bool]string{true: g.one(".xor.popc", ".and.popc")}[types[1] == "b1"]
	round := map[bool]string{true: g.one(".rn", ".rz", ".rm", ".rp")}[types[1] == "f64"]
	fmt.Fprintf(w, "wmma.mma%s.sync.aligned.%s.%s.%s%s %s, %s, %s, %s;\n", op, strings.Join(layouts, "."), shape, c.types, round,
		list("wd", regs[0]), list("wa", regs[1]), list("wb", regs[2]), list("wc", regs[3]))
	fmt.Fprintf(w, "bar.warp.sync -1; wmma.store.d.sync.aligned.%s.%s.shared.%s %s, %s; bar.warp.sync -1; }\n", g.one("row", "col"), shape, types[0], at(m*n, types[0]), list("wd", regs[0]))
}
