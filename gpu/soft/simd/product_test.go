//go:build amd64

package simd_test

import (
	"fmt"
	"math"
	"math/rand"
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/ops"
	"github.com/basalt-gpu/basalt/gpu/soft/simd"
)

// productForms are the forms of mma and wmma by which TestProduct and BenchmarkProduct
// multiply: shape, and the types of D, A, B and C.
var productForms = []struct {
	wmma    bool
	m, n, k int
	types   [4]string
}{
	{false, 16, 8, 8, [4]string{"f32", "f16", "f16", "f32"}}, {false, 16, 8, 16, [4]string{"f32", "f16", "f16", "f32"}},
	{false, 16, 8, 16, [4]string{"f16", "f16", "f16", "f16"}}, {true, 32, 8, 16, [4]string{"f16", "f16", "f16", "f32"}},
	{true, 8, 32, 16, [4]string{"f32", "f16", "f16", "f16"}}, {true, 16, 16, 16, [4]string{"f32", "f16", "f16", "f32"}},
	{false, 16, 8, 8, [4]string{"f32", "bf16", "bf16", "f32"}}, {true, 16, 16, 16, [4]string{"f32", "bf16", "bf16", "f32"}},
	{true, 8, 32, 16, [4]string{"f32", "bf16", "bf16", "f32"}}, {true, 32, 8, 16, [4]string{"f32", "bf16", "bf16", "f32"}},
	{false, 16, 8, 4, [4]string{"f32", "tf32", "tf32", "f32"}}, {true, 16, 16, 8, [4]string{"f32", "tf32", "tf32", "f32"}},
	{false, 8, 8, 16, [4]string{"s32", "s8", "u8", "s32"}}, {false, 16, 8, 32, [4]string{"s32", "u8", "s8", "s32"}},
	{true, 16, 16, 16, [4]string{"s32", "s8", "s8", "s32"}}, {true, 8, 32, 16, [4]string{"s32", "u8", "u8", "s32"}},
	{false, 8, 8, 4, [4]string{"f64", "f64", "f64", "f64"}}, {false, 16, 8, 8, [4]string{"f64", "f64", "f64", "f64"}},
	{false, 16, 8, 16, [4]string{"f64", "f64", "f64", "f64"}}, {true, 8, 8, 4, [4]string{"f64", "f64", "f64", "f64"}},
}

func productOf(t testing.TB, i int) *ops.MMA {
	t.Helper()
	f := productForms[i]
	p, err := ops.NewMMA(ops.MMAForm{
		Wmma: f.wmma, M: f.m, N: f.n, K: f.k, D: ops.ElementByName(f.types[0]), A: ops.ElementByName(f.types[1]),
		B: ops.ElementByName(f.types[2]), C: ops.ElementByName(f.types[3]), RowA: true, Mode: ops.Nearest,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// rig has registers and the next free slot.
type rig struct {
	ops.Registers
	next int
}

func newRig() *rig {
	const slots = 64
	return &rig{Registers: ops.Registers{Words: make([]uint32, slots*32), Doubles: make([]uint64, slots*32), Stride: 32}}
}

// with returns registers of a fragment with values of a function.
func (r *rig) with(f *ops.Fragment, value func() uint64) (s ops.Slots) {
	for range f.Regs {
		for l := range 32 {
			r.Words[32*r.next+l], r.Doubles[32*r.next+l] = uint32(value()), value()
		}
		s = append(s, r.next)
		r.next++
	}
	return s
}

// elementsOf returns a function with random elements of a type: with corners also
// infinities, NaNs and subnormal numbers.
func elementsOf(rnd *rand.Rand, e *ops.Element, corners bool) func() uint64 {
	return func() uint64 {
		v := rnd.Uint64()
		if corners {
			if rnd.Intn(8) == 0 { // exponents of zeros, or of infinities
				clear := map[string]uint64{"f16": 0x7c007c00, "bf16": 0x7f807f80, "f64": 0x7ff << 52}[e.Name]
				if clear == 0 {
					clear = 0x7f800000
				}
				v &^= clear
				if rnd.Intn(2) == 0 {
					v |= clear
				}
			}
			return v
		}
		switch e.Name {
		case "f16":
			return v&0x9fff9fff | 0x20002000
		case "bf16":
			return v&0x87ff87ff | 0x38003800
		case "f32", "tf32":
			return v&0x87ffffff | 0x38000000
		case "f64":
			return math.Float64bits(rnd.NormFloat64())
		}
		return v
	}
}

// TestProduct compares products with those of package ops, with D apart and with D in
// the registers of C, with AVX-512 if the processor has it, and without.
func TestProduct(t *testing.T) {
	if !simd.Available() {
		t.Skip("this processor lacks AVX2 or FMA")
	}
	defer simd.SetWide(simd.SetWide(true))
	testProduct(t)
	simd.SetWide(false)
	testProduct(t)
}

func testProduct(t *testing.T) {
	t.Helper()
	for i := range productForms {
		p := productOf(t, i)
		t.Run(fmt.Sprintf("wmma=%v %s", productForms[i].wmma, p), func(t *testing.T) {
			rnd := rand.New(rand.NewSource(int64(i)))
			var room ops.Workspace
			for turn := range 200 {
				r := newRig()
				of := func(f *ops.Fragment) ops.Slots { return r.with(f, elementsOf(rnd, f.Type, turn%2 == 1)) }
				a, b, c, d := of(&p.A), of(&p.B), of(&p.C), of(&p.D)
				switch {
				case turn%8 > 5 && p.D.Type == p.A.Type && p.D.Type.Bits == 64: // a register of D is one of A
					d[0] = a[0]
				case turn%4 > 1 && p.D.Regs == p.C.Regs:
					d = c
				case turn%16 == 1 && p.D.Regs == p.C.Regs && len(c) > 2: // of another part
					d = append(slices.Clone(c[2:]), c[:2]...)
				}
				fast := simd.NewProduct(p, d, a, b, c)
				if fast == nil {
					t.Fatal("simd has no function of this product, want one")
				}
				want := &rig{Registers: r.Registers}
				want.Words, want.Doubles = slices.Clone(r.Words), slices.Clone(r.Doubles)
				p.Multiply(&room, &want.Registers, d, a, b, c)
				fast.Multiply(&room, &r.Registers, simd.Keep{A: 2, B: 3})
				for _, slot := range d {
					if *r.Word(slot) != *want.Word(slot) || *r.Double(slot) != *want.Double(slot) {
						t.Fatalf("turn %d: register %d = %x, %x, want %x, %x", turn, slot, *r.Word(slot), *r.Double(slot), *want.Word(slot), *want.Double(slot))
					}
				}
				if !slices.Equal(r.Words, want.Words) || !slices.Equal(r.Doubles, want.Doubles) {
					t.Fatalf("turn %d: a register that is not of D has changed", turn)
				}
			}
		})
	}
}

// TestKeptMatrices checks that a product uses the A and the B that are kept.
func TestKeptMatrices(t *testing.T) {
	if !simd.Available() {
		t.Skip("this processor lacks AVX2 or FMA")
	}
	p := productOf(t, 5)
	rnd := rand.New(rand.NewSource(1))
	r := newRig()
	of := func(f *ops.Fragment) ops.Slots { return r.with(f, elementsOf(rnd, f.Type, false)) }
	a, b, c, first, second := of(&p.A), of(&p.B), of(&p.C), of(&p.D), of(&p.D)
	var room ops.Workspace
	simd.NewProduct(p, first, a, b, c).Multiply(&room, &r.Registers, simd.Keep{A: 1, B: 2})
	for _, slot := range append(a, b...) {
		clear(r.Word(slot)[:])
	}
	simd.NewProduct(p, second, a, b, c).Multiply(&room, &r.Registers, simd.Keep{A: 1, B: 2, HasA: true, HasB: true})
	for i := range first {
		if *r.Word(first[i]) != *r.Word(second[i]) {
			t.Errorf("register %d with kept matrices = %x, want %x", i, *r.Word(second[i]), *r.Word(first[i]))
		}
	}
}

// TestProductsOfOtherTypes checks that products of other types are not computed here.
func TestProductsOfOtherTypes(t *testing.T) {
	element := ops.ElementByName
	for name, f := range map[string]ops.MMAForm{
		"saturates": {M: 8, N: 8, K: 16, D: element("s32"), A: element("s8"), B: element("s8"), C: element("s32"), RowA: true, Saturate: true},
		"bits":      {M: 8, N: 8, K: 128, D: element("s32"), A: element("b1"), B: element("b1"), C: element("s32"), RowA: true, Bitwise: "xor"},
		"four bits": {M: 8, N: 8, K: 32, D: element("s32"), A: element("s4"), B: element("s4"), C: element("s32"), RowA: true},
		"rounded":   {M: 8, N: 8, K: 4, D: element("f64"), A: element("f64"), B: element("f64"), C: element("f64"), RowA: true, Mode: ops.TowardZero},
		"quad":      {M: 8, N: 8, K: 4, D: element("f32"), A: element("f16"), B: element("f16"), C: element("f32"), RowA: true},
		"e4m3":      {M: 16, N: 8, K: 32, D: element("f32"), A: element("e4m3"), B: element("e5m2"), C: element("f32"), RowA: true},
	} {
		p, err := ops.NewMMA(f)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if simd.NewProduct(p, nil, nil, nil, nil) != nil {
			t.Errorf("%s: simd has a function of %s, want none", name, p)
		}
	}
}

// BenchmarkProduct measures products of a warp, beside those of package ops.
func BenchmarkProduct(b *testing.B) {
	for i, f := range productForms {
		p := productOf(b, i)
		rnd := rand.New(rand.NewSource(1))
		r := newRig()
		of := func(f *ops.Fragment) ops.Slots { return r.with(f, elementsOf(rnd, f.Type, false)) }
		x, y, z, d := of(&p.A), of(&p.B), of(&p.C), of(&p.D)
		fast := simd.NewProduct(p, d, x, y, z)
		for name, multiply := range map[string]func(w *ops.Workspace, r *ops.Registers){
			"simd": func(w *ops.Workspace, r *ops.Registers) { fast.Multiply(w, r, simd.Keep{B: 1}) }, "ops": func(w *ops.Workspace, r *ops.Registers) { p.Multiply(w, r, d, x, y, z) },
		} {
			b.Run(fmt.Sprintf("wmma=%v %s/%s", f.wmma, p, name), func(b *testing.B) {
				var w ops.Workspace
				for b.Loop() {
					multiply(&w, &r.Registers)
				}
				b.ReportMetric(float64(f.m*f.n*f.k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFMA/s")
			})
		}
	}
}
