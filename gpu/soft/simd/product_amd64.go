package simd

import (
	"slices"

	"github.com/basalt-gpu/basalt/gpu/soft/ops"
	"golang.org/x/sys/cpu"
)

// Products of matrices. A matrix consists of parts of 8 rows or 8 columns, and a
// register of A or B has the words of four lanes for each of them (ops.Fragment). A is
// converted to f64 row by row. A part of B has eight numbers for each step of the depth.
// A part of C or D has two halves, of 8 rows by 4: the even columns and the odd ones, in
// the order of the registers of C.

const (
	half = 32       // numbers of half a part of C
	part = 2 * half // numbers of a part of C
)

// wide is whether products use AVX-512.
var wide = cpu.X86.HasAVX512F

// Product is a product of matrices, with the conversions of its registers.
type Product struct {
	of      *ops.MMA
	slots   [4]ops.Slots // of D, A, B and C
	m, n, k int
	a, b    []piece // the registers of A and B
	parts   []place // the parts of C
	direct  bool    // a register of A has all of the depth
	quad    bool    // it is one of f64 that is computed from and to registers
	rows    func(d *float64, pitch int, r *[warp]uint32)
	columns func(d *float64, r *[warp]uint32)
	c       func(d *float64, r *[warp]uint32) // nil: f16
	d       func(d *[warp]uint32, v *float64)
	wide    bool // with AVX-512
	// whole computes a part of D from the registers of that of C, in place of c, add and
	// d, or is nil.
	whole func(d0, d1, c0, c1 *[warp]uint32, a *float64, pitch int, b *float64, k int)
}

// piece is a slot of A or B and the index of its first element in the matrix.
type piece struct{ slot, at int }

// place has the indices of the rows of A and of the columns of B of a part of C, and the
// slot of A with these rows.
type place struct{ rows, columns, slot int }

var (
	rowsOf = map[string]func(d *float64, pitch int, r *[warp]uint32){
		"f16": halfRows, "bf16": brainRows, "tf32": singleRows, "s8": signedRows, "u8": unsignedRows, "f64": nil,
	}
	columnsOf = map[string]func(d *float64, r *[warp]uint32){
		"f16": halfColumns, "bf16": brainColumns, "tf32": singleColumns, "s8": signedColumns, "u8": unsignedColumns,
	}
	widening  = map[string]func(d *float64, r *[warp]uint32){"f32": widenSingles, "s32": widenIntegers}
	narrowing = map[string]func(d *[warp]uint32, v *float64){"f32": narrowSingles, "s32": narrowIntegers}
	wholes    = map[string]func(d0, d1, c0, c1 *[warp]uint32, a *float64, pitch int, b *float64, k int){"f32": addSingles512, "s32": addIntegers512}
)

// NewProduct returns a product with the results of p.Multiply on registers, or nil. Those
// of f16 require a processor with F16C, which Available does not check.
func NewProduct(p *ops.MMA, d, a, b, c ops.Slots) *Product {
	m, n, k, ok := p.Sums()
	rows, known := rowsOf[p.A.Type.Name]
	if !ok || !known || !Available() || columnsOf[p.A.Type.Name] == nil != (columnsOf[p.B.Type.Name] == nil) {
		return nil
	}
	if p.D.Type.Name == "s32" && p.D.Type != ops.ElementByName("s32") { // it saturates
		return nil
	}
	x := &Product{of: p, slots: [4]ops.Slots{d, a, b, c}, m: m, n: n, k: k, rows: rows, columns: columnsOf[p.B.Type.Name], wide: wide}
	x.c, x.d = widening[p.C.Type.Name], narrowing[p.D.Type.Name]
	if x.wide && p.C.Type == p.D.Type && inPlace(d, c) {
		x.whole = wholes[p.D.Type.Name]
	}
	x.plan()
	// Multiply must be able to read A and B again.
	x.quad = m == 8 && n == 8 && k == 4 && p.D.Type.Name == "f64" && !slices.Contains(d, a[0]) && !slices.Contains(d, b[0])
	return x
}

// Multiply computes the product.
func (p *Product) Multiply(w *ops.Workspace, r *ops.Registers, keep Keep) {
	switch {
	case p.quad:
		p.quads(w, r)
	case p.of.D.Type.Name == "f64":
		p.doubles(w, r)
	default:
		p.multiply(w, r, keep)
	}
}

// Keep is where the matrices A and B of a product are kept, as numbers of kept matrices
// of the Workspace, and whether they are there already, from an earlier product of the
// same form with the same registers. Products of f64 ignore it.
type Keep struct {
	A, B       int
	HasA, HasB bool
}

// inPlace reports whether D can be written part by part: no register of D is one of C of
// another part.
func inPlace(d, c ops.Slots) bool {
	for i, slot := range d {
		if at := slices.Index(c, slot); at >= 0 && at/2 != i/2 {
			return false
		}
	}
	return true
}

// plan lists registers and parts in the order of the fragments: a tile of A or C is 16
// rows, if there are as many, and its registers alternate between its upper and its
// lower half.
func (p *Product) plan() {
	depth := 4 * p.of.A.Each() // of a register
	deep := p.k / depth
	p.direct = deep == 1
	// The first registers that are used: wmma has an f16 more than once.
	firstA, firstB := p.of.A.Regs-p.m/8*deep, p.of.B.Regs-p.n/8*deep
	halves := min(p.m, 16) / 8
	for i := range p.m / 8 * deep {
		row := 8 * (i/(halves*deep)*halves + i%halves)
		p.a = append(p.a, piece{p.slots[1][firstA+i], row*p.k + i/halves%deep*depth})
	}
	for i := range p.n / 8 * deep {
		p.b = append(p.b, piece{p.slots[2][firstB+i], 8 * i * depth})
	}
	for i := range p.m * p.n / part {
		tile, across := i/halves, p.n/8
		first := tile / across * halves
		p.parts = append(p.parts, place{8 * (first + i%halves) * p.k, 8 * (tile % across) * p.k, p.slots[1][firstA+first*deep+i%halves]})
	}
}

// multiply computes a product whose elements are not f64.
func (p *Product) multiply(w *ops.Workspace, r *ops.Registers, keep Keep) {
	da, db := w.Kept(keep.A, p.m*p.k), w.Kept(keep.B, p.k*p.n)
	if !keep.HasA {
		for _, x := range p.a {
			p.rows(&da[x.at], 8*p.k, r.Word(x.slot))
		}
	}
	if !keep.HasB {
		for _, x := range p.b {
			p.columns(&db[x.at], r.Word(x.slot))
		}
	}
	d, c := p.slots[0], p.slots[3]
	if p.whole != nil {
		for i, x := range p.parts {
			p.whole(r.Word(d[2*i]), r.Word(d[2*i+1]), r.Word(c[2*i]), r.Word(c[2*i+1]), &da[x.rows], 8*p.k, &db[x.columns], p.k)
		}
		return
	}
	_, _, dc := w.Dense(0, 0, p.m*p.n)
	for i, slot := range c {
		if p.c != nil {
			p.c(&dc[i*half], r.Word(slot))
		} else {
			decodeHalves((*[part]float64)(dc[i*part:]), r.Word(slot), p.of.C.Type)
		}
	}
	for i, x := range p.parts {
		c := (*[part]float64)(dc[i*part:])
		p.add(&c[0], &c[half], &c[0], &c[half], &da[x.rows], &db[x.columns])
	}
	for i, slot := range d {
		if p.d != nil {
			p.d(r.Word(slot), &dc[i*half])
		} else {
			encodeHalves(r.Word(slot), (*[part]float64)(dc[i*part:]), p.of.D.Type)
		}
	}
}

// add computes a part of D from the halves of that of C, rows of A and a part of B.
func (p *Product) add(d0, d1, c0, c1, a, b *float64) {
	if p.wide {
		addProducts512(d0, d1, c0, c1, a, 8*p.k, b, p.k)
	} else {
		addProducts(d0, d1, c0, c1, a, 8*p.k, b, p.k)
	}
}

// doubles computes a product of f64. NaNs are computed by Multiply, because the operand
// that they are taken from is defined.
func (p *Product) doubles(w *ops.Workspace, r *ops.Registers) {
	da, db, dc := w.Dense(p.m*p.k, p.k*p.n, p.m*p.n)
	for _, x := range p.b {
		doubleColumns(&db[x.at], r.Double(x.slot))
	}
	if !p.direct {
		for _, x := range p.a {
			doubleRows(&da[x.at], 8*p.k, r.Double(x.slot))
		}
	}
	for i, x := range p.parts {
		d, rows := (*[part]float64)(dc[i*part:]), &da[x.rows]
		if p.direct {
			rows = &float64s(r.Double(x.slot))[0]
		}
		p.add(&d[0], &d[half], &float64s(r.Double(p.slots[3][2*i]))[0], &float64s(r.Double(p.slots[3][2*i+1]))[0], rows, &db[x.columns])
	}
	if unordered(&dc[0], p.m*p.n) {
		p.of.Multiply(w, r, p.slots[0], p.slots[1], p.slots[2], p.slots[3])
		return
	}
	for i, slot := range p.slots[0] {
		*float64s(r.Double(slot)) = [half]float64(dc[i*half:])
	}
}

// quads is doubles for the smallest product.
func (p *Product) quads(w *ops.Workspace, r *ops.Registers) {
	d, a, b, c := p.slots[0], p.slots[1], p.slots[2], p.slots[3]
	_, _, old := w.Dense(0, 0, part)
	c0, c1 := r.Double(c[0]), r.Double(c[1])
	if addQuads(r.Double(d[0]), r.Double(d[1]), r.Double(a[0]), r.Double(b[0]), c0, c1, &old[0]) {
		*float64s(r.Double(d[0])), *float64s(r.Double(d[1])) = [half]float64(old), [half]float64(old[half:])
		p.of.Multiply(w, r, d, a, b, d)
	}
}

// decodeHalves converts a register of f16 to a part of C.
func decodeHalves(d *[part]float64, r *[warp]uint32, t *ops.Element) {
	for l, v := range r {
		d[l], d[half+l] = t.Decode(uint64(v&0xffff)), t.Decode(uint64(v>>16))
	}
}

// encodeHalves rounds a part of D to a register of f16.
func encodeHalves(r *[warp]uint32, d *[part]float64, t *ops.Element) {
	for l := range r {
		r[l] = uint32(t.Encode(d[l])) | uint32(t.Encode(d[half+l]))<<16
	}
}

// LoadStripes loads registers, of 64 bits if wide, from lines in data, whose distance is
// in bytes.
func LoadStripes(r *ops.Registers, slots ops.Slots, stripes []ops.Stripe, wide bool, data []byte, distance int) {
	for i, at := range stripes {
		from := data[at.Line*distance+at.At:]
		if wide {
			_ = from[7*distance+31]
			copyStripe32(r.Double(slots[i]), &from[0], distance)
			continue
		}
		_ = from[7*distance+15]
		copyStripe16(r.Word(slots[i]), &from[0], distance)
	}
}
