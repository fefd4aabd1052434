package soft

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// Registers of a random program; each thread loads them all from its part of a
// buffer and stores them all at the end.
const (
	randH, randR, randD, randP = 6, 8, 6, 4
	randSlots                  = randH + randR + randD + randP
	randScratch                = 64 // bytes of global memory per thread
)

// randProg writes valid random PTX: every operation of ops.txt and the decoded
// ones, in straight lines, under guards, in divergent branches and loops.
type randProg struct {
	rnd    *rand.Rand
	out    strings.Builder
	labels int
}

var randKeys = func() []string {
	var keys []string
	for k := range vectorOps {
		if !strings.HasPrefix(k, "cvt.") && !strings.HasPrefix(k, "mov.") {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}()

func randomProgram(seed int64) string {
	g := &randProg{rnd: rand.New(rand.NewSource(seed))}
	return g.program(func() { g.body(3, 12+g.rnd.Intn(20)) })
}

// program is a kernel around a body.
func (g *randProg) program(body func()) string {
	w := &g.out
	w.WriteString(ptxHead + ".entry k(.param .u64 regs, .param .u64 scratch) {\n")
	fmt.Fprintf(w, ".reg .b16 %%h<%d>; .reg .b32 %%r<%d>; .reg .b64 %%d<%d>; .reg .pred %%p<%d>;\n", randH, randR, randD, randP)
	w.WriteString(".reg .b64 %base, %mem; .reg .b32 %tid, %t, %n; .reg .pred %c;\n.shared .align 8 .b8 sh[4096];\n")
	w.WriteString("mov.u32 %tid, %tid.x; ld.param.u64 %base, [regs]; ld.param.u64 %mem, [scratch];\n")
	fmt.Fprintf(w, "mad.wide.u32 %%base, %%tid, %d, %%base; mad.wide.u32 %%mem, %%tid, %d, %%mem;\n", 8*randSlots, randScratch)
	for i := range randSlots {
		r, t := randSlot(i)
		if t == "pred" {
			fmt.Fprintf(w, "ld.global.u32 %%t, [%%base+%d]; setp.ne.u32 %s, %%t, 0;\n", 8*i, r)
			continue
		}
		fmt.Fprintf(w, "ld.global.%s %s, [%%base+%d];\n", t, r, 8*i)
	}
	body()
	for i := range randSlots {
		r, t := randSlot(i)
		if t == "pred" {
			fmt.Fprintf(w, "selp.u32 %%t, 1, 0, %s; st.global.u32 [%%base+%d], %%t;\n", r, 8*i)
			continue
		}
		fmt.Fprintf(w, "st.global.%s [%%base+%d], %s;\n", t, 8*i, r)
	}
	w.WriteString("ret;\n}\n")
	return w.String()
}

func randSlot(i int) (reg, t string) {
	switch {
	case i < randH:
		return fmt.Sprintf("%%h%d", i), "b16"
	case i < randH+randR:
		return fmt.Sprintf("%%r%d", i-randH), "b32"
	case i < randH+randR+randD:
		return fmt.Sprintf("%%d%d", i-randH-randR), "b64"
	}
	return fmt.Sprintf("%%p%d", i-randH-randR-randD), "pred"
}

func (g *randProg) body(depth, n int) {
	for range n {
		switch k := g.rnd.Intn(20); {
		case k == 0 && depth > 0: // if, else
			g.labels++
			l := g.labels
			fmt.Fprintf(&g.out, "@%s bra E%d;\n", g.reg("p"), l)
			g.body(depth-1, 1+n/3)
			fmt.Fprintf(&g.out, "bra D%d;\nE%d:\n", l, l)
			g.body(depth-1, 1+n/3)
			fmt.Fprintf(&g.out, "D%d:\n", l)
		case k == 1 && depth == 3: // a loop that lanes leave at different times
			g.labels++
			l := g.labels
			fmt.Fprintf(&g.out, "and.b32 %%n, %%tid, 3;\nL%d:\n", l)
			g.body(depth-1, 1+n/4)
			fmt.Fprintf(&g.out, "sub.s32 %%n, %%n, 1; setp.ge.s32 %%c, %%n, 0; @%%c bra L%d;\n", l)
		default:
			if g.rnd.Intn(5) == 0 {
				g.out.WriteString([]string{"@", "@!"}[g.rnd.Intn(2)] + g.reg("p") + " ")
			}
			g.out.WriteString(g.inst() + ";\n")
		}
	}
}

func (g *randProg) reg(class string) string {
	n := map[string]int{"h": randH, "r": randR, "d": randD, "p": randP}[class]
	return fmt.Sprintf("%%%s%d", class, g.rnd.Intn(n))
}

func randClass(t ptx.Type) string {
	switch {
	case t == ptx.Pred:
		return "p"
	case t.Size() == 8:
		return "d"
	case t.Size() == 4:
		return "r"
	}
	return "h"
}

func (g *randProg) one(list ...string) string { return list[g.rnd.Intn(len(list))] }

// src is a source operand: mostly a register.
func (g *randProg) src(t ptx.Type) string {
	if g.rnd.Intn(6) > 0 || t == ptx.Pred || t.Float() && t != ptx.F32 && t != ptx.F64 {
		return g.reg(randClass(t))
	}
	switch t {
	case ptx.F32:
		return fmt.Sprintf("0f%08x", uint32(randBits(g.rnd, 4)))
	case ptx.F64:
		return fmt.Sprintf("0d%016x", randBits(g.rnd, 8))
	}
	return fmt.Sprintf("0x%x", randBits(g.rnd, int(t.Size())))
}

func (g *randProg) inst() string {
	switch g.rnd.Intn(12) {
	case 0:
		return g.conversion()
	case 1:
		return g.memory()
	case 2:
		return g.decoded()
	}
	return g.tabled(randKeys[g.rnd.Intn(len(randKeys))])
}

// tabled is an operation of ops.txt on random operands.
func (g *randProg) tabled(k string) string {
	name, suffix, _ := strings.Cut(k, "/")
	if suffix != "" { // modifiers go before the type
		i := strings.LastIndexByte(name, '.')
		name = name[:i] + "." + strings.ReplaceAll(suffix, "/", ".") + name[i:]
	}
	return g.plain(name, vectorOps[k])
}

func (g *randProg) plain(name string, f any) string {
	parts := strings.Split(name, ".")
	in := ptx.Inst{Op: parts[0], Mods: parts[1:]}
	types := in.OperandTypes()
	_, src, _ := shapeOf(f)
	args := []string{g.reg(randClass(types[0]))}
	if in.Op == "setp" && g.rnd.Intn(3) == 0 {
		i := strings.IndexByte(name[5:], '.') + 5
		name = name[:i] + g.one(".and", ".or", ".xor") + name[i:]
		return fmt.Sprintf("%s %s|%s, %s, %s, %s%s", name, "%p0", "%p1", g.src(types[1]), g.src(types[2]), g.one("", "!"), g.reg("p"))
	}
	for i := range src {
		args = append(args, g.src(types[i+1]))
	}
	return name + " " + strings.Join(args, ", ")
}

var (
	intNames   = []string{"u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"}
	floatNames = []string{"f16", "bf16", "f32", "f64"}
)

func (g *randProg) conversion() string {
	to, from := g.one(append(intNames, floatNames...)...), g.one(append(intNames, floatNames...)...)
	tt, _ := ptx.TypeByName(to)
	ft, _ := ptx.TypeByName(from)
	mods := ""
	switch {
	case tt.Float() && ft.Float():
		switch {
		case to == from && to != "bf16":
			mods = g.one("", ".rni", ".rzi", ".rmi", ".rpi")
		case tt.Size() < ft.Size() || tt == ptx.BF16 || ft == ptx.BF16 && tt == ptx.F16:
			mods = g.one(".rn", ".rz", ".rm", ".rp")
		}
	case ft.Float():
		mods = g.one(".rni", ".rzi", ".rmi", ".rpi")
	case tt.Float():
		mods = g.one(".rn", ".rz", ".rm", ".rp")
	}
	if g.rnd.Intn(3) == 0 && (tt == ptx.F32 || ft == ptx.F32 && !tt.Float()) {
		mods += ".ftz"
	}
	if g.rnd.Intn(4) == 0 && tt != ptx.BF16 {
		mods += ".sat"
	}
	return fmt.Sprintf("cvt%s.%s.%s %s, %s", mods, to, from, g.reg(randClass(tt)), g.reg(randClass(ft)))
}

func (g *randProg) memory() string {
	t := g.one("u8", "s8", "u16", "s16", "b16", "u32", "s32", "f32", "b64", "s64")
	ty, _ := ptx.TypeByName(t)
	if t == "f32" {
		t = "b32"
	}
	at := fmt.Sprintf("[%%mem+%d]", g.rnd.Intn(randScratch/8)*8)
	r := g.reg(randClass(ty))
	switch g.rnd.Intn(5) {
	case 0, 1:
		return g.one("ld", "ld.global", "ld.volatile.global") + "." + t + " " + r + ", " + at
	case 2:
		return "atom.global." + g.one("add.u32", "min.s32", "max.u32", "inc.u32", "dec.u32", "and.b32", "exch.b32") +
			fmt.Sprintf(" %s, %s, %s", g.reg("r"), at, g.src(ptx.U32))
	}
	return g.one("st", "st.global") + "." + t + " " + at + ", " + r
}

// decoded are instructions with a decoder of their own.
func (g *randProg) decoded() string {
	t := g.one("b16", "u16", "u32", "s32", "f32", "b64", "f64", "s64")
	ty, _ := ptx.TypeByName(t)
	c := randClass(ty)
	switch g.rnd.Intn(9) {
	case 0:
		return fmt.Sprintf("selp.%s %s, %s, %s, %s", t, g.reg(c), g.src(ty), g.src(ty), g.reg("p"))
	case 1:
		ct := g.one("s32", "f32", "ftz.f32")
		return fmt.Sprintf("slct.%s %s, %s, %s, %s", strings.TrimSuffix(ct[:len(ct)-3], ".")+map[bool]string{true: "."}[len(ct) > 3]+t+"."+ct[len(ct)-3:], g.reg(c), g.src(ty), g.src(ty), g.reg("r"))
	case 2:
		return fmt.Sprintf("lop3.b32 %s, %s, %s, %s, 0x%x", g.reg("r"), g.reg("r"), g.src(ptx.B32), g.src(ptx.B32), g.rnd.Intn(256))
	case 3:
		return fmt.Sprintf("%s.pred %s, %s, %s%s", g.one("and", "or", "xor"), g.reg("p"), g.reg("p"), g.one("", "!"), g.reg("p"))
	case 4:
		return fmt.Sprintf("mov.b32 %s, {%s, %s}", g.reg("r"), g.reg("h"), g.reg("h"))
	case 5:
		return fmt.Sprintf("mov.b64 {%s, %s}, %s", "%r0", "%r1", g.reg("d"))
	}
	if g.rnd.Intn(2) == 0 {
		return g.extended()
	}
	st := g.one("u16", "s32", "u64", "f32", "f64", "f16")
	sty, _ := ptx.TypeByName(st)
	return fmt.Sprintf("set.%s.%s.%s %s, %s, %s", g.one("eq", "ne", "lt", "le", "gt", "ge"), g.one("u32", "s32", "f32"), st, g.reg("r"), g.src(sty), g.src(sty))
}

// randBits favours the corners of every type of that size.
func randBits(rnd *rand.Rand, bytes int) uint64 {
	corners := map[int][]uint64{
		1: {0, 1, 0x7f, 0x80, 0xff},
		2: {0, 0x8000, 1, 0x8001, 0x03ff, 0x0400, 0x3c00, 0x7bff, 0x7c00, 0xfc00, 0x7e00, 0x7fff, 0xffff, 0x3f80, 0x7f80, 0x007f},
		4: {0, 1 << 31, 1, 0x80000001, 0x007fffff, 0x00800000, 0x3f800000, 0xbf800000, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000,
			0x7f800001, 0x7fffffff, 0xffffffff, 0x4b000001, 31, 32, 33, 0x4f000000, 0xcf000000, 0x3effffff, 0x33800000, 0x477fefff, 0x3c003c00},
		8: {0, 1 << 63, 1, 1<<63 | 1, 1<<52 - 1, 1 << 52, 0x3ff0000000000000, 0xbff0000000000000, 0x7fefffffffffffff, 0x7ff0000000000000,
			0xfff0000000000000, 0x7ff8000000000000, 0x7ff0000000000001, 1<<63 - 1, 1<<64 - 1, 63, 64, 65, 0x43e0000000000000, 0xc3e0000000000000,
			0x36a0000000000000, 0x47efffffe0000000, 0x380fffffffffffff, 0x3e70000000000000},
	}[bytes]
	v := rnd.Uint64()
	if rnd.Intn(2) == 0 {
		v = corners[rnd.Intn(len(corners))]
	}
	if rnd.Intn(8) == 0 {
		v += uint64(rnd.Intn(5)) - 2
	}
	if bytes < 8 {
		v &= 1<<(8*bytes) - 1
	}
	return v
}

// extended is arithmetic with the carry flag.
func (g *randProg) extended() string {
	t := g.one("u32", "s32", "u64", "s64")
	ty, _ := ptx.TypeByName(t)
	c := randClass(ty)
	op := g.one("add.cc.", "addc.", "addc.cc.", "sub.cc.", "subc.", "subc.cc.", "mad.lo.cc.", "mad.hi.cc.", "madc.lo.", "madc.hi.cc.")
	s := fmt.Sprintf("%s%s %s, %s, %s", op, t, g.reg(c), g.src(ty), g.src(ty))
	if op[:3] == "mad" {
		s += ", " + g.src(ty)
	}
	return s
}
