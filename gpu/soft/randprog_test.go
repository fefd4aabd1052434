package soft_test

import (
	"cmp"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// Registers of a random program. Each thread loads them all from its part of a buffer
// and stores them all at the end.
const (
	randH, randR, randD, randP = 6, 8, 6, 4
	randSlots                  = randH + randR + randD + randP
	randScratch                = 64 // bytes of global memory per thread
)

// randProg writes valid random PTX: every operation of ops.txt and the decoded ones, in
// straight lines, under guards, in divergent branches and loops.
//
// Register %mN has the lanes of the warp that are in the region at depth N, for the
// member masks of warp instructions. Each thread has randShared bytes of shared memory
// at %sa and as many of local memory at %la, as 32-bit addresses.
type randProg struct {
	rnd    *rand.Rand
	out    strings.Builder
	labels int
	// functions has the functions that the rest of the program may call.
	functions []randFunction
	// head is the head of the program; ptxHead if empty.
	head string
	// stripe is the number of bytes of a thread's memory that are consecutive, followed by
	// those of the other threads; 0 means all of it.
	stripe int
	// blocks is the number of blocks, of threads threads each; 0 means one block of any
	// number.
	blocks, threads int
	// open allows instructions that began after PTX ISA 8.4 and sm_90, and results that
	// are undefined in PTX, such as approximations and values that a shuffle reads from
	// inactive lanes. The engines and the oracle agree on them, but a GPU need not.
	open bool
}

const newestHead = ".version 8.7\n.target sm_100a\n.address_size 64\n"

// randRegisters declares the registers of a kernel and of each function.
var randRegisters = fmt.Sprintf(`.reg .b16 %%h<%d>; .reg .b32 %%r<%d>; .reg .b64 %%d<%d>; .reg .pred %%p<%d>; .reg .b32 %%m<%d>;
.reg .b64 %%mem, %%wide, %%at; .reg .b32 %%thread, %%t, %%n, %%sa, %%la, %%lane, %%pm, %%lead; .reg .pred %%c;
.local .align 16 .b8 loc[%d];
`, randH, randR, randD, randP, randDepth+1, randShared)

// randDepth is the maximum depth of nested regions; randShared is the number of bytes
// of shared and of local memory of a thread.
const (
	randDepth  = 3
	randShared = 64
)

var operations = ops.Operations()

var randKeys = func() []string {
	var keys []string
	for k := range operations {
		if !strings.HasPrefix(k, "cvt.") && !strings.HasPrefix(k, "mov.") {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}()

// openProgram reports whether the program of a seed is open.
func openProgram(seed int64) bool { return seed&1 == 0 }

func randomProgram(seed int64) string {
	g := &randProg{rnd: rand.New(rand.NewSource(seed)), open: openProgram(seed)}
	if g.open {
		g.head = newestHead
	}
	g.function()
	g.function()
	return g.program(func() { g.body(randDepth, 12+g.rnd.Intn(24)) })
}

// program returns a kernel around a body, which loads and stores the registers that the
// body uses.
func (g *randProg) program(body func()) string {
	functions := g.out.String()
	g.out.Reset()
	body()
	text := g.out.String()
	if strings.Contains(text, "%sa") || strings.Contains(text, "sh") || strings.Contains(text, "%la") || strings.Contains(text, "loc") {
		text = g.ownMemory() + text
	}
	if strings.Contains(text, "tab") {
		functions += randTable
	}
	var w strings.Builder
	w.WriteString(cmp.Or(g.head, ptxHead) + functions + ".entry k(.param .u64 regs, .param .u64 scratch) {\n" + randRegisters)
	w.WriteString(".reg .b64 %base;\n.shared .align 128 .b8 sh[8192];\nmov.u32 %thread, %tid.x; ld.param.u64 %base, [regs]; ld.param.u64 %mem, [scratch];\n")
	of := "%thread" // index in the grid
	if g.blocks > 0 {
		of = "%n"
		fmt.Fprintf(&w, "mov.u32 %%n, %%ctaid.x; mad.lo.u32 %%n, %%n, %d, %%thread;\n", g.threads)
	}
	fmt.Fprintf(&w, "mad.wide.u32 %%base, %s, %d, %%base; mad.wide.u32 %%mem, %s, %d, %%mem;\n", of, 8*randSlots, of, cmp.Or(g.stripe, randScratch))
	var results strings.Builder
	for i := range randSlots {
		switch r, t := randSlot(i); {
		case !strings.Contains(text, r):
		case t == "pred":
			fmt.Fprintf(&w, "ld.global.u32 %%t, [%%base+%d]; setp.ne.u32 %s, %%t, 0;\n", 8*i, r)
			fmt.Fprintf(&results, "selp.u32 %%t, 1, 0, %s; st.global.u32 [%%base+%d], %%t;\n", r, 8*i)
		default:
			fmt.Fprintf(&w, "ld.global.%s %s, [%%base+%d];\n", t, r, 8*i)
			fmt.Fprintf(&results, "st.global.%s [%%base+%d], %s;\n", t, 8*i, r)
		}
	}
	fmt.Fprintf(&w, "mov.u32 %%lane, %%laneid; mov.b32 %%m%d, -1; %s", randDepth, randCarry)
	return w.String() + text + results.String() + "ret;\n}\n"
}

// randCarry sets the carry flag, which is undefined at first and after a call.
const randCarry = "add.cc.u32 %t, 0, 0;\n"

// ownMemory returns instructions that fill the thread's parts of shared and local
// memory.
func (g *randProg) ownMemory() string {
	var w strings.Builder
	fmt.Fprintf(&w, "mov.u32 %%sa, sh; mad.lo.u32 %%sa, %%thread, %d, %%sa; mov.u32 %%la, loc;\n", cmp.Or(g.stripe, randShared))
	for at := 0; at < randShared; at += 8 {
		fmt.Fprintf(&w, "st.local.b64 [%%la+%d], %%d%d;", at, (at/8+1)%randD)
		if g.stripe == 0 {
			fmt.Fprintf(&w, "st.shared.b64 [%%sa+%d], %%d%d;\n", at, at/8%randD)
		}
	}
	if g.stripe > 0 {
		each := min(g.stripe, 8)
		for at := 0; at < randShared; at += each {
			t := map[int]string{1: "b8", 2: "b16", 4: "b32", 8: "b64"}[each]
			ty, _ := ptx.TypeByName(t)
			fmt.Fprintf(&w, "st.shared.%s [%%sa+%d], %%%s%d;\n", t, g.striped("shared", at), randClass(ty), at/each%randH)
		}
	}
	return w.String()
}

// striped returns the offset of byte number at of a thread's memory from its first
// byte.
func (g *randProg) striped(space string, at int) int {
	threads := map[string]int{"global": g.blocks * g.threads, "shared": g.threads}[space]
	if g.stripe == 0 || threads == 0 {
		return at
	}
	return at/g.stripe*g.stripe*threads + at%g.stripe
}

// randSlot returns a register and its type.
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
		switch k := g.rnd.Intn(32); {
		case k == 0 && depth > 0:
			g.fork(depth, n)
		case k == 1 && depth == randDepth:
			g.loop(depth, n)
		case k <= 3:
			g.together(depth)
		case k == 4 && len(g.functions) > 0:
			g.call(depth)
		case k <= 6 && depth == randDepth:
			g.whole()
		case k == 7:
			g.unrolled()
		case k == 8 && g.rnd.Intn(4) == 0:
			g.allocation()
		case k < 13:
			g.out.WriteString(g.memory() + ";\n")
		default:
			g.out.WriteString(g.guard() + g.inst() + ";\n")
		}
	}
}

// guard returns a guard, or often none.
func (g *randProg) guard() string {
	if g.rnd.Intn(5) > 0 {
		return ""
	}
	return g.one("@", "@!") + g.reg("p") + " "
}

// fork writes an if with an else. Sometimes the lanes of both arms synchronize at
// different instructions, with one member mask.
func (g *randProg) fork(depth, n int) {
	g.labels++
	l, w := g.labels, &g.out
	meet := ""
	if g.rnd.Intn(3) == 0 {
		mask := fmt.Sprintf("%%m%d", depth)
		meet = g.leader(mask) + g.warpOp(mask, 0)
	}
	if depth == randDepth && g.rnd.Intn(3) == 0 { // the block's threads too
		meet += fmt.Sprintf("barrier.sync %d;\n", 8+g.rnd.Intn(8))
	}
	fmt.Fprintf(w, "mov.pred %%c, %s; vote.sync.ballot.b32 %%m%d, %%c, %%m%d;\n@%%c bra E%d;\n", g.reg("p"), depth-1, depth, l)
	fmt.Fprintf(w, "xor.b32 %%m%d, %%m%d, %%m%d;\n", depth-1, depth-1, depth)
	g.body(depth-1, 1+n/3)
	w.WriteString(meet)
	fmt.Fprintf(w, "bra D%d;\nE%d:\n", l, l)
	g.body(depth-1, 1+n/3)
	for line := range strings.Lines(meet) { // the same qualifiers, other operands
		op, _, _ := strings.Cut(line, " ")
		if op == "barrier.sync" || op == "brev.b32" {
			w.WriteString(line)
			continue
		}
		w.WriteString(g.operands(op, fmt.Sprintf("%%m%d", depth)))
	}
	fmt.Fprintf(w, "D%d:\n", l)
}

// loop writes a loop that lanes leave at different times.
func (g *randProg) loop(depth, n int) {
	g.labels++
	l, w := g.labels, &g.out
	fmt.Fprintf(w, "and.b32 %%n, %%thread, 3; mov.b32 %%m%d, %%m%d;\nL%d:\n", depth-1, depth, l)
	g.body(depth-1, 1+n/4)
	fmt.Fprintf(w, "sub.s32 %%n, %%n, 1; setp.ge.s32 %%c, %%n, 0;\n")
	fmt.Fprintf(w, "vote.sync.ballot.b32 %%m%d, %%c, %%m%d; @%%c bra L%d;\n", depth-1, depth-1, l)
}

// together writes instructions at which the lanes of the region synchronize: all of
// them, tiles of 1 to 32 lanes, those with one label, or those with a guard.
func (g *randProg) together(depth int) {
	region := fmt.Sprintf("%%m%d", depth)
	switch g.rnd.Intn(4) {
	case 0:
		g.out.WriteString(g.leader(region) + g.warpOp(region, 0))
	case 1:
		tile := 1 << g.rnd.Intn(6)
		fmt.Fprintf(&g.out, "and.b32 %%t, %%lane, %d; mov.b32 %%pm, 0x%x; shl.b32 %%pm, %%pm, %%t; and.b32 %%pm, %%pm, %s;\n",
			32-tile, uint32(1<<tile-1), region)
		if !g.open && (depth < randDepth || tile > randThreads%32) { // lanes of a tile may be inactive
			tile = 0
		}
		g.out.WriteString(g.leader("%pm") + g.warpOp("%pm", tile))
	case 2:
		fmt.Fprintf(&g.out, "and.b32 %%t, %s, %d; match.any.sync.b32 %%pm, %%t, %s;\n", g.reg("r"), 1<<g.rnd.Intn(3), region)
		g.out.WriteString(g.leader("%pm") + g.warpOp("%pm", 0))
	default:
		fmt.Fprintf(&g.out, "mov.pred %%c, %s; vote.sync.ballot.b32 %%pm, %%c, %s;\n%s@%%c ", g.reg("p"), region, g.leader("%pm"))
		g.out.WriteString(g.warpOp("%pm", 0))
	}
}

// leader returns instructions that compute the first lane of a mask, which every
// shuffle can read.
func (g *randProg) leader(mask string) string {
	if g.open {
		return ""
	}
	return fmt.Sprintf("brev.b32 %%lead, %s; clz.b32 %%lead, %%lead;\n", mask)
}

// warpOp returns a random warp instruction. tile is the size of a tile in which
// shuffles stay, or 0.
func (g *randProg) warpOp(mask string, tile int) string {
	list := []string{"vote.sync.ballot.b32", "vote.sync.all.pred", "vote.sync.any.pred", "vote.sync.uni.pred",
		"match.any.sync.b32", "match.any.sync.b64", "match.all.sync.b32", "match.all.sync.b64",
		"redux.sync.add.u32", "redux.sync.add.s32", "redux.sync.min.u32", "redux.sync.min.s32", "redux.sync.max.u32", "redux.sync.max.s32",
		"redux.sync.and.b32", "redux.sync.or.b32", "redux.sync.xor.b32", "elect.sync",
		"shfl.sync.up.b32", "shfl.sync.down.b32", "shfl.sync.bfly.b32", "shfl.sync.idx.b32", "bar.warp.sync"}
	if g.open {
		list = append(list, "redux.sync.min.f32", "redux.sync.max.abs.f32", "redux.sync.min.NaN.f32", "redux.sync.max.abs.NaN.f32")
	}
	op := g.one(list...)
	if tile > 0 && strings.HasPrefix(op, "shfl") {
		c := (32-tile)<<8 | 31
		if op == "shfl.sync.up.b32" {
			c &^= 31
		}
		return fmt.Sprintf("%s %s|%s, %s, %d, 0x%x, %s;\n", op, g.reg("r"), g.reg("p"), g.reg("r"), g.rnd.Intn(tile), c, mask)
	}
	if strings.HasPrefix(op, "shfl") && !g.open {
		op = "shfl.sync.idx.b32"
	}
	return g.operands(op, mask)
}

// operands returns a warp instruction with its operands.
func (g *randProg) operands(op, mask string) string {
	s := op + " "
	switch {
	case strings.HasPrefix(op, "bar"):
		return s + mask + ";\n"
	case strings.HasPrefix(op, "vote.sync.ballot"):
		s += g.reg("r") + ", " + g.one("", "!") + g.reg("p")
	case strings.HasPrefix(op, "vote"):
		s += g.reg("p") + ", " + g.one("", "!") + g.reg("p")
	case strings.HasPrefix(op, "elect"):
		s += g.one("_", g.reg("r")) + "|" + g.reg("p")
	case strings.HasPrefix(op, "shfl") && !g.open:
		s += g.reg("r") + "|" + g.reg("p") + ", " + g.reg("r") + ", %lead, 31"
	case strings.HasPrefix(op, "shfl"):
		s += g.reg("r") + "|" + g.reg("p") + ", " + g.reg("r") + ", " + g.src(ptx.B32) + ", " + g.src(ptx.B32)
	default:
		s += g.reg("r")
		if strings.HasPrefix(op, "match.all") {
			s += "|" + g.reg("p")
		}
		if strings.HasSuffix(op, "64") {
			s += ", " + g.reg("d")
		} else {
			s += ", " + g.reg("r")
		}
	}
	return s + ", " + mask + ";\n"
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

// src returns a source operand: mostly a register, and always one for a type that has
// no constants.
func (g *randProg) src(t ptx.Type) string {
	if g.rnd.Intn(6) > 0 || t == ptx.Pred || t == ptx.U16x2 || t == ptx.S16x2 || t.Float() && t != ptx.F32 && t != ptx.F64 {
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
	case 1, 2:
		return g.decoded()
	}
	k := g.one(randKeys...)
	for approximate(k) && !g.open {
		k = g.one(randKeys...)
	}
	return g.tabled(k)
}

// tabled returns an operation of ops.txt on random operands.
func (g *randProg) tabled(k string) string { return g.plain(operationName(k), operations[k]) }

// operationName returns an operation of ops.txt as an instruction writes it.
func operationName(k string) string {
	name, suffix, _ := strings.Cut(k, "/")
	if suffix != "" { // modifiers are before the type
		i := strings.LastIndexByte(name, '.')
		name = name[:i] + "." + strings.ReplaceAll(suffix, "/", ".") + name[i:]
	}
	return name
}

func (g *randProg) plain(name string, f any) string {
	parts := strings.Split(name, ".")
	in := ptx.Inst{Op: parts[0], Mods: parts[1:]}
	types := in.OperandTypes()
	args := []string{g.reg(randClass(types[0]))}
	if in.Op == "setp" && g.rnd.Intn(3) == 0 {
		i := strings.IndexByte(name[5:], '.') + 5
		name = name[:i] + g.one(".and", ".or", ".xor") + name[i:]
		results := "%p0|%p1"
		if types[1] == ptx.F16 || types[1] == ptx.BF16 {
			results = "%p0"
		}
		return fmt.Sprintf("%s %s, %s, %s, %s%s", name, results, g.src(types[1]), g.src(types[2]), g.one("", "!"), g.reg("p"))
	}
	sources := reflect.TypeOf(f).NumIn() - 1
	for i := range sources {
		args = append(args, g.src(types[i+1]))
		if (in.Op == "bfe" || in.Op == "bfi") && i >= sources-2 && args[i+1][0] != '%' { // a position or a length
			args[i+1] = fmt.Sprint(g.rnd.Intn(256))
		}
	}
	if !g.open {
		g.define(in.Op, types[0], args)
	}
	return name + " " + strings.Join(args, ", ")
}

// define replaces operands for which PTX does not define the result: fns gets a
// position below 32, and a shift of 16 bits no constant that an assembler might read as
// negative.
func (g *randProg) define(op string, t ptx.Type, args []string) {
	switch {
	case t == ptx.F64 && len(args) == 4: // an assembler swaps a constant factor with the second one
		args[1] = g.reg("d")
	case op == "fns":
		args[2], args[3] = fmt.Sprint(g.rnd.Intn(32)), fmt.Sprint(g.rnd.Intn(70)-35)
	case (op == "shl" || op == "shr") && t.Size() == 2 && args[2][0] != '%':
		args[2] = fmt.Sprint(g.rnd.Intn(40))
	}
}

// oneNaN returns instructions that replace a NaN in a register of f64 by a fixed one,
// as the NaN of an atomic addition is undefined.
func (g *randProg) oneNaN(reg string) string {
	if g.open {
		return ""
	}
	return fmt.Sprintf("; setp.nan.f64 %%c, %s, %s; @%%c mov.b64 %s, 0xfff8000000000000", reg, reg, reg)
}

var (
	intNames   = []string{"u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"}
	floatNames = []string{"f16", "bf16", "f32", "f64"}
)

func (g *randProg) conversion() string {
	if g.rnd.Intn(4) == 0 {
		return packedConversions[g.rnd.Intn(len(packedConversions))]
	}
	to, from := g.one(append(intNames, floatNames...)...), g.one(append(intNames, floatNames...)...)
	if to == "bf16" && from[1:] == "8" || from == "bf16" && to[1:] == "8" { // assemblers do not support these
		to, from = "bf16", "bf16"
	}
	tt, _ := ptx.TypeByName(to)
	ft, _ := ptx.TypeByName(from)
	mods := ""
	switch {
	case tt.Float() && ft.Float():
		switch {
		case to == from:
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
	d, a := g.wider(tt), g.wider(ft)
	switch {
	case tt == ptx.BF16 || ft == ptx.BF16: // has neither .sat nor wider registers
		d, a = randClass(tt), randClass(ft)
	case g.rnd.Intn(4) == 0 && (tt.Float() || !holds(tt, ft)):
		mods += ".sat"
	}
	return fmt.Sprintf("cvt%s.%s.%s %s, %s", mods, to, from, g.reg(d), g.reg(a))
}

// holds reports whether an integer type can represent all values of another type.
func holds(t, of ptx.Type) bool {
	return !of.Float() && (t.Signed() == of.Signed() && t.Size() >= of.Size() || t.Signed() && t.Size() > of.Size())
}

// unrolled writes loads with one base and several offsets, as of an unrolled loop.
func (g *randProg) unrolled() {
	from := g.one("shared.b32 %s, [%%sa", "global.b32 %s, [%%mem", "shared.u8 %s, [%%sa", "global.s16 %s, [%%mem")
	for range 2 + g.rnd.Intn(4) {
		fmt.Fprintf(&g.out, "ld."+from+"+%d];\n", g.reg("r"), g.rnd.Intn(randShared/4)*4)
	}
}

// allocation writes an allocation, a store and a load there, and sometimes the release
// of it. A function and the kernel release the rest when they return.
func (g *randProg) allocation() {
	t := g.one("u32 %t", "u64 %wide")
	reg := t[4:]
	release := g.rnd.Intn(2) == 0
	w := &g.out
	if release {
		fmt.Fprintf(w, "stacksave.u64 %%at;\n")
	}
	fmt.Fprintf(w, "alloca.%s, %d%s;\n", t, 8+g.rnd.Intn(60), g.one("", ", 4", ", 64"))
	fmt.Fprintf(w, "st.local.b64 [%s], %s; st.local.b32 [%s+4], %s; ld.local.b64 %s, [%s];\n", reg, g.reg("d"), reg, g.reg("r"), g.reg("d"), reg)
	if release {
		fmt.Fprintf(w, "stackrestore.u64 %%at;\n")
	}
}

// decoded returns an instruction that has a decoder of its own.
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
		if g.rnd.Intn(3) == 0 {
			return fmt.Sprintf("lop3.%s.b32 %s|%s, %s, %s, %s, 0x%x, %s%s", g.one("or", "and"), g.one(g.reg("r"), "_"), g.reg("p"), g.reg("r"), g.src(ptx.B32), g.src(ptx.B32), g.rnd.Intn(256), g.one("", "!"), g.reg("p"))
		}
		return fmt.Sprintf("lop3.b32 %s, %s, %s, %s, 0x%x", g.reg("r"), g.reg("r"), g.src(ptx.B32), g.src(ptx.B32), g.rnd.Intn(256))
	case 3:
		return fmt.Sprintf("%s.pred %s, %s, %s%s", g.one("and", "or", "xor"), g.reg("p"), g.reg("p"), g.one("", "!"), g.reg("p"))
	case 4:
		return fmt.Sprintf("mov.b32 %s, {%s, %s}", g.reg("r"), g.reg("h"), g.reg("h"))
	case 5:
		switch g.rnd.Intn(3) {
		case 0:
			bits := g.one("2", "4", "8", "16")
			s := fmt.Sprintf("cvt.pack.sat.%s%s.s32%s %s, %s, %s", g.one("u", "s"), bits, map[bool]string{true: ".b32"}[bits != "16"], g.reg("r"), g.reg("r"), g.src(ptx.S32))
			if bits != "16" {
				s += ", " + g.reg("r")
			}
			return s
		case 1:
			with, last := g.one("", ".and", ".or", ".xor"), ""
			if with != "" {
				last = ", " + g.one("", "!") + g.reg("p")
			}
			return fmt.Sprintf("setp.%s%s.%s %%p0|%%p1, %s, %s%s", g.one("eq", "ne", "lt", "le", "gtu", "geu", "num", "nan"), with, g.one("f16x2", "bf16x2"), g.reg("r"), g.reg("r"), last)
		}
		return fmt.Sprintf("mov.b64 {%s, %s}, %s", "%r0", "%r1", g.reg("d"))
	}
	if g.rnd.Intn(2) == 0 {
		return g.extended()
	}
	if g.rnd.Intn(3) == 0 {
		return g.video()
	}
	st := g.one("u16", "s32", "u64", "f32", "f64", "f16")
	for !g.open && (st == "u16" || st == "f16") { // on a GPU, a guard did not preserve all bits of their results
		st = g.one("s32", "u64", "f32", "f64")
	}
	sty, _ := ptx.TypeByName(st)
	how := []string{g.one("eq", "ne", "lt", "le", "gt", "ge"), g.one("u32", "s32", "f32")}
	if st == "f16" || !g.open && st[0] != 'f' { // on a GPU, a guarded set.f32 of integers has converted the old value
		how[1] = g.one("u32", "s32")
	}
	if g.rnd.Intn(3) == 0 { // the order that GCC writes
		how[0], how[1] = how[1], how[0]
	}
	return fmt.Sprintf("set.%s.%s.%s %s, %s, %s", how[0], how[1], st, g.reg("r"), g.src(sty), g.src(sty))
}

// wider returns the class of a register for a type: that of an integer may be wider.
func (g *randProg) wider(t ptx.Type) string {
	if t.Float() || g.rnd.Intn(3) > 0 {
		return randClass(t)
	}
	switch t.Size() {
	case 1, 2:
		return g.one("h", "r", "d")
	case 4:
		return g.one("r", "d")
	}
	return "d"
}

// randBits returns random bits, often corner cases of the types of that size.
func randBits(rnd *rand.Rand, bytes int) uint64 {
	v := rnd.Uint64()
	if rnd.Intn(2) == 0 {
		corners := randCorners[bytes]
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

// randCorners has the corner cases of the types by size in bytes.
var randCorners = map[int][]uint64{
	1: {0, 1, 0x7f, 0x80, 0xff},
	2: {0, 0x8000, 1, 0x8001, 0x03ff, 0x0400, 0x3c00, 0x7bff, 0x7c00, 0xfc00, 0x7e00, 0x7fff, 0xffff, 0x3f80, 0x7f80, 0x007f},
	4: {0, 1 << 31, 1, 0x80000001, 0x007fffff, 0x00800000, 0x3f800000, 0xbf800000, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000,
		0x7f800001, 0x7fffffff, 0xffffffff, 0x4b000001, 31, 32, 33, 0x4f000000, 0xcf000000, 0x3effffff, 0x33800000, 0x477fefff, 0x3c003c00},
	8: {0, 1 << 63, 1, 1<<63 | 1, 1<<52 - 1, 1 << 52, 0x3ff0000000000000, 0xbff0000000000000, 0x7fefffffffffffff, 0x7ff0000000000000,
		0xfff0000000000000, 0x7ff8000000000000, 0x7ff0000000000001, 1<<63 - 1, 1<<64 - 1, 63, 64, 65, 0x43e0000000000000, 0xc3e0000000000000,
		0x36a0000000000000, 0x47efffffe0000000, 0x380fffffffffffff, 0x3e70000000000000},
}

// extended returns arithmetic with the carry flag.
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
