package soft_test

import "fmt"

// Calls of a random program. A function has the registers of a kernel, which begin with
// the values of its parameters, the caller's part of memory, and local memory of its
// own.

// randFunction is a function. Its parameters are registers or in memory.
type randFunction struct {
	name        string
	inRegisters bool
}

// function writes a function, which may call those before it.
func (g *randProg) function() {
	f := randFunction{fmt.Sprintf("f%d", len(g.functions)), g.rnd.Intn(3) == 0}
	w := &g.out
	if f.inRegisters {
		fmt.Fprintf(w, ".func (.reg .b64 %%out) %s(.reg .b64 %%pmem, .reg .b32 %%psa, .reg .b32 %%pmask, .reg .b64 %%x, .reg .b32 %%y) {\n%s", f.name, randRegisters)
		w.WriteString("mov.b64 %mem, %pmem; mov.b32 %sa, %psa; mov.b32 %m1, %pmask; mov.b64 %d0, %x; mov.b32 %r0, %y;\n")
	} else {
		fmt.Fprintf(w, ".func (.param .b64 out) %s(.param .b64 pmem, .param .b32 psa, .param .b32 pmask, .param .align 16 .b8 x[16]) {\n%s", f.name, randRegisters)
		w.WriteString("ld.param.b64 %mem, [pmem]; ld.param.b32 %sa, [psa]; ld.param.b32 %m1, [pmask]; ld.param.b64 %d0, [x]; ld.param.b32 %r0, [x+8];\n")
	}
	w.WriteString("mov.u32 %thread, %tid.x; mov.u32 %lane, %laneid; mov.u32 %la, loc; " + randCarry)
	for i := 1; i < randR; i++ {
		fmt.Fprintf(w, "mad.lo.u32 %%r%d, %%r%d, 0x%x, %%thread; ", i, i-1, g.rnd.Uint32()|1)
	}
	for i := 1; i < randD; i++ {
		fmt.Fprintf(w, "xor.b64 %%d%d, %%d%d, 0x%x; ", i, i-1, randBits(g.rnd, 8))
	}
	for i := range randH {
		fmt.Fprintf(w, "cvt.u16.u32 %%h%d, %%r%d; ", i, i)
	}
	for i := range randP {
		fmt.Fprintf(w, "setp.lt.s32 %%p%d, %%r%d, %%r%d; ", i, i, i+1)
	}
	for at := 0; at < randShared; at += 16 {
		fmt.Fprintf(w, "st.local.v2.b64 [loc+%d], {%%d%d, %%d%d};\n", at, at/16, at/16+1)
	}
	g.body(1, 4+g.rnd.Intn(8))
	fmt.Fprintf(w, "cvt.u64.u32 %%wide, %s; xor.b64 %%d0, %s, %%wide;\n", g.reg("r"), g.reg("d"))
	if f.inRegisters {
		w.WriteString("mov.b64 %out, %d0; ret;\n}\n")
	} else {
		w.WriteString("st.param.b64 [out], %d0; ret;\n}\n")
	}
	g.functions = append(g.functions, f)
}

// call writes a call of a function for all lanes of the region, or for those with a
// guard. The others may call another function, by its address.
func (g *randProg) call(depth int) {
	w, region := &g.out, fmt.Sprintf("%%m%d", depth)
	f := g.functions[g.rnd.Intn(len(g.functions))]
	guard, mask := "", region
	if g.rnd.Intn(2) == 0 {
		fmt.Fprintf(w, "mov.pred %%c, %s; vote.sync.ballot.b32 %%pm, %%c, %s;\n", g.reg("p"), region)
		guard, mask = "@%c ", "%pm"
	}
	d, x, y := g.reg("d"), g.reg("d"), g.reg("r")
	if f.inRegisters {
		fmt.Fprintf(w, "%scall (%s), %s, (%%mem, %%sa, %s, %s, %s);\n%s", guard, d, f.name, mask, x, y, randCarry)
		return
	}
	g.labels++
	target, proto := f.name, ""
	if g.rnd.Intn(2) == 0 {
		target, proto = "%wide", fmt.Sprintf(", P%d", g.labels)
		fmt.Fprintf(w, "P%d: .callprototype (.param .b64 _) _ (.param .b64 _, .param .b32 _, .param .b32 _, .param .align 16 .b8 _[16]);\n", g.labels)
		fmt.Fprintf(w, "mov.u64 %%wide, %s;\n", f.name)
		for _, other := range g.functions {
			if guard != "" && !other.inRegisters && other != f { // both parts call
				fmt.Fprintf(w, "@!%%c mov.u64 %%wide, %s; @!%%c xor.b32 %%pm, %%pm, %s;\n", other.name, region)
				guard = ""
			}
		}
	}
	fmt.Fprintf(w, "{ .param .b64 o; .param .b64 a; .param .b32 b, c; .param .align 16 .b8 s[16];\nst.param.b64 [a], %%mem; st.param.b32 [b], %%sa; st.param.b32 [c], %s; st.param.b64 [s], %s; st.param.b32 [s+8], %s;\n", mask, x, y)
	// The result in lanes that have not called is undefined, and a load of a result has no
	// guard.
	fmt.Fprintf(w, "%scall (o), %s, (a, b, c, s)%s;\nld.param.b64 %%wide, [o]; }\n%smov.b64 %s, %%wide;\n%s", guard, target, proto, guard, d, randCarry)
}
