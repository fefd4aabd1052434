package soft_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/exec"
)

// Random programs whose warps go from block to block in machine code: branches on which
// all lanes of a warp agree and others, arms that meet again and some that do not,
// loops that warps or lanes leave at different times and loops that outlast a call,
// shuffles of whole warps, barriers, loads that change the allocation, and blocks of
// threads that are not whole warps.

// regionThreads are those of such programs: three warps, or these and part of one.
var regionThreads = []int{96, 104}

// regionKeys are operations that machine code is made for.
var regionKeys = slices.DeleteFunc(slices.Clone(randKeys), func(k string) bool {
	of := func(list ...string) bool {
		return slices.ContainsFunc(list, func(p string) bool { return strings.HasPrefix(k, p) })
	}
	return !of("add.", "sub.", "mul.lo.u32", "mad.lo.u32", "and.b", "or.b", "xor.b", "min.u32", "min.s32", "max.s32", "fma.rn.f32", "setp.lt.u32", "setp.ge.s32") ||
		strings.Contains(k, "f16") || strings.Contains(k, ".r")
})

// FuzzRegions: interpreter and machine code agree with the oracle where warps stay in
// machine code. Each program runs with three sets of data, as its code is made in two
// steps.
func FuzzRegions(f *testing.F) {
	n := int64(30)
	if testing.Short() {
		n = 8
	}
	for seed := range n {
		f.Add(seed)
	}
	engines := randEngines(f, exec.Interpreted, exec.Compiled)
	f.Fuzz(func(t *testing.T, seed int64) {
		g := &randProg{rnd: rand.New(rand.NewSource(seed))}
		threads := regionThreads[g.rnd.Intn(2)]
		src := g.program(func() { g.paths(randDepth, 6+g.rnd.Intn(10), threads%32 == 0) })
		differOf(t, engines, threads, src, seed, seed+1, seed+2)
	})
}

// paths are statements; whole says that all lanes of all warps are there.
func (g *randProg) paths(depth, n int, whole bool) {
	w, top := &g.out, depth == randDepth
	for range n {
		switch k := g.rnd.Intn(16); {
		case k < 4 && depth > 0:
			g.junction(depth)
		case k < 6 && depth > 0:
			g.rounds(depth)
		case k == 6 && top && whole:
			fmt.Fprintf(w, "shfl.sync.%s.b32 %s|%s, %s, %d, %d, -1;\n", g.one("up", "down", "bfly", "idx"), g.reg("r"), g.reg("p"), g.reg("r"), g.rnd.Intn(32), g.rnd.Intn(32)|g.rnd.Intn(32)<<8)
		case k == 7 && top:
			w.WriteString("bar.sync 0;\n")
		case k == 8: // the lanes' own numbers in one allocation or in the other
			fmt.Fprintf(w, "selp.b64 %%wide, %%mem, %%base, %s; ld.global.u32 %s, [%%wide+%d];\n", g.reg("p"), g.reg("r"), 4*g.rnd.Intn(randScratch/4))
		case k < 12:
			g.access()
		default:
			w.WriteString(g.guard() + g.tabled(g.one(regionKeys...)) + ";\n")
		}
	}
}

// access is a plain load or store of the thread's own memory.
func (g *randProg) access() {
	space, class := g.one("global", "shared", "local"), g.one("r", "d")
	at := map[string]string{"global": "%mem", "shared": "%sa", "local": "%la"}[space]
	t, off := "b32", 4*g.rnd.Intn(randShared/4)
	if class == "d" {
		t, off = "b64", off&^7
	}
	if g.rnd.Intn(2) == 0 {
		fmt.Fprintf(&g.out, "ld.%s.%s %s, [%s+%d];\n", space, t, g.reg(class), at, off)
		return
	}
	fmt.Fprintf(&g.out, "%sst.%s.%s [%s+%d], %s;\n", g.guard(), space, t, at, off, g.reg(class))
}

// junction is an if, with an else or without.
func (g *randProg) junction(depth int) {
	g.labels++
	l, w, not := g.labels, &g.out, g.one("", "!")
	switch g.rnd.Intn(4) {
	case 0: // whole warps
		fmt.Fprintf(w, "and.b32 %%t, %%thread, %d; setp.eq.u32 %%c, %%t, 0;\n", 32<<g.rnd.Intn(3))
	case 1: // one lane
		fmt.Fprintf(w, "setp.eq.u32 %%c, %%lane, %d;\n", g.rnd.Intn(32))
	default:
		fmt.Fprintf(w, "mov.pred %%c, %s;\n", g.reg("p"))
	}
	fmt.Fprintf(w, "@%s%%c bra E%d;\n", not, l)
	g.paths(depth-1, g.rnd.Intn(4), false)
	if g.rnd.Intn(2) == 0 {
		fmt.Fprintf(w, "E%d:\n", l)
		return
	}
	fmt.Fprintf(w, "bra D%d;\nE%d:\n", l, l)
	g.paths(depth-1, g.rnd.Intn(4), false)
	fmt.Fprintf(w, "D%d:\n", l)
}

// rounds is a loop.
func (g *randProg) rounds(depth int) {
	g.labels++
	l, w, count := g.labels, &g.out, fmt.Sprintf("%%m%d", depth-1)
	switch g.rnd.Intn(4) {
	case 0:
		fmt.Fprintf(w, "and.b32 %s, %%thread, 3;\n", count)
	case 1:
		fmt.Fprintf(w, "shr.u32 %s, %%thread, 5;\n", count)
	case 2:
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
	fmt.Fprintf(w, "sub.s32 %s, %s, 1; setp.ge.s32 %%c, %s, 0; @%%c bra L%d;\n", count, count, count, l)
}
