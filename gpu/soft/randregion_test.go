package soft_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/exec"
	"github.com/basalt-gpu/basalt/gpu/soft/native"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// Random programs whose warps branch from block to block in machine code: branches on
// which all lanes of a warp agree and others, one after another with nothing between
// them, on predicates that blocks pass on; arms that join again and some that do not;
// loops with several exits, which warps or lanes leave at different times and which
// last longer than a call; shuffles of whole warps, barriers, instructions that are not
// compiled, loads from another allocation, and blocks of threads that are not whole
// warps.
//
// Several blocks of threads run one after another: in the first one, each access to
// device memory leaves machine code, as it has no allocation yet.

// regionThreads are the numbers of threads of a block: three warps, or these and part
// of one.
var regionThreads = []int{96, 104}

// regionBlocks is the number of blocks.
const regionBlocks = 4

// regionKeys are the operations with machine code that programs have most often;
// nativeKeys are all of them.
var regionKeys, nativeKeys = func() (often, all []string) {
	for _, k := range randKeys {
		if native.Makes(ops.Operation{Name: k}) && !approximate(k) {
			all = append(all, k)
		}
	}
	often = slices.DeleteFunc(slices.Clone(all), func(k string) bool {
		of := func(list ...string) bool {
			return slices.ContainsFunc(list, func(p string) bool { return strings.HasPrefix(k, p) })
		}
		return !of("add.", "sub.", "mul.lo.u32", "mad.lo.u32", "and.b", "or.b", "xor.b", "min.u32", "min.s32", "max.s32", "fma.rn.f32", "setp.lt.u32", "setp.ge.s32") ||
			strings.Contains(k, ".r")
	})
	return often, all
}()

// FuzzRegions compares interpreter and machine code with the oracle where warps stay in
// machine code. Each program is executed with three sets of data, as its code is
// compiled in two steps.
func FuzzRegions(f *testing.F) {
	n := int64(21)
	if testing.Short() {
		n = 6
	}
	for seed := range n {
		f.Add(seed)
	}
	engines := randEngines(f, exec.Interpreted, exec.Compiled)
	f.Fuzz(func(t *testing.T, seed int64) {
		src, threads := randomRegions(seed)
		differOf(t, engines, regionBlocks, threads, src, seed, seed+1, seed+2)
	})
}

// randomRegions returns the program of a seed, and its number of threads per block.
func randomRegions(seed int64) (src string, threads int) {
	g := &randProg{rnd: rand.New(rand.NewSource(seed)), blocks: regionBlocks}
	g.threads = regionThreads[g.rnd.Intn(2)]
	g.stripe = []int{0, 1, 2, 4, 4, 8, 16}[g.rnd.Intn(7)]
	src = g.program(func() {
		for range 3 {
			g.agree()
		}
		g.paths(randDepth, 6+g.rnd.Intn(10), g.threads%32 == 0)
	})
	return src, g.threads
}

// paths writes statements. whole means that all lanes of all warps execute them.
func (g *randProg) paths(depth, n int, whole bool) {
	w, top := &g.out, depth == randDepth
	for range n {
		switch k := g.rnd.Intn(24); {
		case k < 4 && depth > 0:
			g.junction(depth)
		case k < 6 && depth > 0:
			g.rounds(depth)
		case k < 8 && depth > 0:
			g.exits(depth)
		case k == 8:
			g.agree()
		case k == 9 && top && whole:
			fmt.Fprintf(w, "shfl.sync.%s.b32 %s|%s, %s, %d, %d, -1;\n", g.one("up", "down", "bfly", "idx"), g.reg("r"), g.reg("p"), g.reg("r"), g.rnd.Intn(32), g.rnd.Intn(32)|g.rnd.Intn(32)<<8)
		case k == 10 && top:
			w.WriteString("bar.sync 0;\n")
		case k == 11 && top: // not in a region
			fmt.Fprintf(w, "ld.volatile.global.u8 %s, [%%mem];\n", g.reg("r"))
		case k < 18:
			g.regionAccess()
		case k < 20:
			w.WriteString(g.guard() + g.half() + ";\n")
		case k < 22:
			w.WriteString(g.guard() + g.tabled(g.one(nativeKeys...)) + ";\n")
		default:
			w.WriteString(g.guard() + g.tabled(g.one(regionKeys...)) + ";\n")
		}
	}
}

// half returns arithmetic on halves, or an instruction that packs or unpacks them.
func (g *randProg) half() string {
	h, r := func() string { return g.reg("h") }, func() string { return g.reg("r") }
	switch g.rnd.Intn(8) {
	case 0:
		return fmt.Sprintf("cvt.f32.f16 %s, %s", r(), h())
	case 1:
		return fmt.Sprintf("cvt.rn.f16.f32 %s, %s", h(), r())
	case 2:
		return fmt.Sprintf("mov.b32 %s, {%s, %s}", r(), h(), h())
	case 3:
		i := g.rnd.Intn(randH - 1)
		return fmt.Sprintf("mov.b32 {%%h%d, %%h%d}, %s", i, i+1, r())
	case 4:
		return fmt.Sprintf("%s.f16x2 %s, %s, %s", g.one("add", "sub", "mul"), r(), r(), r())
	case 5:
		return fmt.Sprintf("fma.rn.%s", g.one(fmt.Sprintf("f16 %s, %s, %s, %s", h(), h(), h(), h()), fmt.Sprintf("f16x2 %s, %s, %s, %s", r(), r(), r(), r())))
	case 6:
		return fmt.Sprintf("selp.b16 %s, %s, %s, %s", h(), h(), h(), g.reg("p"))
	}
	return fmt.Sprintf("%s.f16 %s, %s, %s", g.one("add", "sub", "mul"), h(), h(), h())
}

// agree sets a predicate to a value on which the lanes of a warp agree, or most of
// them.
func (g *randProg) agree() {
	w, p := &g.out, g.reg("p")
	switch g.rnd.Intn(6) {
	case 0:
		fmt.Fprintf(w, "and.b32 %%t, %%thread, %d; setp.%s.u32 %s, %%t, 0;\n", 32<<g.rnd.Intn(3), g.one("eq", "ne"), p)
	case 1: // all, or none
		fmt.Fprintf(w, "setp.%s.u32 %s, %%thread, 4096;\n", g.one("lt", "ge"), p)
	case 2: // by block
		fmt.Fprintf(w, "mov.u32 %%t, %%ctaid.x; setp.lt.u32 %s, %%t, %d;\n", p, g.rnd.Intn(regionBlocks))
	case 3: // part of one warp
		fmt.Fprintf(w, "setp.lt.u32 %s, %%thread, %d;\n", p, g.rnd.Intn(regionThreads[0]))
	default: // by warp, from loaded values
		fmt.Fprintf(w, "shr.u32 %%t, %%thread, 5; mul.wide.u32 %%wide, %%t, 4; mov.u64 %%at, tab; add.u64 %%wide, %%wide, %%at; ld.global.u32 %%t, [%%wide+%d]; setp.%s.s32 %s, %%t, 0;\n",
			4*g.rnd.Intn(randTableWords-4), g.one("lt", "ge"), p)
	}
}

// decide returns the guard of a branch.
func (g *randProg) decide() string {
	w := &g.out
	switch g.rnd.Intn(6) {
	case 0: // whole warps
		fmt.Fprintf(w, "and.b32 %%t, %%thread, %d; setp.eq.u32 %%c, %%t, 0;\n", 32<<g.rnd.Intn(3))
	case 1: // one lane
		fmt.Fprintf(w, "setp.eq.u32 %%c, %%lane, %d;\n", g.rnd.Intn(32))
	default:
		return g.one("@", "@!") + g.reg("p")
	}
	return g.one("@%c", "@!%c")
}

// junction writes an if, with an else or without.
func (g *randProg) junction(depth int) {
	g.labels++
	l, w := g.labels, &g.out
	fmt.Fprintf(w, "%s bra E%d;\n", g.decide(), l)
	g.paths(depth-1, g.rnd.Intn(4), false)
	if g.rnd.Intn(2) == 0 {
		fmt.Fprintf(w, "E%d:\n", l)
		return
	}
	fmt.Fprintf(w, "bra D%d;\nE%d:\n", l, l)
	g.paths(depth-1, g.rnd.Intn(4), false)
	fmt.Fprintf(w, "D%d:\n", l)
}

// exits writes several branches to one label, some with nothing between them.
func (g *randProg) exits(depth int) {
	g.labels++
	l := g.labels
	for range 2 + g.rnd.Intn(3) {
		fmt.Fprintf(&g.out, "%s bra X%d;\n", g.decide(), l)
		g.paths(depth-1, g.rnd.Intn(3), false)
	}
	fmt.Fprintf(&g.out, "X%d:\n", l)
}

// rounds writes a loop. Some are left from inside, and some continue from there.
func (g *randProg) rounds(depth int) {
	g.labels++
	l, w, count := g.labels, &g.out, fmt.Sprintf("%%m%d", depth-1)
	switch g.rnd.Intn(5) {
	case 0:
		fmt.Fprintf(w, "and.b32 %s, %%thread, 3;\n", count)
	case 1:
		fmt.Fprintf(w, "shr.u32 %s, %%thread, 5;\n", count)
	case 2, 3:
		fmt.Fprintf(w, "mov.b32 %s, %d;\n", count, g.rnd.Intn(5))
	default: // longer than a call
		n := 3
		if depth == randDepth {
			n = 200
		}
		fmt.Fprintf(w, "mov.b32 %s, %d;\n", count, n)
	}
	fmt.Fprintf(w, "L%d:\n", l)
	g.paths(depth-1, 1+g.rnd.Intn(3), false)
	for range g.rnd.Intn(3) {
		fmt.Fprintf(w, "%s bra %s%d;\n", g.decide(), g.one("B", "C"), l)
		g.paths(depth-1, g.rnd.Intn(2), false)
	}
	fmt.Fprintf(w, "C%d: sub.s32 %s, %s, 1; setp.ge.s32 %%c, %s, 0; @%%c bra L%d;\nB%d:\n", l, count, count, count, l, l)
}
