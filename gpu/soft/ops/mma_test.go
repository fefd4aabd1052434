package ops

import (
	"fmt"
	"math/bits"
	"testing"
)

// forms returns all products that PTX has, with one combination of signs.
func forms(t *testing.T) map[string]*MMA {
	t.Helper()
	all := map[string]*MMA{}
	for _, wmma := range []bool{false, true} {
		shapes := mmaShapes
		if wmma {
			shapes = wmmaShapes
		}
		for typ, results := range resultTypes {
			for _, d := range []string{"f16", "f32", "f64", "s32"} {
				if !listed(results, d) {
					continue
				}
				for _, n := range []int{8, 16, 32} {
					for _, m := range []int{8, 16, 32} {
						for k := 4; k <= 256; k *= 2 {
							if !listed(shapes[typ], shapeOf(m, n, k)) {
								continue
							}
							f := MMAForm{Wmma: wmma, M: m, N: n, K: k, A: elements[typ], B: elements[typ], C: elements[d], D: elements[d], RowA: true}
							if typ == "b1" {
								f.Bitwise = "xor"
							}
							p, err := NewMMA(f)
							if err != nil {
								t.Fatalf("NewMMA of shape %s and type %s: %v", shapeOf(m, n, k), typ, err)
							}
							all[fmt.Sprintf("wmma=%v %s %s %s", wmma, shapeOf(m, n, k), typ, d)] = p
						}
					}
				}
			}
		}
	}
	return all
}

// covers checks that each element of a matrix is in the lanes' registers equally often.
func (f *Fragment) covers(t *testing.T, times int) {
	t.Helper()
	seen := make([]int, f.Rows*f.Cols)
	for lane := range WarpLanes {
		for reg := range f.Regs {
			for e := range f.Each() {
				row, col := f.Place(lane, reg, e)
				if row < 0 || row >= f.Rows || col < 0 || col >= f.Cols {
					t.Fatalf("lane %d, register %d, element %d is at (%d, %d), want it in %d by %d", lane, reg, e, row, col, f.Rows, f.Cols)
				}
				seen[row*f.Cols+col]++
			}
		}
	}
	for i, n := range seen {
		if n != times {
			t.Fatalf("element (%d, %d) of %d by %d is in %d registers, want %d", i/f.Cols, i%f.Cols, f.Rows, f.Cols, n, times)
		}
	}
}

// TestFragmentsCoverMatrices checks that each fragment has each element of its matrix
// once; for f16 of wmma, as often as eight registers allow.
func TestFragmentsCoverMatrices(t *testing.T) {
	for name, p := range forms(t) {
		t.Run(name, func(t *testing.T) {
			for _, f := range []*Fragment{&p.A, &p.B, &p.C, &p.D} {
				f.covers(t, f.Regs*f.Each()*WarpLanes/(f.Rows*f.Cols))
				if f.Regs*f.Each()*WarpLanes != f.Rows*f.Cols && f.Type.Name != "f16" {
					t.Errorf("fragment of %d by %d has %d registers of %d elements, want each element once", f.Rows, f.Cols, f.Regs, f.Each())
				}
			}
		})
	}
	for _, across := range []bool{false, true} {
		a, b := quadA(elements["f16"], across), quadB(elements["f16"], across)
		a.covers(t, 1)
		b.covers(t, 1)
	}
}

// TestFragmentPlaces compares layouts with the formulas of the PTX ISA, "Matrix
// Fragments for mma".
func TestFragmentPlaces(t *testing.T) {
	for name, want := range map[string][4][2]int{ // of lane 13, the last element of a register: of A0, A's last, B's last, C's last
		"wmma=false m16n8k16 f16 f32":  {{3, 3}, {11, 11}, {11, 3}, {11, 3}},
		"wmma=false m16n8k8 tf32 f32":  {{3, 1}, {11, 5}, {5, 3}, {11, 3}},
		"wmma=false m16n8k32 s8 s32":   {{3, 7}, {11, 23}, {23, 3}, {11, 3}},
		"wmma=false m16n8k64 u4 s32":   {{3, 15}, {11, 47}, {47, 3}, {11, 3}},
		"wmma=false m16n8k16 f64 f64":  {{3, 1}, {11, 13}, {13, 3}, {11, 3}},
		"wmma=false m8n8k16 s8 s32":    {{3, 7}, {3, 7}, {7, 3}, {3, 3}},
		"wmma=false m8n8k4 f16 f32":    {{25, 1}, {25, 3}, {15, 1}, {27, 5}},
		"wmma=false m16n8k256 b1 s32":  {{3, 1}, {11, 5}, {5, 3}, {11, 3}},
		"wmma=false m16n8k8 bf16 f32":  {{3, 3}, {11, 3}, {3, 3}, {11, 3}},
		"wmma=false m16n8k16 f16 f16":  {{3, 3}, {11, 11}, {11, 3}, {11, 3}},
		"wmma=false m8n8k4 f64 f64":    {{3, 1}, {3, 1}, {1, 3}, {3, 3}},
		"wmma=false m16n8k32 e4m3 f32": {{3, 7}, {11, 23}, {23, 3}, {11, 3}},
	} {
		p := forms(t)[name]
		if p == nil {
			t.Errorf("forms has no product %s, want one", name)
			continue
		}
		last := func(f *Fragment, reg int) [2]int {
			row, col := f.Place(13, reg, f.Each()-1)
			return [2]int{row, col}
		}
		got := [4][2]int{last(&p.A, 0), last(&p.A, p.A.Regs-1), last(&p.B, p.B.Regs-1), last(&p.C, p.C.Regs-1)}
		if got != want {
			t.Errorf("%s: positions = %v, want %v", name, got, want)
		}
	}
}

// TestMultiply checks products of small integers, which are exact in all types.
func TestMultiply(t *testing.T) {
	for name, p := range forms(t) {
		if p.A.Type.Name == "b1" { // TestMultiplyBits
			continue
		}
		t.Run(name, func(t *testing.T) {
			r := newRig()
			a, b, c, d := r.with(&p.A, value(3)), r.with(&p.B, value(5)), r.with(&p.C, value(7)), r.empty(&p.D)
			p.Multiply(&Workspace{}, &r.Registers, d, a, b, c)
			each, width := p.D.Each(), p.D.Type.Bits
			for lane := range WarpLanes {
				for reg := range p.D.Regs {
					for e := range each {
						row, col := p.D.Place(lane, reg, e)
						want := value(7)(row, col)
						for k := range p.k {
							want += value(3)(row, k) * value(5)(row/p.m*p.k+k, col)
						}
						got := p.D.Type.decode(p.D.Type.get(&r.Registers, d[reg], lane) >> (e * width) & (^uint64(0) >> (64 - width)))
						if got != want {
							t.Fatalf("element (%d, %d) of the product = %v, want %v", row, col, got, want)
						}
					}
				}
			}
		})
	}
}

// TestMultiplyBits checks that a product of single bits counts the bits that are set in
// both operands, or in exactly one.
func TestMultiplyBits(t *testing.T) {
	for _, op := range []string{"and", "xor"} {
		p, err := NewMMA(MMAForm{M: 16, N: 8, K: 256, A: elements["b1"], B: elements["b1"], C: elements["s32"], D: elements["s32"], RowA: true, Bitwise: op})
		if err != nil {
			t.Fatal(err)
		}
		word := func(row, col int) float64 { return float64(uint32(row*0x9e3779b1 + col*0x85ebca6b)) }
		r := newRig()
		a, b, c, d := r.with(&p.A, word), r.with(&p.B, word), r.with(&p.C, value(1)), r.empty(&p.D)
		p.Multiply(&Workspace{}, &r.Registers, d, a, b, c)
		for lane := range WarpLanes {
			for reg := range p.D.Regs {
				row, col := p.D.Place(lane, reg, 0)
				want := int(value(1)(row, col))
				for k := range 8 {
					x, y := uint32(word(row, k)), uint32(word(k, col))
					if op == "and" {
						want += bits.OnesCount32(x & y)
					} else {
						want += bits.OnesCount32(x ^ y)
					}
				}
				if got := int(p.D.Type.get(&r.Registers, d[reg], lane)); got != want {
					t.Fatalf("%s: element (%d, %d) of the product = %d, want %d", op, row, col, got, want)
				}
			}
		}
	}
}

// TestMultiplySaturates checks that sums of integers wrap around, or with .satfinite
// saturate.
func TestMultiplySaturates(t *testing.T) {
	for sat, want := range map[bool]uint64{false: 0x8000000f, true: 0x7fffffff} {
		p, err := NewMMA(MMAForm{M: 8, N: 8, K: 16, A: elements["u8"], B: elements["s8"], C: elements["s32"], D: elements["s32"], RowA: true, Saturate: sat})
		if err != nil {
			t.Fatal(err)
		}
		r := newRig()
		one := r.with(&p.A, func(int, int) float64 { return 1 })
		c := r.with(&p.C, func(int, int) float64 { return 0x7fffffff })
		d := r.empty(&p.D)
		p.Multiply(&Workspace{}, &r.Registers, d, one, one, c)
		if p.D.Type.get(&r.Registers, d[0], 0) != want {
			t.Errorf("sum with satfinite = %v: %#x, want %#x", sat, p.D.Type.get(&r.Registers, d[0], 0), want)
		}
	}
}

// value returns a function that assigns each element a number of at most three.
func value(seed int) func(row, col int) float64 {
	return func(row, col int) float64 { return float64((row*seed + col*(seed+2) + row*col) % 4) }
}

var codes = map[*Element]map[float64]uint64{}

// codesOf returns the bits of each number of a type of at most 16 bits.
func codesOf(t *Element) map[float64]uint64 {
	if codes[t] == nil {
		codes[t] = map[float64]uint64{}
		for v := range uint64(1) << min(t.Bits, 16) {
			codes[t][t.decode(v)] = v
		}
	}
	return codes[t]
}

// rig has registers and the slots of the operands of a product.
type rig struct {
	Registers
	next int
}

func newRig() *rig {
	const slots = 64
	return &rig{Registers: Registers{Words: make([]uint32, slots*WarpLanes), Doubles: make([]uint64, slots*WarpLanes), Stride: WarpLanes}}
}

// empty returns registers for a fragment.
func (r *rig) empty(f *Fragment) (s Slots) {
	for range f.Regs {
		s = append(s, r.next)
		r.next++
	}
	return s
}

// with returns registers of a fragment with these elements.
func (r *rig) with(f *Fragment, value func(row, col int) float64) Slots {
	s := r.empty(f)
	code := codesOf(f.Type)
	wide := f.Type.Name == "tf32" || f.Type.Name == "b1"
	for lane := range WarpLanes {
		for reg := range f.Regs {
			for e := range f.Each() {
				x := value(f.Place(lane, reg, e))
				v, ok := code[x]
				if f.Type.encode != nil {
					v, ok = f.Type.encode(x), true
				}
				if wide {
					v, ok = uint64(uint32(x)), true
				}
				if f.Type.Name == "tf32" {
					v = uint64(b32(float32(x)))
				}
				if !ok {
					panic(fmt.Sprint(f.Type.Name, " has no ", x))
				}
				f.Type.set(&r.Registers, s[reg], lane, f.Type.get(&r.Registers, s[reg], lane)|v<<(e*f.Type.Bits))
			}
		}
	}
	return s
}

// BenchmarkMultiply measures one product of a warp.
func BenchmarkMultiply(b *testing.B) {
	for _, c := range []struct {
		types   [4]string
		m, n, k int
	}{
		{[4]string{"f32", "f16", "f16", "f32"}, 16, 8, 16}, {[4]string{"f32", "bf16", "bf16", "f32"}, 16, 8, 16}, {[4]string{"f32", "tf32", "tf32", "f32"}, 16, 8, 8},
		{[4]string{"s32", "s8", "s8", "s32"}, 16, 8, 32}, {[4]string{"f64", "f64", "f64", "f64"}, 8, 8, 4},
	} {
		p, err := NewMMA(MMAForm{M: c.m, N: c.n, K: c.k, D: elements[c.types[0]], A: elements[c.types[1]], B: elements[c.types[2]], C: elements[c.types[3]], RowA: true, Mode: Nearest})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(p.String(), func(b *testing.B) {
			r := newRig()
			w, x, y, z, d := &Workspace{}, r.empty(&p.A), r.empty(&p.B), r.empty(&p.C), r.empty(&p.D)
			for b.Loop() {
				p.Multiply(w, &r.Registers, d, x, y, z)
			}
			b.ReportMetric(float64(c.m*c.n*c.k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFMA/s")
		})
	}
}
