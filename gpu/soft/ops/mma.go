package ops

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"sync"
)

// MMA is a product of matrices D = A B + C that a warp computes (PTX ISA, "Warp Level
// Matrix Instructions": mma, wmma.mma; "Asynchronous Warpgroup Level Matrix
// Instructions": wgmma.mma_async).
//
// The order and the rounding of the sums are undefined in PTX. Here products are exact
// and added in f64, in the order of the depth beginning with the element of C, and the
// sum is rounded once to the type of D; integers are exact. An f64 product is one fma
// for each step of the depth, as PTX specifies.
type MMA struct {
	A, B, C, D Fragment

	batch, m, n, k int
	sums           bool                                        // of products: not of single bits, and not of f64 with directed rounding
	row            func(acc []float64, a float64, b []float64) // acc += a * b; nil: addProducts
	indexA, indexB []uint16
	indexC, indexD []uint16
}

// Registers has the registers of a warp's lanes: those of 32 bits and, for elements of
// f64, those of 64. The lanes of register s begin at s*Stride+First.
type Registers struct {
	Words         []uint32
	Doubles       []uint64
	Stride, First int
}

// Slots are the registers of an operand.
type Slots []int

// Word returns a register of 32 bits.
func (r *Registers) Word(slot int) *[WarpLanes]uint32 {
	return (*[WarpLanes]uint32)(r.Words[slot*r.Stride+r.First:])
}

// Double returns a register of 64 bits.
func (r *Registers) Double(slot int) *[WarpLanes]uint64 {
	return (*[WarpLanes]uint64)(r.Doubles[slot*r.Stride+r.First:])
}

// get and set read and write an element's register of a lane.
func (e *Element) get(r *Registers, slot, lane int) uint64 {
	if e.Bits == 64 {
		return r.Double(slot)[lane]
	}
	return uint64(r.Word(slot)[lane])
}

func (e *Element) set(r *Registers, slot, lane int, v uint64) {
	if e.Bits == 64 {
		r.Double(slot)[lane] = v
		return
	}
	r.Word(slot)[lane] = uint32(v)
}

// WarpLanes is the size of a warp.
const WarpLanes = 32

// MMAForm has the qualifiers of an mma or a wmma.mma.
type MMAForm struct {
	Wmma       bool
	M, N, K    int
	D, A, B, C *Element
	RowA, RowB bool   // A, B: .row
	Saturate   bool   // .satfinite
	Bitwise    string // of single bits: "xor", "and"
	Mode       Rounding
}

// The shapes by the types of the multiplicands.
var (
	mmaShapes = map[string]string{
		"f16": "m8n8k4 m16n8k8 m16n8k16", "bf16": "m16n8k8 m16n8k16", "tf32": "m16n8k4 m16n8k8",
		"e4m3": "m16n8k16 m16n8k32", "e5m2": "m16n8k16 m16n8k32",
		"f64": "m8n8k4 m16n8k4 m16n8k8 m16n8k16",
		"s8":  "m8n8k16 m16n8k16 m16n8k32", "u8": "m8n8k16 m16n8k16 m16n8k32",
		"s4": "m8n8k32 m16n8k32 m16n8k64", "u4": "m8n8k32 m16n8k32 m16n8k64",
		"b1": "m8n8k128 m16n8k128 m16n8k256",
	}
	wmmaShapes = map[string]string{
		"f16": "m16n16k16 m8n32k16 m32n8k16", "bf16": "m16n16k16 m8n32k16 m32n8k16", "tf32": "m16n16k8",
		"s8": "m16n16k16 m8n32k16 m32n8k16", "u8": "m16n16k16 m8n32k16 m32n8k16",
		"f64": "m8n8k4", "s4": "m8n8k32", "u4": "m8n8k32", "b1": "m8n8k128",
	}
	// resultTypes has the types of C and D, by that of A.
	resultTypes = map[string]string{
		"f16": "f16 f32", "bf16": "f32", "tf32": "f32", "e4m3": "f16 f32", "e5m2": "f16 f32", "f64": "f64",
		"s8": "s32", "u8": "s32", "s4": "s32", "u4": "s32", "b1": "s32",
	}
)

// shapeOf returns a shape as a qualifier.
func shapeOf(m, n, k int) string { return fmt.Sprintf("m%dn%dk%d", m, n, k) }

func listed(list, word string) bool { return slices.Contains(strings.Fields(list), word) }

// check returns an error that names the unsupported combination, unless PTX has the
// form.
func (f *MMAForm) check() error {
	shapes := mmaShapes
	if f.Wmma {
		shapes = wmmaShapes
	}
	results := resultTypes[f.A.Name]
	switch {
	case !listed(shapes[f.A.Name], shapeOf(f.M, f.N, f.K)):
		return fmt.Errorf("shape .%s and A of type .%s", shapeOf(f.M, f.N, f.K), f.A.Name)
	case !listed(results, f.C.Name), !listed(results, f.D.Name):
		return fmt.Errorf("types .%s of A, .%s of C and .%s of D", f.A.Name, f.C.Name, f.D.Name)
	case f.A.Bits != f.B.Bits, f.A.Whole() != f.B.Whole(), f.A.Bits != 8 && !f.A.Whole() && f.A != f.B:
		return multiplicandsError(f.A, f.B)
	case (f.A.Name == "b1") != (f.Bitwise != ""):
		return bitwiseError(f.A, f.Bitwise)
	case f.Saturate && (!f.A.Whole() || f.Bitwise != "") && !f.Wmma:
		return saturateError(f.A)
	case f.D != f.C && !f.Wmma && (!f.quad() || f.D.Name == "f16"):
		return fmt.Errorf("types .%s of C and .%s of D", f.C.Name, f.D.Name)
	case f.quad():
		return nil
	case !f.Wmma || f.A.Bits < 8 || f.Bitwise != "":
		if !f.RowA || f.RowB {
			return fmt.Errorf("a layout other than .row.col for shape .%s and A of type .%s", shapeOf(f.M, f.N, f.K), f.A.Name)
		}
	}
	return nil
}

// The errors of a form complete the message "not implemented: mma with".

func multiplicandsError(a, b *Element) error {
	return fmt.Errorf("types .%s of A and .%s of B", a.Name, b.Name)
}

func bitwiseError(a *Element, bitwise string) error {
	if bitwise == "" {
		return fmt.Errorf("type .%s of A and neither .and nor .xor", a.Name)
	}
	return fmt.Errorf("type .%s of A and .%s", a.Name, bitwise)
}

func saturateError(a *Element) error { return fmt.Errorf("type .%s of A and .satfinite", a.Name) }

// quad reports whether the form is the one of four products.
func (f *MMAForm) quad() bool { return !f.Wmma && f.K == 4 && f.A.Name == "f16" }

// products caches the results of NewMMA. It is bounded by the number of forms.
var products sync.Map // of MMAForm: *MMA

// NewMMA returns the product of a form, or an error if PTX has no such form.
func NewMMA(f MMAForm) (*MMA, error) {
	if p, ok := products.Load(f); ok {
		return p.(*MMA), nil
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	p, _ := products.LoadOrStore(f, newMMA(f))
	return p.(*MMA), nil
}

func newMMA(f MMAForm) *MMA {
	if f.Saturate && f.D.Name == "s32" {
		f.D = elements["s32.satfinite"]
	}
	p := &MMA{batch: 1, m: f.M, n: f.N, k: f.K, sums: true}
	switch {
	case f.quad():
		p.batch, p.sums = 4, false
		p.A, p.B, p.C, p.D = quadA(f.A, f.RowA), quadB(f.B, f.RowB), quadC(f.C), quadC(f.D)
		return p.indexed()
	case f.Bitwise != "":
		p.k /= 32
		p.row, p.sums = countAnd, false
		if f.Bitwise == "xor" {
			p.row = countXor
		}
	case f.D.Name == "f64":
		p.row = fmaRow
		if f.Mode != Nearest {
			p.sums = false
			p.row = func(acc []float64, a float64, b []float64) {
				for i, x := range b {
					acc[i] = f64(directed64(opFMA, math.Float64bits(a), math.Float64bits(x), math.Float64bits(acc[i]), f.Mode))
				}
			}
		}
	}
	p.A, p.B = fragmentA(p.m, p.k, f.A), fragmentB(p.k, p.n, f.B)
	if f.Wmma {
		p.A, p.B = WmmaFragment("a", p.m, p.n, f.K, f.A), WmmaFragment("b", p.m, p.n, f.K, f.B)
	}
	p.C, p.D = fragmentC(p.m, p.n, f.C), fragmentC(p.m, p.n, f.D)
	return p.indexed()
}

// Sums returns the numbers of rows, of columns and of steps of the depth of a product
// whose elements are sums of C and the products of elements of A and B, in the order of
// the depth. ok is false for the others: of single bits, those that are four products,
// and those of f64 with directed rounding.
func (p *MMA) Sums() (m, n, k int, ok bool) { return p.m, p.n, p.k, p.sums }

// String returns the product's shape and types.
func (p *MMA) String() string {
	return fmt.Sprintf("%s.%s.%s.%s.%s", shapeOf(p.m, p.n, p.k), p.D.Type.Name, p.A.Type.Name, p.B.Type.Name, p.C.Type.Name)
}

// WmmaFragment returns the fragment of matrix "a", "b", "c" or "d" of a shape and an
// element type. The layout is undefined in PTX; here it is that of mma.
func WmmaFragment(which string, m, n, k int, t *Element) Fragment {
	if t.Name == "b1" {
		k /= 32
	}
	var f Fragment
	switch which {
	case "a":
		f = fragmentA(m, k, t)
	case "b":
		f = fragmentB(k, n, t)
	default:
		return fragmentC(m, n, t)
	}
	if t.Name == "f16" {
		f = f.repeated(8)
	}
	return f
}

// WmmaShape reports whether wmma has a shape for a matrix with this element type.
func WmmaShape(which string, m, n, k int, t *Element) bool {
	if which == "a" || which == "b" {
		return listed(wmmaShapes[t.Name], shapeOf(m, n, k))
	}
	for multiplicand, results := range resultTypes {
		if listed(results, t.Name) && listed(wmmaShapes[multiplicand], shapeOf(m, n, k)) {
			return true
		}
	}
	return false
}

// indexed computes the indices of the operands' elements in dense matrices.
func (p *MMA) indexed() *MMA {
	p.indexA, p.indexB, p.indexC, p.indexD = p.A.index(), p.B.index(), p.C.index(), p.D.index()
	return p
}

// index returns the index of each element in a dense matrix, row by row, for each
// register of each lane.
func (f *Fragment) index() []uint16 {
	each := f.Each()
	list := make([]uint16, 0, f.Regs*WarpLanes*each)
	for reg := range f.Regs {
		for lane := range WarpLanes {
			for e := range each {
				row, col := f.place(lane, reg, e)
				list = append(list, uint16(row*f.Cols+col))
			}
		}
	}
	return list
}

// gather converts a fragment to a dense matrix.
func (f *Fragment) gather(dense []float64, index []uint16, r *Registers, slots Slots) {
	each, width := f.Each(), f.Type.Bits
	mask := ^uint64(0) >> (64 - width)
	for reg := range f.Regs {
		for lane := range WarpLanes {
			v := f.Type.get(r, slots[reg], lane)
			for e := range each {
				dense[index[e]] = f.Type.decode(v >> (e * width) & mask)
			}
			index = index[each:]
		}
	}
}

// scatter rounds a dense matrix and converts it to a fragment.
func (f *Fragment) scatter(dense []float64, index []uint16, r *Registers, slots Slots) {
	each, width := f.Each(), f.Type.Bits
	for reg := range f.Regs {
		for lane := range WarpLanes {
			v := uint64(0)
			for e := range each {
				v |= f.Type.encode(dense[index[e]]) << (e * width)
			}
			f.Type.set(r, slots[reg], lane, v)
			index = index[each:]
		}
	}
}

// Workspace holds the dense matrices of a product between calls.
type Workspace struct {
	a, b, c []float64
	kept    [KeptMatrices][]float64
}

// KeptMatrices is the number of matrices that a Workspace keeps.
const KeptMatrices = 8

// Kept returns the memory of n numbers of a kept matrix, whose content stays until it is
// used for another one.
func (w *Workspace) Kept(i, n int) []float64 { return sized(&w.kept[i], n) }

// sized returns a slice of n elements, whose memory v keeps for the next call.
func sized(v *[]float64, n int) []float64 {
	if len(*v) < n {
		*v = make([]float64, n)
	}
	return (*v)[:n]
}

// Dense returns memory for the elements of A, B and C, whose content is undefined.
func (w *Workspace) Dense(a, b, c int) (da, db, dc []float64) {
	return sized(&w.a, a), sized(&w.b, b), sized(&w.c, c)
}

// Multiply computes the product of the lanes' registers. Those of d may be among the
// others.
func (p *MMA) Multiply(w *Workspace, r *Registers, d, a, b, c Slots) {
	da, db, dc := w.Dense(p.batch*p.m*p.k, p.batch*p.k*p.n, p.batch*p.m*p.n)
	p.A.gather(da, p.indexA, r, a)
	p.B.gather(db, p.indexB, r, b)
	p.C.gather(dc, p.indexC, r, c)
	for i := range p.batch {
		p.product(dc[i*p.m*p.n:], da[i*p.m*p.k:], db[i*p.k*p.n:])
	}
	p.D.scatter(dc, p.indexD, r, d)
}

// product adds A B to C.
func (p *MMA) product(c, a, b []float64) {
	if p.row == nil {
		addProducts(c, a, b, p.m, p.n, p.k)
		return
	}
	for i := range p.m {
		acc := c[i*p.n:][:p.n]
		for k, x := range a[i*p.k:][:p.k] {
			p.row(acc, x, b[k*p.n:][:p.n])
		}
	}
}

// addProducts adds A B to C for elements whose products are exact in f64. Eight
// independent sums of a row stay in registers.
func addProducts(c, a, b []float64, m, n, k int) {
	for i := range m {
		row := a[i*k:][:k]
		for j := 0; j < n; j += 8 {
			acc := (*[8]float64)(c[i*n+j:])
			s0, s1, s2, s3, s4, s5, s6, s7 := acc[0], acc[1], acc[2], acc[3], acc[4], acc[5], acc[6], acc[7]
			at := j
			for _, x := range row {
				y := (*[8]float64)(b[at:])
				at += n
				s0 += x * y[0]
				s1 += x * y[1]
				s2 += x * y[2]
				s3 += x * y[3]
				s4 += x * y[4]
				s5 += x * y[5]
				s6 += x * y[6]
				s7 += x * y[7]
			}
			*acc = [8]float64{s0, s1, s2, s3, s4, s5, s6, s7}
		}
	}
}

func fmaRow(acc []float64, a float64, b []float64) {
	for i, x := range b {
		if r := math.FMA(a, x, acc[i]); r == r {
			acc[i] = r
		} else {
			acc[i] = f64(handedOn(math.Float64bits(x), math.Float64bits(acc[i]), math.Float64bits(a)))
		}
	}
}

func countAnd(acc []float64, a float64, b []float64) {
	for i, x := range b {
		acc[i] += float64(bits.OnesCount32(uint32(a) & uint32(x)))
	}
}

func countXor(acc []float64, a float64, b []float64) {
	for i, x := range b {
		acc[i] += float64(bits.OnesCount32(uint32(a) ^ uint32(x)))
	}
}
