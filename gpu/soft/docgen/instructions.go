package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/soft/compile"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// group is a section of the PTX ISA, "Instructions", with its opcodes that are not in
// ops.txt, and the forms of them that are implemented. The limits are those that
// gpu/soft/compile checks.
type group struct {
	section string
	opcodes string // separated by spaces
	what    string
}

var groups = []group{
	{"Integer arithmetic", "addc subc madc", "with and without `.cc`; `add`, `sub` and `mad` with `.cc` too"},
	{"Comparison, selection, logic", "setp set selp slct and or xor not lop3", "all types; with a second predicate and a boolean operation; predicates"},
	{"Data movement", "mov ld ldu st", "all state spaces, `.v2`, `.v4`, `.v8`, orders, scopes, cache operators and hints; `st.async`; not `.b128`, `st.bulk`"},
	{"", "cvt", "between all integers and floats, besides those of the table above"},
	{"", "cvta isspacep mapa getctarank istypep", "all"},
	{"", "cp", "`cp.async`, `cp.async.bulk`, `cp.reduce.async.bulk` and both of `.tensor` in tiles and im2col, also to several blocks of a cluster; not `gather4` and `scatter4`. All is done at once"},
	{"", "tensormap", "`replace` of the fields of capability 9.0, without interleaved layouts; `cp_fenceproxy`"},
	{"", "prefetch prefetchu createpolicy applypriority discard", "hints, without effect"},
	{"Textures and surfaces", "tex tld4 txq suld sust sured suq", "of objects; `.1d` to `.3d`, arrays, cubes, levels and gradients; not several samples, not depth"},
	{"Control flow", "bra brx call ret exit", "calls of addresses and recursion too"},
	{"Synchronization", "bar barrier", "of blocks, of warps, of clusters; with numbers, counts and reductions"},
	{"", "membar fence", "without effect: one processor's order is what all see"},
	{"", "atom red", "all operations of scalars; `.v2`, `.v4` and `.v8` of floats; `red.async`"},
	{"", "shfl vote match redux elect activemask", "with and without `.sync` where PTX has both"},
	{"", "mbarrier", "`init` to `try_wait`, on objects in shared memory of the block and of its cluster"},
	{"", "griddepcontrol nanosleep", "without effect"},
	{"Matrices", "mma wmma ldmatrix stmatrix movmatrix", "half, bf16, tf32, f64, fp8, integers and single bits; `mma.sp` with sparse A; not the kinds of capability 12.0"},
	{"", "wgmma", "`mma_async` with all swizzles, also with sparse A"},
	{"Stack", "alloca stacksave stackrestore", "32 KiB of a thread"},
	{"Video", "vadd vsub vabsdiff vmin vmax vset vshl vshr", "with selectors of parts, merging and secondary operations"},
	{"", "vmad", "with selectors of parts, negation, `.po`, scaling and saturation"},
	{"", "vadd2 vsub2 vabsdiff2 vmin2 vmax2 vavrg2 vset2 vadd4 vsub4 vabsdiff4 vmin4 vmax4 vavrg4 vset4", "with selectors of parts and masks"},
	{"Others", "trap brkpt", "end the kernel"},
	{"", "pmevent setmaxnreg", "without effect"},
	{"", "multimem", "compiles, and ends the kernel: the device has no multicast objects"},
}

// instructions returns the table of the instructions that are not in ops.txt.
func instructions() string {
	known := compile.Opcodes()
	var b strings.Builder
	b.WriteString("| | instructions | what |\n|---|---|---|\n")
	for _, g := range groups {
		opcodes := slices.DeleteFunc(strings.Fields(g.opcodes), func(op string) bool { return !slices.Contains(known, op) })
		fmt.Fprintf(&b, "| %s | `%s` | %s |\n", g.section, strings.Join(opcodes, "` `"), g.what)
	}
	return b.String()
}

// tabled reports whether ops.txt has an opcode.
func tabled(op string) bool {
	for key := range ops.Operations() {
		if name, _, _ := strings.Cut(key, "."); name == op {
			return true
		}
	}
	return false
}

// isa has the opcodes of the PTX ISA 8.7, "Instructions".
var isa = strings.Fields(`
	abs activemask add addc alloca and applypriority atom bar barrier bfe bfi bfind bmsk bra brev brkpt brx call
	clusterlaunchcontrol clz cnot copysign cos cp createpolicy cvt cvta discard div dp2a dp4a elect ex2 exit fence fma fns
	getctarank griddepcontrol isspacep istypep ld ldmatrix ldu lg2 lop3 mad mad24 madc mapa match max mbarrier membar min mma
	mov movmatrix mul mul24 multimem nanosleep neg not or pmevent popc prefetch prefetchu prmt rcp red redux rem ret rsqrt sad
	selp set setmaxnreg setp shf shfl shl shr sin slct sqrt st stackrestore stacksave stmatrix sub subc suld suq sured sust
	szext tanh tcgen05 tensormap testp tex tld4 trap txq vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad
	vmax vmax2 vmax4 vmin vmin2 vmin4 vote vset vset2 vset4 vshl vshr vsub vsub2 vsub4 wgmma wmma xor`)

// refused returns the opcodes of PTX that the compiler does not implement.
func refused() string {
	known := compile.Opcodes()
	var list []string
	for _, op := range isa {
		if !slices.Contains(known, op) {
			list = append(list, "`"+op+"`")
		}
	}
	return strings.Join(list, ", ") + ".\n"
}
