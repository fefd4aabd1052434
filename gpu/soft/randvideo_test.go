package soft_test

import (
	"fmt"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// video returns a video instruction, on registers or on parts of them.
func (g *randProg) video() string {
	if g.rnd.Intn(8) == 0 {
		return g.vmad()
	}
	op, parts := g.one("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vavrg", "vset", "vshl", "vshr"), g.one("", "2", "4")
	sat, how, types := g.one("", ".sat"), "", "."+g.one("u32", "s32")+"."+g.one("u32", "s32")+"."+g.one("u32", "s32")
	switch op {
	case "vavrg":
		parts = g.one("2", "4")
	case "vset":
		sat, how, types = "", g.one(".eq", ".ne", ".lt", ".le", ".gt", ".ge"), types[:8]
	case "vshl", "vshr":
		parts, how, types = "", g.one(".clamp", ".wrap"), types[:8]+".u32"
	}
	if parts == "" && !g.open { // a GPU limits results of 32 bits contrary to the text
		sat = ""
	}
	s := op + parts + types
	if parts != "" {
		then := sat + how
		if sat == "" {
			then += g.one("", ".add")
		}
		d := map[string][]string{"2": {".h0", ".h1", ".h10"}, "4": {".b0", ".b1", ".b20", ".b321", ".b30", ".b3210"}}[parts]
		return s + fmt.Sprintf("%s %s%s, %s%s, %s%s, %s", then, g.reg("r"), g.one(append(d, "", "")...), g.reg("r"), g.parts(parts), g.reg("r"), g.parts(parts), g.reg("r"))
	}
	a, b, c := g.src(ptx.U32), g.reg("r")+g.part(), ", "+g.src(ptx.U32)
	if a[0] == '%' {
		a += g.part()
	}
	if g.rnd.Intn(3) == 0 {
		d := g.one(".b0", ".b1", ".b2", ".b3", ".h0", ".h1")
		for !g.open && (d == ".h1" || d == ".b3") { // a GPU merges the upper bits of the result there
			d = g.one(".b0", ".b1", ".b2", ".h0")
		}
		return s + fmt.Sprintf("%s %s%s, %s, %s%s", sat+how, g.reg("r"), d, a, b, c)
	}
	then := g.one("", ".add")
	if sat != "" || op == "vset" {
		then = g.one("", ".add", ".min", ".max")
	}
	if then == "" {
		c = ""
	}
	return s + fmt.Sprintf("%s %s, %s, %s%s", sat+how+then, g.reg("r"), a, b, c)
}

// vmad returns a vmad with any of its options.
func (g *randProg) vmad() string {
	s := "vmad." + g.one("u32", "s32") + "." + g.one("u32", "s32") + "." + g.one("u32", "s32")
	signs := g.one("   ", "   ", "-  ", " - ", "-- ", "---", "  -")
	if signs == "   " {
		s += g.one("", ".po")
	}
	s += g.one("", ".sat") + g.one("", ".shr7", ".shr15")
	sign := func(i int) string { return strings.TrimSpace(signs[i : i+1]) }
	return fmt.Sprintf("%s %s, %s%s%s, %s%s%s, %s%s", s, g.reg("r"), sign(0), g.reg("r"), g.part(), sign(1), g.reg("r"), g.part(), sign(2), g.reg("r"))
}

// part returns a selector of a source: all of it, or one part.
func (g *randProg) part() string { return g.one("", "", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1") }

// parts returns a selector of two or four parts of two sources.
func (g *randProg) parts(n string) string {
	switch {
	case g.rnd.Intn(2) == 0:
		return ""
	case n == "2":
		return fmt.Sprintf(".h%d%d", g.rnd.Intn(4), g.rnd.Intn(4))
	}
	return fmt.Sprintf(".b%d%d%d%d", g.rnd.Intn(8), g.rnd.Intn(8), g.rnd.Intn(8), g.rnd.Intn(8))
}
