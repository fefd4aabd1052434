package soft_test

import (
	"fmt"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// Memory accesses of a random program: each thread reads and writes its own part of
// global, shared and local memory.

// accessTypes are the types of ld and st.
var accessTypes = []string{"b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"}

// updates are the operations of atom and red on one element.
var updates = append([]string{
	"add.noftz.f16", "add.noftz.bf16", "add.noftz.bf16x2", "cas.b16",
}, atomicCases...)

// vectorUpdates are the operations on vectors, which are for global memory only.
var vectorUpdates = []string{"add.v2.f32", "add.v4.f32", "add.noftz.v2.f16", "max.noftz.v4.bf16", "min.noftz.v2.bf16x2", "add.noftz.v4.f16x2"}

// memory returns an access to the thread's part of any space, by an address of any
// form.
func (g *randProg) memory() string {
	switch g.rnd.Intn(8) {
	case 0:
		op := g.one(vectorUpdates...)
		class, n := randClass(typeIn(op)), int(op[strings.Index(op, ".v")+2]-'0')
		s, at := g.place("global", 16)
		if g.rnd.Intn(2) == 0 {
			return s + g.guard() + "red.global." + op + " " + at + ", " + g.vector(class, n, false)
		}
		return s + g.guard() + "atom.global." + op + " " + g.vector(class, n, true) + ", " + at + ", " + g.vector(class, n, false)
	case 1, 2:
		return g.update()
	}
	t := g.one(accessTypes...)
	ty, _ := ptx.TypeByName(t)
	n, vec := 1, ""
	if g.rnd.Intn(3) == 0 && ty.Size() > 1 {
		n = min(16/int(ty.Size()), 2<<g.rnd.Intn(2))
		vec = fmt.Sprintf(".v%d", n)
	}
	space := g.one("global", "global", "shared", "local")
	s, at := g.place(space, n*int(ty.Size()))
	name := g.spelled(space, at)
	class := randClass(ty)
	if ty.Size() < 4 && strings.ContainsAny(t[:1], "us") { // the register may be wider
		class = g.one("h", "r", "d")
	}
	if g.rnd.Intn(2) == 0 {
		op := "ld" + name
		if space != "local" { // PTX has no memory order for local memory
			op = g.one(op, op, "ld.volatile"+name, "ld.relaxed.gpu"+name, "ld.acquire.sys"+name)
		}
		if op == "ld"+name && space == "global" && name != "" {
			op += g.one("", ".ca", ".cg", ".cs", ".lu", ".cv", ".L1::no_allocate")
		}
		return s + g.guard() + op + vec + "." + t + " " + g.vector(class, n, true) + ", " + at
	}
	op := "st" + name
	if space != "local" {
		op = g.one(op, op, "st.volatile"+name, "st.relaxed.cta"+name, "st.release.gpu"+name)
	}
	if op == "st"+name && space == "global" && name != "" {
		op += g.one("", ".wb", ".cg", ".cs", ".wt")
	}
	return s + g.guard() + op + vec + "." + t + " " + at + ", " + g.vector(class, n, false)
}

// update returns an atom or red.
func (g *randProg) update() string {
	op := g.one(updates...)
	for op == "add.f64" && !g.open { // may result in a NaN with any bits
		op = g.one(updates...)
	}
	ty := typeIn(op)
	class := randClass(ty)
	space := g.one("global", "shared")
	s, at := g.place(space, int(ty.Size()))
	scope := g.one("", "", ".relaxed.gpu", ".acq_rel.cta", ".release.sys") + g.spelled(space, at) + "." + op
	args := at + ", " + g.src(ty)
	if strings.HasPrefix(op, "cas") {
		args += ", " + g.src(ty)
	}
	if g.rnd.Intn(3) == 0 && !strings.HasPrefix(op, "cas") && !strings.HasPrefix(op, "exch") {
		return s + g.guard() + "red" + strings.ReplaceAll(scope, ".acq_rel", ".release") + " " + args
	}
	return s + g.guard() + "atom" + scope + " " + g.reg(class) + ", " + args
}

// typeIn returns the type among the parts of a name.
func typeIn(name string) ptx.Type {
	for _, p := range strings.Split(name, ".") {
		if t, ok := ptx.TypeByName(p); ok {
			return t
		}
	}
	panic("no type in " + name)
}

// vector returns n registers of a class; those that are written are different.
func (g *randProg) vector(class string, n int, written bool) string {
	if n == 1 {
		return g.reg(class)
	}
	count := map[string]int{"h": randH, "r": randR, "d": randD}[class]
	var list []string
	for i, r := range g.rnd.Perm(count) {
		if i == n {
			break
		}
		list = append(list, fmt.Sprintf("%%%s%d", class, r))
	}
	for len(list) < n && !written {
		list = append(list, g.reg(class))
	}
	return "{" + strings.Join(list, ", ") + "}"
}

// spelled returns the space as the instruction names it; it is empty for a generic
// address.
func (g *randProg) spelled(space, at string) string {
	switch {
	case strings.HasPrefix(at, "[%wide") && strings.HasSuffix(at, "+0]"), space == "global" && g.rnd.Intn(4) == 0:
		return ""
	case space == "shared" && g.rnd.Intn(4) == 0:
		return ".shared::cta"
	}
	return "." + space
}

// place returns the address of size bytes of the thread's part of a space, and the
// instructions that compute it.
//
// The addresses of shared and local memory have 32 bits: the sum of the register and
// the offset wraps around, and the upper half of a 64-bit register is ignored. A
// generic address is in %wide with the offset 0.
func (g *randProg) place(space string, size int) (compute, at string) {
	if space == "global" {
		off := g.rnd.Intn(randScratch/max(8, size)) * max(8, size)
		by := []int{0, 0, 8, 4096, 1 << 31}[g.rnd.Intn(5)]
		if by == 0 {
			return "", fmt.Sprintf("[%%mem+%d]", off)
		}
		return fmt.Sprintf("add.s64 %%wide, %%mem, %d; ", by), fmt.Sprintf("[%%wide+%d]", off-by)
	}
	base := map[string]string{"shared": "%sa", "local": "%la"}[space]
	off := g.rnd.Intn(randShared/max(8, size)) * max(8, size)
	if g.rnd.Intn(4) == 0 {
		return fmt.Sprintf("add.u32 %%t, %s, %d; cvt.u64.u32 %%wide, %%t; cvta.%s.u64 %%wide, %%wide; ", base, off, space), "[%wide+0]"
	}
	by := []int{0, 8, 64, 4096, 1 << 20, 1<<31 - 256}[g.rnd.Intn(6)]
	if g.rnd.Intn(2) == 0 {
		by = -by
	}
	compute, at = fmt.Sprintf("sub.u32 %%t, %s, %d; ", base, by), fmt.Sprintf("[%%t+%d]", off+by)
	if off+by != 0 && g.rnd.Intn(3) == 0 {
		compute += fmt.Sprintf("mov.b64 %%wide, {%%t, %s}; ", g.reg("r"))
		at = fmt.Sprintf("[%%wide+%d]", off+by)
	}
	return compute, at
}
