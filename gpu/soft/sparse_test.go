package soft_test

import (
	"encoding/binary"
	"fmt"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sparseForm is a form of mma.sp.
type sparseForm struct {
	inst      string
	selectors int
}

// sparseForms returns all forms of mma.sp.
func sparseForms() (list []sparseForm) {
	add := func(shape string, selectors int, types ...string) {
		for i, t := range types {
			sp := []string{"sp", "sp::ordered_metadata"}[i%2]
			list = append(list, sparseForm{"mma." + sp + ".sync.aligned." + shape + ".row.col." + t, selectors})
		}
	}
	halves := []string{"f16.f16.f16.f16", "f32.f16.f16.f32", "f32.bf16.bf16.f32"}
	add("m16n8k16", 4, halves...)
	add("m16n8k32", 2, halves...)
	add("m16n8k8", 4, "f32.tf32.tf32.f32")
	add("m16n8k16", 2, "f32.tf32.tf32.f32")
	add("m16n8k64", 1, "f32.e4m3.e4m3.f32", "f32.e4m3.e5m2.f32", "f32.e5m2.e4m3.f32", "f32.e5m2.e5m2.f32")
	bytes := []string{"s32.s8.s8.s32", "s32.u8.s8.s32", "satfinite.s32.s8.u8.s32", "satfinite.s32.u8.u8.s32"}
	add("m16n8k32", 2, bytes...)
	add("m16n8k64", 1, bytes...)
	nibbles := []string{"s32.s4.s4.s32", "s32.u4.s4.s32", "satfinite.s32.s4.u4.s32", "satfinite.s32.u4.u4.s32"}
	add("m16n8k64", 2, nibbles...)
	add("m16n8k128", 1, nibbles...)
	return list
}

// sparseMetadata returns a register of random metadata. Indices of a chunk are in order,
// or in any order.
func sparseMetadata(rnd *rand.Rand, typ string, ordered bool) (v uint64) {
	values := []uint64{0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110}
	switch {
	case typ == "tf32":
		values = []uint64{0b0100, 0b1110}
	case !ordered:
		values = append(values, 0b0001, 0b0010, 0b0110, 0b0011, 0b0111, 0b1011)
	}
	for range 8 {
		v = v<<4 | values[rnd.Intn(len(values))]
	}
	return v
}

// sparseRegisters returns how many registers a lane has for D, A, B and C.
func (f *sparseForm) registers() (types []string, regs [4]int) {
	s := shapePattern.FindStringSubmatch(f.inst)
	k, _ := strconv.Atoi(s[3])
	for _, q := range strings.Split(f.inst, ".") {
		if elementBits[q] != 0 {
			types = append(types, q)
		}
	}
	return types, [4]int{regsOf(16*8, types[0]), regsOf(16*k/2, types[1]), regsOf(k*8, types[2]), regsOf(16*8, types[3])}
}

// TestSparseAgainstOracle checks that every form of mma.sp has the oracle's results, for
// every selector, ordinary numbers and corner cases.
func TestSparseAgainstOracle(t *testing.T) {
	for i, f := range sparseForms() {
		t.Run(strings.TrimPrefix(f.inst, "mma."), func(t *testing.T) {
			rnd := rand.New(rand.NewSource(int64(i)))
			types, regs := f.registers()
			for selector := range f.selectors {
				f.check(t, rnd, types, regs, selector, selector%2 == 1)
			}
			f.check(t, rnd, types, regs, f.selectors-1, true)
		})
	}
}

func (f *sparseForm) check(t *testing.T, rnd *rand.Rand, types []string, regs [4]int, selector int, corners bool) {
	t.Helper()
	nd, na, nb, nc := regs[0], regs[1], regs[2], regs[3]
	// The metadata is the register of C after the last one.
	body := fmt.Sprintf("%s %s, %s, %s, %s, %%c%d, %d;\n", f.inst, list("d", nd), list("a", na), list("b", nb), list("c", nc), nc, selector)
	src := strings.Replace(lanesKernel(false, na, nb, nc+1, nd, body), ".version 8.4", ".version 8.5", 1)
	var in []byte
	for range 32 {
		in = append(in, matrixData(rnd, na, types[1], corners)...)
		in = append(in, matrixData(rnd, nb, types[2], corners)...)
		in = append(in, matrixData(rnd, nc, types[3], corners)...)
		in = binary.LittleEndian.AppendUint64(in, sparseMetadata(rnd, types[1], strings.Contains(f.inst, "ordered")))
	}
	againstOracle(t, types[0], src, in, 32*8*nd)
}

// sparseWgmmaCases are forms of wgmma.mma_async.sp.
func sparseWgmmaCases() (list []wgmmaCase) {
	add := func(inst, options string, regs int) { list = append(list, wgmmaCase{inst, options, regs}) }
	for _, t := range []string{"f16.f16.f16", "f32.f16.f16", "f32.bf16.bf16"} {
		for _, options := range []string{"1, 1, 0, 0", "-1, 1, 1, 1"} {
			add("m64n16k32."+t, options, 0)
		}
		add("m64n24k32."+t, "-1, -1, 1", 4)
	}
	for _, t := range []string{"f32.e4m3.e4m3", "f16.e5m2.e4m3"} {
		add("m64n16k64."+t, "1, -1", 0)
		add("m64n16k64."+t, "1, 1", 4)
	}
	add("m64n8k16.f32.tf32.tf32", "1, 1", 0)
	add("m64n24k16.f32.tf32.tf32", "1, -1", 4)
	add("m64n16k64.satfinite.s32.s8.u8", "", 0)
	add("m64n16k64.s32.u8.u8", "", 4)
	return list
}

// TestSparseWgmmaAgainstOracle compares wgmma.mma_async.sp with the oracle.
func TestSparseWgmmaAgainstOracle(t *testing.T) {
	for i, c := range sparseWgmmaCases() {
		if testing.Short() && i%4 != 0 {
			continue // the oracle is slow
		}
		selectors := 2
		if strings.Contains(c.inst, "k64") {
			selectors = 1
		}
		t.Run(fmt.Sprintf("%s %s regs=%d", c.inst, c.options, c.regs), func(t *testing.T) {
			mode := uint64(i % 4)
			var types []string
			for _, q := range strings.Split(c.inst, ".") {
				if elementBits[q] != 0 {
					types = append(types, q)
				}
			}
			s := shapePattern.FindStringSubmatch(c.inst)
			n, _ := strconv.Atoi(s[2])
			nd := 64 * n * elementBits[types[0]] / (128 * 32)
			src := wgmmaKernel(&c, nd, descriptor(256, 144, 1024, mode), descriptor(1024+128*mode, 2048, 512, mode))
			// The metadata of a thread is the word at the end of its part of the input.
			src = strings.Replace(src, "fence.proxy.async; bar.sync 0;", ".reg .b32 %e; ld.global.b32 %e, [%in+504];\nfence.proxy.async; bar.sync 0;", 1)
			src = strings.ReplaceAll(src, "wgmma.mma_async.sync", "wgmma.mma_async.sp.sync")
			src = strings.ReplaceAll(src, ", %db, ", fmt.Sprintf(", %%db, %%e, %d, ", i%selectors))
			rnd := rand.New(rand.NewSource(int64(i)))
			in := matrixData(rnd, 128*64, types[1], false)
			for at := 504; at < len(in); at += 512 {
				binary.LittleEndian.PutUint64(in[at:], sparseMetadata(rnd, types[1], i%3 == 0))
			}
			againstOracleWithin(t, 128, src, in, 128*8*nd, func([]byte) func(got, want []byte) bool {
				return func(got, want []byte) bool { return closeSums(types, got, want) && closeSums(types, got[4:], want[4:]) }
			})
		})
	}
}

// TestSparseIsDense checks that a product with a sparse A is that of the whole matrix,
// with a program that a person can follow: A has ones in two columns of each chunk, and
// B has the number of the row in each row, so that the element of D is the sum of the
// columns of A.
func TestSparseIsDense(t *testing.T) {
	const ones = "0x3c003c00"
	body := fmt.Sprintf("mov.b32 %%a0, %s; mov.b32 %%a1, %s; mov.b32 %%c0, 0; mov.b32 %%c1, 0; mov.b32 %%c2, 0; mov.b32 %%c3, 0;\n", ones, ones)
	body += "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1}, {%b0, %b1}, {%c0, %c1, %c2, %c3}, %b2, 0;\n"
	src := strings.Replace(lanesKernel(false, 2, 3, 4, 4, body), ".version 8.4", ".version 8.5", 1)
	halves := []uint64{0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700, 0x4800, 0x4880, 0x4900, 0x4980, 0x4a00, 0x4a80, 0x4b00, 0x4b80}
	var in []byte
	for l := range 32 {
		k := l % 4 * 2
		words := []uint64{0, 0, halves[k] | halves[k+1]<<16, halves[k+8] | halves[k+9]<<16, 0, 0, 0, 0, 0}
		// Row r has columns 0 and 1 of each chunk if r is even, else 2 and 3.
		words[4] = 0x44444444
		if l/4%2 == 1 {
			words[4] = 0xeeeeeeee
		}
		for _, w := range words {
			in = binary.LittleEndian.AppendUint64(in, w)
		}
	}
	r := newRig(t, src)
	di, do := r.buffer(in), r.buffer(make([]byte, 32*4*8))
	r.launch("k", [3]uint32{1, 1, 1}, [3]uint32{32, 1, 1}, 0, di, do)
	got, err := r.read(do, 32*4*8)
	if err != nil {
		t.Fatal(err)
	}
	for l := range 32 {
		want := uint32(0x42500000) // 0+1 + 4+5 + 8+9 + 12+13 = 52
		if l/4%2 == 1 {
			want = 0x42880000 // 68
		}
		for i := range 4 {
			if x := binary.LittleEndian.Uint32(got[8*(4*l+i):]); x != want {
				t.Fatalf("lane %d, register %d = %#x, want %#x", l, i, x, want)
			}
		}
	}
	if !slices.ContainsFunc(sparseForms(), func(f sparseForm) bool { return strings.Contains(body, f.inst) }) {
		t.Error("the form of this test is not one of sparseForms")
	}
}
