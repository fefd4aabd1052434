package soft_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand"
	"strconv"
	"strings"
	"testing"
)

// wgmmaCase is a wgmma.mma_async: its shape and types, and the arguments after the
// operands.
type wgmmaCase struct {
	inst, options string
	regs          int // number of registers of A; 0 if it is in memory
}

func wgmmaCases() (list []wgmmaCase) {
	add := func(inst, options string, regs int) { list = append(list, wgmmaCase{inst, options, regs}) }
	for _, n := range []int{8, 24, 64} {
		add(fmt.Sprintf("m64n%dk16.f32.f16.f16", n), "1, 1, 0, 0", 0)
	}
	for _, t := range []string{"f16.f16.f16", "f32.f16.f16", "f32.bf16.bf16"} {
		for _, options := range []string{"1, 1, 1, 0", "-1, 1, 0, 1", "1, -1, 1, 1"} {
			add("m64n16k16."+t, options, 0)
		}
		add("m64n32k16."+t, "-1, -1, 1", 4)
	}
	for _, t := range []string{"f32.e4m3.e4m3", "f16.e5m2.e4m3", "f32.e4m3.e5m2"} {
		add("m64n16k32."+t, "1, 1", 0)
		add("m64n16k32."+t, "-1, 1", 4)
	}
	add("m64n16k8.f32.tf32.tf32", "1, 1", 0)
	add("m64n24k8.f32.tf32.tf32", "1, -1", 4)
	for _, t := range []string{"s32.s8.s8", "s32.u8.s8", "satfinite.s32.s8.u8"} {
		add("m64n16k32."+t, "", 0)
		add("m64n32k32."+t, "", 4)
	}
	add("m64n16k256.s32.b1.b1.and.popc", "", 0)
	return list
}

// descriptor returns a matrix descriptor of a swizzling mode (PTX ISA, "Matrix
// Descriptor"). start is relative to the kernel's shared memory, as a GPU reserves the
// memory below it.
func descriptor(start, leading, stride, mode uint64) uint64 {
	return start>>4 | leading>>4<<16 | stride>>4<<32 | mode<<62
}

// TestWgmmaAgainstOracle compares every kind of wgmma.mma_async with the oracle, for
// all swizzling modes.
func TestWgmmaAgainstOracle(t *testing.T) {
	for i, c := range wgmmaCases() {
		if testing.Short() && i%4 != 0 {
			continue // the oracle is slow
		}
		for mode := range uint64(4) {
			if mode != uint64(i%4) && !strings.Contains(c.inst, "m64n16k16.f32.f16") {
				continue // all modes for one type only
			}
			t.Run(fmt.Sprintf("%s %s regs=%d mode=%d", c.inst, c.options, c.regs, mode), func(t *testing.T) {
				c.check(t, int64(i), descriptor(256, 144, 1024, mode), descriptor(1024+128*mode, 2048, 512, mode))
			})
		}
	}
}

// TestWgmmaBaseOffset checks that the base offset of a descriptor shifts the rows of
// the swizzling pattern.
func TestWgmmaBaseOffset(t *testing.T) {
	for mode := range uint64(4) {
		t.Run(fmt.Sprintf("mode=%d", mode), func(t *testing.T) {
			c := wgmmaCase{inst: "m64n16k16.f32.f16.f16", options: "1, 1, 1, 0"}
			c.check(t, int64(mode), descriptor(256, 144, 1024, mode)|2<<49, descriptor(1024+128*mode, 2048, 512, mode)|5<<49)
		})
	}
}

// check executes a case with descriptors of A and B.
func (c *wgmmaCase) check(t *testing.T, seed int64, a, b uint64) {
	t.Helper()
	s := shapePattern.FindStringSubmatch(c.inst)
	n, _ := strconv.Atoi(s[2])
	var types []string
	for _, q := range strings.Split(c.inst, ".") {
		if elementBits[q] != 0 {
			types = append(types, q)
		}
	}
	nd := 64 * n * elementBits[types[0]] / (128 * 32)
	in := matrixData(rand.New(rand.NewSource(seed)), 128*64, types[1], false)
	againstOracleWithin(t, 128, wgmmaKernel(c, nd, a, b), in, 128*8*nd, func([]byte) func(got, want []byte) bool {
		return func(got, want []byte) bool { return closeSums(types, got, want) && closeSums(types, got[4:], want[4:]) }
	})
}

// closeSums reports whether registers with sums of products of a wgmma's types are
// equal except for the order of additions and their rounding, which PTX does not
// define: GPUs truncate f32 sums, to 13 bits for sums of 8-bit numbers.
func closeSums(types []string, got, want []byte) bool {
	x, y := binary.LittleEndian.Uint32(got), binary.LittleEndian.Uint32(want)
	most := map[string]float64{"f16": 2, "bf16": 2, "tf32": 2, "e4m3": 448, "e5m2": 57344} // maximum values of matrixData
	last := 0x1p-22
	if elementBits[types[1]] == 8 {
		last = 0x1p-12
	}
	allowed := 16 * most[types[1]] * most[types[2]] * last
	same := func(a, b float32) bool {
		diff := math.Abs(float64(a) - float64(b))
		return a == b || a != a && b != b || diff <= allowed+math.Abs(float64(b))*last
	}
	switch types[0] {
	case "f32":
		return same(math.Float32frombits(x), math.Float32frombits(y))
	case "f16":
		last = 0x1p-9
		return same(half(x), half(y)) && same(half(x>>16), half(y>>16))
	}
	return x == y
}

// wgmmaKernel returns a kernel that fills shared memory and multiplies twice: without
// and with D.
func wgmmaKernel(c *wgmmaCase, nd int, a, b uint64) string {
	var w strings.Builder
	fmt.Fprintf(&w, matrixHead+".entry k(.param .u64 in, .param .u64 out) {\n.reg .b32 %%a<4>, %%d<%d>, %%s, %%t; .reg .b64 %%in, %%out, %%w, %%da, %%db; .reg .pred %%p;\n", nd)
	w.WriteString(".shared .align 1024 .b8 sh[49152];\nld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %in, %t, 512, %in; mov.u32 %s, sh; mad.lo.u32 %s, %t, 384, %s;\n")
	for i := range 48 {
		fmt.Fprintf(&w, "ld.global.b64 %%w, [%%in+%d]; st.shared.b64 [%%s+%d], %%w;\n", 8*i, 8*i)
	}
	for i := range nd {
		fmt.Fprintf(&w, "ld.global.b32 %%d%d, [%%in+%d];\n", i, 4*(i%96))
	}
	for i := range 4 {
		fmt.Fprintf(&w, "ld.global.b32 %%a%d, [%%in+%d];\n", i, 384+4*i)
	}
	fmt.Fprintf(&w, "fence.proxy.async; bar.sync 0; mov.u32 %%s, sh; shr.u32 %%s, %%s, 4; cvt.u64.u32 %%w, %%s; add.u64 %%da, %%w, 0x%x; add.u64 %%db, %%w, 0x%x; setp.eq.u32 %%p, 0, 0;\n", a, b)
	from := "%da"
	if c.regs > 0 {
		from = list("a", c.regs)
	}
	options := ""
	if c.options != "" {
		options = ", " + c.options
	}
	for _, adds := range []string{"%p", "!%p"} {
		if adds != "%p" && strings.Contains(c.inst, "n8k") {
			adds = "0"
		}
		fmt.Fprintf(&w, "wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.%s %s, %s, %%db, %s%s;\n", c.inst, list("d", nd), from, adds, options)
		fmt.Fprintf(&w, "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\nmad.wide.u32 %%w, %%t, %d, %%out;\n", 8*nd)
		for i := range nd {
			fmt.Fprintf(&w, "st.global.b32 [%%w+%d], %%d%d;\n", 8*i+map[bool]int{true: 0, false: 4}[adds == "%p"], i)
		}
	}
	w.WriteString("ret;\n}\n")
	return w.String()
}

// TestSetMaxRegisters checks that warps of a group can release and request registers,
// which changes no result.
func TestSetMaxRegisters(t *testing.T) {
	src := matrixHead + `.entry k(.param .u64 in, .param .u64 out) .reqntid 128 .maxnreg 128 {
.reg .b64 %in, %out; .reg .b32 %t; .reg .b64 %d;
ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %in, %t, 8, %in; mad.wide.u32 %out, %t, 8, %out;
setmaxnreg.dec.sync.aligned.u32 64; ld.global.b64 %d, [%in]; setmaxnreg.inc.sync.aligned.u32 128; st.global.b64 [%out], %d; ret; }`
	againstOracleOf(t, 128, "b64", src, matrixData(rand.New(rand.NewSource(1)), 128, "f64", false), 128*8)
}
