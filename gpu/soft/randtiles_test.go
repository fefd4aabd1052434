package soft_test

import (
	"bytes"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/exec"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// Random programs like products of matrices, of which machine code executes all tiles of
// a warp at once (native/warp.go): in each iteration the threads of a block load from
// device memory, store to shared memory, wait, and load what other threads have stored,
// at addresses that are common to rows and columns of the block of threads, or to none.
// In some iterations, blocks and warps the addresses are others than usual, so that what
// machine code expects is wrong.

// tileShapes are the shapes of blocks of threads.
var tileShapes = [][2]uint32{{16, 16}, {16, 8}, {16, 6}, {8, 8}, {8, 12}, {32, 4}, {32, 2}, {64, 2}, {24, 4}, {4, 16}, {13, 8}}

const (
	tileRegs   = 6
	tileTurns  = 6
	tileBlocks = 4
	tileBytes  = 8192 // of shared memory
	tileIn     = 1 << 17
)

// randTiles writes such programs.
type randTiles struct {
	*randSteady
	wild bool // some loads are outside of shared memory
}

func newRandTiles(seed int64) *randTiles {
	g := &randTiles{randSteady: &randSteady{rnd: rand.New(rand.NewSource(seed))}}
	g.shape = tileShapes[g.rnd.Intn(len(tileShapes))]
	g.wild = g.rnd.Intn(10) == 0
	return g
}

// unusual writes a change of a register that takes effect in some iterations, blocks or
// warps, most often only after there is machine code for the usual ones, or nothing. It
// has no guard, as runs with guards are executed tile by tile.
func (g *randTiles) unusual(reg, change string) {
	keep, where := "%t2", g.one(fmt.Sprintf("i, %d", g.rnd.Intn(tileTurns)), fmt.Sprintf("cta, %d", g.rnd.Intn(tileBlocks)), fmt.Sprintf("warp, %d", g.rnd.Intn(4)), "n, 2")
	bits := 32
	if reg[1] == 'w' {
		keep, bits = "%w3", 64
	}
	condition := ""
	switch k := g.rnd.Intn(12); {
	case k < 4:
		condition = fmt.Sprintf("setp.eq.and.u32 %%c, %%%s, %%late", where)
	case k == 4:
		condition = fmt.Sprintf("setp.eq.u32 %%c, %%%s", where)
	default:
		return
	}
	g.f("mov.b%d %s, %s; %s; %s; selp.b%d %s, %s, %s, %%c;\n", bits, keep, reg, change, condition, bits, reg, reg, keep)
}

// address computes %t1, an offset that depends on row, column or thread, in bytes and
// less than 4096, and returns its alignment.
func (g *randTiles) address() (align int) {
	align = 16
	switch k := g.rnd.Intn(3); g.rnd.Intn(12) {
	case 0, 1, 8, 9:
		g.f("mul.lo.u32 %%t1, %%y, %d;\n", 16*(1+g.rnd.Intn(12)))
	case 2, 3, 10:
		if g.rnd.Intn(2) == 0 {
			k = 0
		}
		g.f("shl.b32 %%t1, %%x, %d;\n", 2+k)
		align = 4 << k
	case 4:
		g.f("shl.b32 %%t1, %%lin, %d;\n", 2+k)
		align = 4 << k
	case 5:
		g.f("mov.u32 %%t1, %d;\n", 16*g.rnd.Intn(32))
	case 6:
		g.f("mad.lo.u32 %%t1, %%y, %d, %%x; and.b32 %%t1, %%t1, 255; shl.b32 %%t1, %%t1, 4;\n", 1+g.rnd.Intn(40))
	default:
		g.f("and.b32 %%t1, %%x, %d; shl.b32 %%t1, %%t1, 4;\n", []int{7, 3, 8, 24}[g.rnd.Intn(4)])
	}
	g.unusual("%t1", g.one("add.u32 %t1, %t1, 16", "xor.b32 %t1, %t1, 32", "mad.lo.u32 %t1, %x, 16, %t1", "shl.b32 %t1, %lane, 4", "mov.u32 %t1, 64"))
	return align
}

// arithmetic writes some operations on data.
func (g *randTiles) arithmetic(n int) {
	r := g.data
	for range n {
		g.f("%s;\n", g.one(
			fmt.Sprintf("fma.rn.f32 %s, %s, %s, %s", r(), r(), r(), r()),
			fmt.Sprintf("fma.rn.f32 %s, %%v0, %%v1, %s", r(), r()),
			fmt.Sprintf("add.f32 %s, %s, %%v%d", r(), r(), g.rnd.Intn(4)),
			fmt.Sprintf("xor.b32 %s, %s, %%v%d", r(), r(), g.rnd.Intn(4)),
			fmt.Sprintf("mad.lo.u32 %s, %s, %%v%d, %s", r(), r(), g.rnd.Intn(4), r()),
			fmt.Sprintf("cvt.u32.u64 %s, %%e%d", r(), g.rnd.Intn(2)),
			fmt.Sprintf("setp.lt.u32 %%p0, %s, %s", r(), r()),
			fmt.Sprintf("selp.b32 %s, %s, %%v%d, %%p0", r(), r(), g.rnd.Intn(4)),
			fmt.Sprintf("cvt.u64.u32 %%e%d, %s", g.rnd.Intn(2), r()),
			fmt.Sprintf("add.u64 %%e0, %%e1, %%e%d", g.rnd.Intn(2))))
	}
}

// loads writes loads from one space, relative to some bases, and arithmetic on their
// results.
func (g *randTiles) loads(space string) {
	n := 1 + g.rnd.Intn(3)
	wide, align := make([]bool, n), make([]int, n)
	for i := range n {
		align[i] = g.address()
		if wide[i] = space == "global" || g.rnd.Intn(2) == 0; wide[i] {
			base := map[string]string{"global": "%in", "shared": "%sh"}[space]
			g.f("cvt.u64.u32 %%w%d, %%t1; add.u64 %%w%d, %%w%d, %s;\n", i, i, i, base)
		} else {
			g.f("add.u32 %%a%d, %%t1, %%sh32;\n", i)
		}
		if space == "global" {
			g.f("mad.wide.u32 %%w%d, %%i, %d, %%w%d;\n", i, 64*g.rnd.Intn(64), i)
		} else if g.wild && g.rnd.Intn(3) == 0 && wide[i] {
			g.unusual(fmt.Sprintf("%%w%d", i), fmt.Sprintf("add.u64 %%w%d, %%w%d, %s", i, i, g.one("16384", "12288", "-4096", "0x100000000")))
		}
	}
	if g.rnd.Intn(2) == 0 {
		g.block()
	}
	for range 1 + g.rnd.Intn(10) {
		i := g.rnd.Intn(n)
		reg := fmt.Sprintf("%%w%d", i)
		if !wide[i] {
			reg = fmt.Sprintf("%%a%d", i)
		}
		x := strings.Fields(g.one("4 u32 %v0", "4 f32 %v1", "4 u32 %v2", "4 f32 %v3", "4 f32 %v0", "4 f32 %v1", "4 f32 %r0", "4 u32 %r4", "8 b64 %e0", "8 v2.b32 {%v0,%v2}", "16 v4.b32 {%v0,%v1,%v2,%v3}"))
		size := map[string]int{"4": 4, "8": 8, "16": 16}[x[0]]
		if size > align[i] {
			continue
		}
		g.f("ld.%s.%s %s, [%s+%d];\n", space, x[1], x[2], reg, size*g.rnd.Intn(1024/size))
		g.arithmetic(g.rnd.Intn(3))
	}
	g.block()
}

// program returns the whole program.
func (g *randTiles) program() string {
	g.f("mov.u32 %%x, %%tid.x; mov.u32 %%y, %%tid.y; mov.u32 %%nx, %%ntid.x; mov.u32 %%cta, %%ctaid.x; mov.u32 %%lane, %%laneid; ld.param.u32 %%n, [n];\n")
	g.f("mad.lo.u32 %%lin, %%y, %%nx, %%x; shr.u32 %%warp, %%lin, 5; mad.lo.u32 %%all, %%cta, %d, %%lin;\n", g.shape[0]*g.shape[1])
	g.f("ld.param.u64 %%in, [in]; ld.param.u64 %%base, [out]; mad.wide.u32 %%base, %%all, %d, %%base;\n", 8*tileRegs)
	g.f("mov.u32 %%sh32, sh; cvt.u64.u32 %%sh, %%sh32; mov.u32 %%i, 0; mov.b64 %%e0, 1; mov.b64 %%e1, 2; setp.eq.u32 %%p0, %%x, 1; setp.ge.u32 %%late, %%n, 1;\n")
	for i := range tileRegs {
		g.f("ld.global.u32 %%r%d, [%%base+%d];\n", i, 8*i)
	}
	g.f("mov.u32 %%t1, %%lin;\nF: shl.b32 %%t2, %%t1, 2; add.u32 %%t2, %%t2, %%sh32; st.shared.u32 [%%t2], %%r0; add.u32 %%t1, %%t1, %d; setp.lt.u32 %%c, %%t1, %d; @%%c bra F;\n", g.shape[0]*g.shape[1], tileBytes/4)
	g.f("mov.u32 %%v0, %%r1; mov.u32 %%v1, %%r2; mov.u32 %%v2, %%r3; mov.u32 %%v3, %%r4;\nT:\n")
	if g.rnd.Intn(2) == 0 {
		g.loads("global")
	}
	g.f("bar.sync 0;\n")
	for range 1 + g.rnd.Intn(2) {
		g.f("mov.u32 %%t1, %%lin;\n")
		g.unusual("%t1", g.one("xor.b32 %t1, %t1, 1", "xor.b32 %t1, %t1, 8", "xor.b32 %t1, %t1, 16", "add.u32 %t1, %t1, 3"))
		x := strings.Fields(g.one("2 u32 %r0", "2 f32 %v1", "2 u32 %r5", "3 b64 %e0", "3 b64 %e1", "2 u32 %e0"))
		g.f("shl.b32 %%t1, %%t1, %s; add.u32 %%a3, %%t1, %%sh32;\n", x[0])
		if x[1] == "u32" && x[2] == "%e0" {
			x[2] = "%r3"
		}
		at := g.rnd.Intn(2) * 4096 // the regions of different stores must not overlap
		if g.rnd.Intn(2) == 0 {
			g.f("cvt.u64.u32 %%w3, %%a3; st.shared.%s [%%w3+%d], %s;\n", x[1], at, x[2])
		} else {
			g.f("st.shared.%s [%%a3+%d], %s;\n", x[1], at, x[2])
		}
		g.f("bar.sync 0;\n")
	}
	for range 1 + g.rnd.Intn(2) {
		g.loads("shared")
	}
	g.f("add.u32 %%i, %%i, 1; setp.lt.u32 %%c, %%i, %d; @%%c bra T;\n", tileTurns)
	for i := range tileRegs {
		g.f("st.global.u32 [%%base+%d], %%r%d;\n", 8*i, i)
	}
	return ptxHead + fmt.Sprintf(".entry k(.param .u64 out, .param .u64 in, .param .u32 n) {\n.shared .align 128 .b8 sh[%d];\n", tileBytes) +
		".reg .b32 %x, %y, %nx, %cta, %lane, %lin, %warp, %all, %n, %i, %sh32, %t1, %t2, %a<4>, %v<4>; .reg .b64 %in, %base, %sh, %w<4>, %e<2>; .reg .pred %c, %p0, %late;\n" +
		fmt.Sprintf(".reg .b32 %%r<%d>;\n", tileRegs) + g.out.String() + "ret;\n}\n"
}

// FuzzTiles compares interpreter and machine code with the oracle.
func FuzzTiles(f *testing.F) {
	n := int64(20)
	if testing.Short() {
		n = 6
	}
	for seed := range n {
		f.Add(seed)
	}
	engines := randEngines(f, exec.Interpreted, exec.Compiled)
	f.Fuzz(func(t *testing.T, seed int64) {
		g := newRandTiles(seed)
		if g.wild && card(t) != nil {
			return // a GPU's shared memory may be larger than the kernel declares
		}
		tilesAgree(t, engines, g, g.program(), seed)
	})
}

// tilesAgree executes a program several times on engines and on the oracle, and compares
// the results.
func tilesAgree(t *testing.T, engines []worker.Driver, g *randTiles, src string, seed int64) {
	t.Helper()
	var rigs []*rig
	for _, d := range engines {
		rigs = append(rigs, loadRandom(t, d, src))
	}
	grid, block := [3]uint32{tileBlocks, 1, 1}, [3]uint32{g.shape[0], g.shape[1], 1}
	for n := range uint32(3) {
		rnd := rand.New(rand.NewSource(seed + int64(n)))
		regs, in := make([]byte, tileBlocks*int(block[0]*block[1])*8*tileRegs), make([]byte, tileIn)
		rnd.Read(regs)
		rnd.Read(in)
		want := bytes.Clone(regs)
		if !g.wild {
			oracleRun(t, src, "k", grid, block, 0, pack(uint64(1<<40), uint64(2<<40), n), oracleMemory{1 << 40: want, 2 << 40: bytes.Clone(in)})
		}
		failed := ""
		for i, r := range rigs {
			out := r.buffer(regs)
			r.launch("k", grid, block, 0, out, r.buffer(in), n)
			got, err := r.read(out, len(regs))
			kind := ""
			if err != nil {
				kind, _, _ = strings.Cut(err.Error(), ":") // which lane fails first is undefined
			}
			switch {
			case kind != "" && !g.wild || i > 0 && failed != kind:
				t.Fatalf("seed %d, launch %d, engine %d: kernel error = %v, want the kind %q as the engine before\n%s", seed, n, i, err, failed, src)
			case kind != "":
				failed = kind
				continue
			case g.wild && i == 0:
				want = got
			}
			if at := firstDifference(got, want); at >= 0 {
				t.Fatalf("seed %d, launch %d, engine %d, shape %v, thread %d, register %d = %x, want %x\n%s",
					seed, n, i, g.shape, at/(8*tileRegs), at%(8*tileRegs)/8, got[at:at+4], want[at:at+4], src)
			}
		}
		if failed != "" { // the context has failed
			return
		}
	}
}
