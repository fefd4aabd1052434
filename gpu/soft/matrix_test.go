package soft_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// matrixHead is the head of modules with matrix instructions: tensor cores began with
// sm_70.
const matrixHead = ".version 8.4\n.target sm_90a\n.address_size 64\n"

// elementBits has the sizes of the element types in bits.
var elementBits = map[string]int{"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "f32": 32, "f64": 64, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1, "s32": 32}

// lanesKernel returns a kernel of one warp whose lanes load the given numbers of
// registers (%a, %b, %c, or %fa … of f64) from their parts of a buffer, execute a body,
// and store registers %d. Word i of a lane is 8 bytes.
func lanesKernel(wide bool, na, nb, nc, nd int, body string) string {
	t, p := "b32", "%"
	if wide {
		t = "f64"
	}
	var s strings.Builder
	fmt.Fprintf(&s, matrixHead+".entry k(.param .u64 in, .param .u64 out) {\n.reg .%s %sa<9>, %sb<9>, %sc<9>, %sd<9>; .reg .b64 %%in, %%out, %%gs; .reg .b32 %%thread, %%sa;\n", t, p, p, p, p)
	s.WriteString(".shared .align 128 .b8 sh[8192];\nld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %thread, %tid.x;\n")
	fmt.Fprintf(&s, "mad.wide.u32 %%in, %%thread, %d, %%in; mad.wide.u32 %%out, %%thread, %d, %%out;\n", 8*(na+nb+nc), 8*nd)
	at := 0
	for _, o := range []struct {
		name string
		n    int
	}{{"a", na}, {"b", nb}, {"c", nc}} {
		for i := range o.n {
			fmt.Fprintf(&s, "ld.global.%s %%%s%d, [%%in+%d];\n", t, o.name, i, at)
			at += 8
		}
	}
	s.WriteString(body)
	for i := range nd {
		fmt.Fprintf(&s, "st.global.%s [%%out+%d], %%d%d;\n", t, 8*i, i)
	}
	s.WriteString("ret;\n}\n")
	return s.String()
}

func list(name string, n int) string {
	var l []string
	for i := range n {
		l = append(l, fmt.Sprintf("%%%s%d", name, i))
	}
	return "{" + strings.Join(l, ", ") + "}"
}

// againstOracle executes a lanesKernel on the device and on the oracle, and compares
// what it stores, which has elements of a type.
func againstOracle(t *testing.T, typ, src string, in []byte, out int) {
	t.Helper()
	againstOracleOf(t, 32, typ, src, in, out)
}

// againstOracleOf is againstOracle for a number of threads.
func againstOracleOf(t *testing.T, threads int, typ, src string, in []byte, out int) {
	t.Helper()
	againstOracleWithin(t, threads, src, in, out, func(all []byte) func(got, want []byte) bool { return sameWithin(typ, all) })
}

// againstOracleWithin is againstOracle with a function that returns the comparison for
// a GPU, given all results of the oracle.
func againstOracleWithin(t *testing.T, threads int, src string, in []byte, out int, within func(all []byte) func(got, want []byte) bool) {
	t.Helper()
	block := [3]uint32{uint32(threads), 1, 1}
	r := newRig(t, src)
	di, do := r.buffer(in), r.buffer(make([]byte, out))
	r.launch("k", [3]uint32{1, 1, 1}, block, 0, di, do)
	got, err := r.read(do, out)
	if err != nil {
		t.Fatalf("execute kernel: %v\n%s", err, src)
	}
	want := make([]byte, out)
	oracleRun(t, src, "k", [3]uint32{1, 1, 1}, block, 0, pack(di, do), oracleMemory{di: in, do: want})
	same := bytes.Equal
	if card(t) != nil {
		same = within(want)
	}
	for i := 0; i < out; i += 8 {
		if !same(got[i:i+8], want[i:i+8]) {
			t.Fatalf("thread %d, register %d = %#x, want %#x as the oracle\n%s", i*threads/out, i/8%(out/8/threads), binary.LittleEndian.Uint64(got[i:]), binary.LittleEndian.Uint64(want[i:]), src)
		}
	}
}

// sameWithin compares elements of a matrix as those of a GPU may differ from the
// oracle's: the rounding of sums is undefined. The tolerance is relative to the largest
// element.
func sameWithin(typ string, all []byte) func(got, want []byte) bool {
	share := map[string]float64{"f16": 1. / 256, "f32": 1. / 1024}[typ]
	if share == 0 {
		return bytes.Equal
	}
	largest := 0.
	for _, x := range numbersOf(typ, all) {
		if !math.IsInf(x, 0) && !math.IsNaN(x) {
			largest = max(largest, math.Abs(x))
		}
	}
	return func(got, want []byte) bool {
		a, b := numbersOf(typ, got), numbersOf(typ, want)
		for i := range a {
			if math.IsInf(a[i], 0) && math.IsInf(b[i], 0) { // large numbers may have cancelled in another order
				continue
			}
			if a[i] != b[i] && !(math.Abs(a[i]-b[i]) <= share*largest) && !(math.IsNaN(a[i]) && math.IsNaN(b[i])) {
				return false
			}
		}
		return true
	}
}

// numbersOf returns the numbers of a floating-point type in a buffer.
func numbersOf(typ string, b []byte) (list []float64) {
	for i := 0; i < len(b); i += elementBits[typ] / 8 {
		switch typ {
		case "f16":
			list = append(list, float64(half(uint32(binary.LittleEndian.Uint16(b[i:])))))
		case "f32":
			list = append(list, float64(math.Float32frombits(binary.LittleEndian.Uint32(b[i:]))))
		}
	}
	return list
}

// matrixData returns random elements. Most floating-point numbers are near 1, so that
// sums are rounded, and some are corner cases.
func matrixData(rnd *rand.Rand, words int, typ string, corners bool) []byte {
	b := make([]byte, 8*words)
	for i := range words {
		v := rnd.Uint64()
		if corners {
			each := min(elementBits[typ], 32) / 8
			switch {
			case elementBits[typ] == 64:
				v = randBits(rnd, 8)
			case each == 4:
				v = randBits(rnd, 4)
			case each == 2:
				v = randBits(rnd, 2) | randBits(rnd, 2)<<16
			}
		} else {
			switch typ {
			case "f16":
				v = v&0x9fff9fff | 0x20002000
			case "bf16":
				v = v&0x87ff87ff | 0x38003800
			case "f32", "tf32":
				v = v&0x87ffffff | 0x38000000
			case "f64":
				v = v&0x807fffffffffffff | 0x3f80000000000000
			}
		}
		binary.LittleEndian.PutUint64(b[8*i:], v)
	}
	return b
}

var shapePattern = regexp.MustCompile(`m(\d+)n(\d+)k(\d+)`)

// regsOf returns the number of registers that a lane has for a matrix.
func regsOf(elements int, typ string) int {
	return elements * min(elementBits[typ], 32) / (32 * 32)
}

// mmaInstructions returns all forms of mma.
func mmaInstructions() (list []string) {
	add := func(shapes, layout string, types ...string) {
		for _, s := range strings.Fields(shapes) {
			for _, t := range types {
				list = append(list, "mma.sync.aligned."+s+layout+t)
			}
		}
	}
	rc := ".row.col."
	for _, layout := range []string{".row.col.", ".row.row.", ".col.row.", ".col.col."} {
		add("m8n8k4", layout, "f16.f16.f16.f16", "f32.f16.f16.f16", "f32.f16.f16.f32")
	}
	add("m16n8k8 m16n8k16", rc, "f16.f16.f16.f16", "f32.f16.f16.f32", "f32.bf16.bf16.f32")
	add("m16n8k4 m16n8k8", rc, "f32.tf32.tf32.f32")
	add("m8n8k4 m16n8k4 m16n8k8 m16n8k16", rc, "f64.f64.f64.f64")
	add("m16n8k32 m16n8k16", rc, "f32.e4m3.e4m3.f32", "f32.e4m3.e5m2.f32", "f32.e5m2.e4m3.f32", "f16.e5m2.e5m2.f16")
	for _, sat := range []string{rc, rc + "satfinite."} {
		add("m8n8k16 m16n8k16 m16n8k32", sat, "s32.s8.s8.s32", "s32.u8.s8.s32", "s32.s8.u8.s32", "s32.u8.u8.s32")
		add("m8n8k32 m16n8k32 m16n8k64", sat, "s32.s4.s4.s32", "s32.u4.s4.s32", "s32.s4.u4.s32", "s32.u4.u4.s32")
	}
	for _, op := range []string{".xor.popc", ".and.popc"} {
		for _, s := range []string{"m8n8k128", "m16n8k128", "m16n8k256"} {
			list = append(list, "mma.sync.aligned."+s+".row.col.s32.b1.b1.s32"+op)
		}
	}
	return list
}

// newestMMA reports whether a form began with PTX ISA 8.7.
func newestMMA(inst string) bool {
	return strings.Contains(inst, ".e") && (strings.Contains(inst, "m16n8k16") || strings.HasSuffix(inst, ".f16"))
}

// mmaForm has the types and the numbers of registers of D, A, B and C of an mma.
type mmaForm struct {
	types []string
	regs  [4]int
}

func (f *mmaForm) wide() bool { return f.types[0] == "f64" }

func mmaFormOf(inst string) (f mmaForm) {
	s := shapePattern.FindStringSubmatch(inst)
	m, _ := strconv.Atoi(s[1])
	n, _ := strconv.Atoi(s[2])
	k, _ := strconv.Atoi(s[3])
	for _, q := range strings.Split(inst, ".") {
		if elementBits[q] != 0 {
			f.types = append(f.types, q)
		}
	}
	if s[0] == "m8n8k4" && f.types[1] == "f16" { // four products
		m, n = 2*m, 2*n
		k *= 2
	}
	f.regs = [4]int{regsOf(m*n, f.types[0]), regsOf(m*k, f.types[1]), regsOf(k*n, f.types[2]), regsOf(m*n, f.types[3])}
	return f
}

// TestMMAAgainstOracle checks that every form of mma has the oracle's results, for
// ordinary numbers and for corner cases.
func TestMMAAgainstOracle(t *testing.T) {
	for i, inst := range mmaInstructions() {
		t.Run(strings.TrimPrefix(inst, "mma.sync.aligned."), func(t *testing.T) {
			f := mmaFormOf(inst)
			types, nd, na, nb, nc := f.types, f.regs[0], f.regs[1], f.regs[2], f.regs[3]
			src := lanesKernel(f.wide(), na, nb, nc, nd, fmt.Sprintf("%s %s, %s, %s, %s;\n", inst, list("d", nd), list("a", na), list("b", nb), list("c", nc)))
			if newestMMA(inst) {
				src = strings.Replace(src, ".version 8.4", ".version 8.7", 1)
			}
			rnd := rand.New(rand.NewSource(int64(i)))
			for _, corners := range []bool{false, true} {
				var in []byte
				for range 32 {
					in = append(in, matrixData(rnd, na, types[1], corners)...)
					in = append(in, matrixData(rnd, nb, types[2], corners)...)
					in = append(in, matrixData(rnd, nc, types[3], corners)...)
				}
				againstOracle(t, types[0], src, in, 32*8*nd)
			}
		})
	}
}

// TestTilesAgainstOracle compares the tiles of ldmatrix, stmatrix and movmatrix with
// the oracle's.
func TestTilesAgainstOracle(t *testing.T) {
	rows := "mov.u32 %sa, sh; cvta.shared.u64 %gs, sh; shl.b32 %d7, %thread, 5; xor.b32 %d7, %d7, 96; add.u32 %sa, %sa, %d7; mad.wide.u32 %gs, %d7, 1, %gs;\n" +
		"st.shared.b32 [%sa], %a0; st.shared.b32 [%sa+4], %a1; st.shared.b32 [%sa+8], %a2; st.shared.b32 [%sa+12], %a3; bar.sync 0;\n"
	for name, body := range map[string]string{
		"ldmatrix x1":       rows + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%d0}, [%sa];",
		"ldmatrix x2 trans": rows + "ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 {%d0, %d1}, [%sa];",
		"ldmatrix x4":       rows + "ldmatrix.sync.aligned.m8n8.x4.b16 {%d0, %d1, %d2, %d3}, [%gs];",
		"ldmatrix old":      rows + "ldmatrix.sync.aligned.x4.trans.m8n8.shared.b16 {%sa, %d1, %d2, %d3}, [%sa]; mov.b32 %d0, %sa;",
		"stmatrix x4":       rows + "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%sa], {%a4, %a5, %a6, %a7}; bar.sync 0; ld.shared.v4.b32 {%d0, %d1, %d2, %d3}, [%sa];",
		"stmatrix x2 trans": rows + "stmatrix.sync.aligned.m8n8.x2.trans.b16 [%gs], {%a4, %a5}; bar.sync 0; ld.shared.v4.b32 {%d0, %d1, %d2, %d3}, [%sa];",
		"movmatrix":         "movmatrix.sync.aligned.m8n8.trans.b16 %d0, %a0;",
		"in a branch":       "@%p0 bra E; movmatrix.sync.aligned.m8n8.trans.b16 %d0, %a0;\nE: add.u32 %d0, %d0, 1;",
	} {
		t.Run(name, func(t *testing.T) {
			if name == "in a branch" {
				body = ".reg .pred %p0; setp.gt.u32 %p0, %thread, 100;" + body
			}
			in := make([]byte, 32*8*8)
			rand.New(rand.NewSource(3)).Read(in)
			body = "mov.b32 %d0, 0; mov.b32 %d1, 0; mov.b32 %d2, 0; mov.b32 %d3, 0;\n" + body
			againstOracle(t, "b32", lanesKernel(false, 8, 0, 0, 4, body), in, 32*8*4)
		})
	}
}

// wmmaCases are the types and shapes of wmma, in the order D, A, B, C.
var wmmaCases = []struct{ shapes, types string }{
	{"m16n16k16 m8n32k16 m32n8k16", "f16.f16"}, {"m16n16k16 m8n32k16 m32n8k16", "f32.f32"}, {"m16n16k16", "f32.f16"}, {"m16n16k16", "f16.f32"},
	{"m16n16k16 m8n32k16 m32n8k16", "f32.bf16.bf16.f32"}, {"m16n16k8", "f32.tf32.tf32.f32"}, {"m8n8k4", "f64.f64.f64.f64"},
	{"m16n16k16 m8n32k16 m32n8k16", "s32.s8.s8.s32"}, {"m16n16k16 m8n32k16 m32n8k16", "s32.u8.u8.s32"},
	{"m8n8k32", "s32.s4.s4.s32"}, {"m8n8k32", "s32.u4.u4.s32"}, {"m8n8k128", "s32.b1.b1.s32"},
}

// wmmaTypes returns the types of D, A, B and C.
func wmmaTypes(qualifiers string) []string {
	types := strings.Split(qualifiers, ".")
	if len(types) == 2 {
		types = []string{types[0], "f16", "f16", types[1]}
	}
	return types
}

// wmmaRegisters returns how many registers a lane has for D, A, B and C.
func wmmaRegisters(shape string, types []string) [4]int {
	s := shapePattern.FindStringSubmatch(shape)
	m, _ := strconv.Atoi(s[1])
	n, _ := strconv.Atoi(s[2])
	k, _ := strconv.Atoi(s[3])
	regs := [4]int{regsOf(m*n, types[0]), regsOf(m*k, types[1]), regsOf(k*n, types[2]), regsOf(m*n, types[3])}
	if types[1] == "f16" {
		regs[1], regs[2] = 8, 8
	}
	return regs
}

// TestWmmaAgainstOracle compares the product of a wmma program with the oracle's, whose
// fragments have another layout.
func TestWmmaAgainstOracle(t *testing.T) {
	for i, c := range wmmaCases {
		types := wmmaTypes(c.types)
		for j, shape := range strings.Fields(c.shapes) {
			for _, layouts := range []string{"row.col", "col.row", "row.row", "col.col"} {
				if layouts != "row.col" && elementBits[types[1]] < 8 {
					continue
				}
				t.Run(shape+"."+c.types+"."+layouts, func(t *testing.T) {
					src, bytes := wmmaKernel(shape, layouts, c.types, types)
					rnd := rand.New(rand.NewSource(int64(10*i + j)))
					in := append(matrixData(rnd, bytes/8, types[1], false), matrixData(rnd, bytes/8, types[2], false)...)
					againstOracle(t, types[0], src, append(in, matrixData(rnd, bytes/8, types[3], false)...), bytes)
				})
			}
		}
	}
}

// wmmaKernel returns a kernel that loads matrices A and B from one buffer, with lines
// that are longer than necessary, and C from shared memory, and stores D. bytes is the
// size of each matrix.
func wmmaKernel(shape, layouts, qualifiers string, types []string) (src string, bytes int) {
	across := strings.Split(layouts, ".")
	const part = 4096
	stride := map[bool]int{true: 48, false: 128}[elementBits[types[1]] >= 8]
	regs := wmmaRegisters(shape, types)
	nd, na, nb, nc := regs[0], regs[1], regs[2], regs[3]
	reg := func(typ string) string {
		return map[bool]string{true: "f64", false: "b32"}[typ == "f64"]
	}
	var w strings.Builder
	fmt.Fprintf(&w, matrixHead+".entry k(.param .u64 in, .param .u64 out) {\n.reg .%s %%a<9>, %%b<9>, %%c<9>, %%d<9>; .reg .b64 %%in, %%out, %%g, %%w; .reg .b32 %%s, %%t;\n", reg(types[1]))
	w.WriteString(".shared .align 128 .b8 sh[4096];\nld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %g, %t, 128, %in; mov.u32 %s, sh; mad.lo.u32 %s, %t, 128, %s;\n")
	for i := range 16 {
		fmt.Fprintf(&w, "ld.global.b64 %%w, [%%g+%d]; st.shared.b64 [%%s+%d], %%w;\n", 2*part+8*i, 8*i)
	}
	w.WriteString("bar.sync 0; mov.u32 %s, sh;\n")
	fmt.Fprintf(&w, "wmma.load.a.sync.aligned.%s.%s.global.%s %s, [%%in], %d;\n", across[0], shape, types[1], list("a", na), stride)
	fmt.Fprintf(&w, "wmma.load.b.sync.aligned.%s.%s.%s %s, [%%in+%d], %d;\n", across[1], shape, types[2], list("b", nb), part, stride)
	fmt.Fprintf(&w, "wmma.load.c.sync.aligned.%s.%s.shared.%s %s, [%%s];\n", across[0], shape, types[3], list("c", nc))
	op := ""
	if types[1] == "b1" {
		op = ".xor.popc"
	}
	round := map[bool]string{true: ".rz"}[types[1] == "f64"]
	fmt.Fprintf(&w, "wmma.mma%s.sync.aligned.%s.%s.%s%s %s, %s, %s, %s;\n", op, layouts, shape, qualifiers, round, list("d", nd), list("a", na), list("b", nb), list("c", nc))
	fmt.Fprintf(&w, "wmma.store.d.sync.aligned.%s.%s.global.%s [%%out], %s;\nret;\n}\n", across[1], shape, types[0], list("d", nd))
	return w.String(), part
}
