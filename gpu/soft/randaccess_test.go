package soft_test

import (
	"fmt"
	"math/rand"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// Accesses of random programs of regions, of every type and width: to the thread's own
// memory, with lanes at consecutive addresses or not, and loads from a table that is
// not written, at any addresses.

// randTableWords is the number of words of the table.
const randTableWords = 64

// randTable is the declaration of the table.
var randTable = func() string {
	var list []string
	for rnd := rand.New(rand.NewSource(1)); len(list) < randTableWords; {
		list = append(list, fmt.Sprint(uint32(randBits(rnd, 4))))
	}
	return fmt.Sprintf(".global .align 16 .b32 tab[%d] = {%s};\n", randTableWords, strings.Join(list, ", "))
}()

// regionAccess writes a load or store that is not ordered.
func (g *randProg) regionAccess() {
	w := &g.out
	switch g.rnd.Intn(8) {
	case 0: // the lanes' own numbers in one of two allocations
		to := g.one("u8 "+g.reg("r"), "s8 "+g.reg("h"))
		if g.stripe == 0 || g.stripe >= 4 {
			to = "u32 " + g.reg("r")
		}
		fmt.Fprintf(w, "selp.b64 %%wide, %%mem, %%base, %s; ld.global.%s, [%%wide];\n", g.reg("p"), to)
		return
	case 1, 2:
		g.tableLoad()
		return
	}
	space, t := g.one("global", "global", "shared", "local"), ""
	most := 16
	if g.stripe > 0 && space != "local" {
		most = g.stripe
	}
	t, class, n := g.accessType(most)
	size := n * sizeOf(t)
	at := map[string]string{"global": "%mem", "shared": "%sa", "local": "%la"}[space]
	off := g.rnd.Intn(randShared/size) * size
	if space != "local" {
		off = g.striped(space, off)
	}
	if n > 1 {
		t = fmt.Sprintf("v%d.%s", n, t)
	}
	if g.rnd.Intn(2) == 0 {
		fmt.Fprintf(w, "%sld.%s.%s %s, [%s+%d];\n", g.guard(), space, t, g.vector(class, n, true), at, off)
		return
	}
	fmt.Fprintf(w, "%sst.%s.%s [%s+%d], %s;\n", g.guard(), space, t, at, off, g.vector(class, n, false))
}

// accessType returns a type, the class of its registers, and the number of elements of
// an access of at most that many bytes.
func (g *randProg) accessType(most int) (t, class string, n int) {
	for n = 16; ; n = 1 << g.rnd.Intn(3) {
		t = g.one(accessTypes...)
		if size := sizeOf(t); n <= 4 && n*size <= most {
			break
		}
	}
	ty, _ := ptx.TypeByName(t)
	class = randClass(ty)
	if ty.Size() < 4 && t[0] != 'b' { // the register may be wider
		class = g.one("h", "r", "d")
	}
	return t, class, n
}

func sizeOf(t string) int {
	ty, _ := ptx.TypeByName(t)
	return int(ty.Size())
}

// tableLoad writes a load from the table: from one address, by warp, by lane, or by the
// value of a register.
func (g *randProg) tableLoad() {
	w := &g.out
	t, class, n := g.accessType(16)
	size := n * sizeOf(t)
	if n > 1 {
		t = fmt.Sprintf("v%d.%s", n, t)
	}
	half := 2 * randTableWords // bytes
	off := g.rnd.Intn(half/size) * size
	to := g.vector(class, n, true)
	if g.rnd.Intn(4) == 0 {
		fmt.Fprintf(w, "%sld.global.%s %s, [tab+%d];\n", g.guard(), t, to, off)
		return
	}
	switch g.rnd.Intn(3) {
	case 0:
		fmt.Fprintf(w, "shr.u32 %%t, %%thread, 5; ")
	case 1:
		fmt.Fprintf(w, "and.b32 %%t, %%thread, %d; ", min(7, half/size-1))
	default:
		fmt.Fprintf(w, "and.b32 %%t, %s, %d; ", g.reg("r"), min(31, half/size-1))
	}
	fmt.Fprintf(w, "mul.wide.u32 %%wide, %%t, %d; mov.u64 %%at, tab; add.u64 %%wide, %%wide, %%at; %sld.global.%s %s, [%%wide+%d];\n", size, g.guard(), t, to, off)
}
