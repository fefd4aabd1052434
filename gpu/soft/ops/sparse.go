package ops

import (
	"fmt"
	"sync"
)

// SparseMMA is a product of matrices D = A B + C in which each chunk of a row of A has
// only half of its elements (PTX ISA, "Matrix multiply-accumulate operation using
// mma.sp instruction with sparse matrix A", and the same section of
// wgmma.mma_async.sp). The registers of A hold these elements like those of a matrix of
// half the depth, and the metadata has the place of each element in its chunk.
//
// Sums are those of MMA. Elements of B for which A has no element are not read, even if
// they are infinite. Where the metadata is undefined in PTX, an element is that of A
// wherever the metadata places it.
type SparseMMA struct {
	dense  *MMA // A has half the depth, B all of it
	form   string
	chunk  int // columns of a chunk: 2, 4 or 8
	chunks int // of a row of A
}

// sparseShapes has the shapes of mma.sp by the type of A.
var sparseShapes = map[string]string{
	"f16": "m16n8k16 m16n8k32", "bf16": "m16n8k16 m16n8k32", "tf32": "m16n8k8 m16n8k16",
	"e4m3": "m16n8k64", "e5m2": "m16n8k64",
	"s8": "m16n8k32 m16n8k64", "u8": "m16n8k32 m16n8k64", "s4": "m16n8k64 m16n8k128", "u4": "m16n8k64 m16n8k128",
}

// checkSparse returns an error that names the unsupported combination, unless PTX has
// the form for a sparse A.
func (f *MMAForm) checkSparse() error {
	shape := shapeOf(f.M, f.N, f.K)
	results := resultTypes[f.A.Name]
	switch {
	case !listed(sparseShapes[f.A.Name], shape):
		return fmt.Errorf("shape .%s and sparse A of type .%s", shape, f.A.Name)
	case !listed(results, f.D.Name), f.D != f.C, f.A.Bits == 8 && !f.A.Whole() && f.D.Name != "f32":
		return fmt.Errorf("types .%s of sparse A, .%s of C and .%s of D", f.A.Name, f.C.Name, f.D.Name)
	case f.A.Bits != f.B.Bits, f.A.Whole() != f.B.Whole(), f.A.Bits > 8 && f.A != f.B:
		return multiplicandsError(f.A, f.B)
	case f.Saturate && !f.A.Whole():
		return saturateError(f.A)
	case !f.RowA || f.RowB:
		return fmt.Errorf("a layout other than .row.col for sparse A of type .%s", f.A.Name)
	}
	return nil
}

// sparseProducts caches the results of NewSparseMMA and of NewSparseWarpgroupMMA. It is
// bounded by the number of forms.
var sparseProducts sync.Map // of MMAForm and WarpgroupForm: *SparseMMA

// NewSparseMMA returns the product of an mma.sp, or an error if PTX has no such form.
func NewSparseMMA(f MMAForm) (*SparseMMA, error) {
	if p, ok := sparseProducts.Load(f); ok {
		return p.(*SparseMMA), nil
	}
	if err := f.checkSparse(); err != nil {
		return nil, err
	}
	d := f.D
	if f.Saturate {
		d = elements["s32.satfinite"]
	}
	p := &MMA{
		batch: 1, m: f.M, n: f.N, k: f.K, A: fragmentA(f.M, f.K/2, f.A), B: fragmentB(f.K, f.N, f.B), C: fragmentC(f.M, f.N, f.C), D: fragmentC(f.M, f.N, d),
	}
	return keepSparse(f, p.indexed(), f.A), nil
}

// keepSparse stores a product in the cache.
func keepSparse(form any, p *MMA, a *Element) *SparseMMA {
	chunk := 4
	switch a.Bits {
	case 32:
		chunk = 2
	case 4:
		chunk = 8
	}
	s, _ := sparseProducts.LoadOrStore(form, &SparseMMA{dense: p, form: "sparse." + p.String(), chunk: chunk, chunks: p.k / chunk})
	return s.(*SparseMMA)
}

// String returns the product's shape and types.
func (p *SparseMMA) String() string { return p.form }

// Fragments returns the layouts of the matrices in registers.
func (p *SparseMMA) Fragments() (d, a, b, c *Fragment) {
	return &p.dense.D, &p.dense.A, &p.dense.B, &p.dense.C
}

// Selectors returns the number of values of the sparsity selector: one, two or all four
// lanes of a group of four contribute metadata.
func (p *SparseMMA) Selectors() int { return 16 / p.chunks }

// Metadata is a register of a warp's lanes with the places of A's elements, and the
// selector of the lanes whose registers are read.
type Metadata struct {
	Lanes    [WarpLanes]uint32
	Selector int // less than Selectors
}

// of returns the four bits of a chunk: those of figures "Sparse MMA … metadata layout".
// For elements of at least 16 bits a register has four chunks of a row and of the row
// eight below; for smaller ones it has eight chunks of one row.
func (p *SparseMMA) of(e *Metadata, row, chunk int) int {
	lane, shift := 4*(row%8), 4*(chunk%8)
	if p.dense.A.Type.Bits >= 16 {
		lane += e.Selector*p.chunks/4 + chunk/4
		shift = 16*(row/8) + 4*(chunk%4)
	} else {
		lane += 2*(e.Selector+chunk/8) + row/8
	}
	return int(e.Lanes[lane]>>shift) & 15
}

// element is an element of a row of A, and the row of B by which it is multiplied.
type element struct {
	value float64
	row   int
}

// row returns the elements of a row of A in the order of the depth.
func (p *SparseMMA) row(list []element, a []float64, e *Metadata, row int) []element {
	list = list[:0]
	half := p.chunk / 2
	for chunk := range p.chunks {
		at, bits, from := p.chunk*chunk, p.of(e, row, chunk), a[half*chunk:]
		if half == 1 { // both indices are of the 16-bit halves of one element
			list = append(list, element{from[0], at + bits>>3})
			continue
		}
		first, second := bits&3, bits>>2
		low, high := from[:half/2], from[half/2:half]
		if first > second {
			first, second, low, high = second, first, high, low
		}
		list = p.placed(p.placed(list, low, at, first), high, at, second)
	}
	return list
}

// placed appends the elements of a fourth of a chunk, one or two.
func (p *SparseMMA) placed(list []element, values []float64, at, index int) []element {
	for i, x := range values {
		list = append(list, element{x, at + len(values)*index + i})
	}
	return list
}

// product adds A B to C.
func (p *SparseMMA) product(c, a, b []float64, e *Metadata) {
	var room [64]element
	m, n, half := p.dense.m, p.dense.n, p.dense.k/2
	for i := range m {
		list := p.row(room[:], a[i*half:][:half], e, i)
		for j := 0; j < n; j += 8 {
			acc := (*[8]float64)(c[i*n+j:])
			s0, s1, s2, s3, s4, s5, s6, s7 := acc[0], acc[1], acc[2], acc[3], acc[4], acc[5], acc[6], acc[7]
			for _, x := range list {
				y := (*[8]float64)(b[x.row*n+j:])
				s0 += x.value * y[0]
				s1 += x.value * y[1]
				s2 += x.value * y[2]
				s3 += x.value * y[3]
				s4 += x.value * y[4]
				s5 += x.value * y[5]
				s6 += x.value * y[6]
				s7 += x.value * y[7]
			}
			*acc = [8]float64{s0, s1, s2, s3, s4, s5, s6, s7}
		}
	}
}

// Multiply computes the product of the lanes' registers. d may be one of the others.
func (p *SparseMMA) Multiply(w *Workspace, r *Registers, d, a, b, c Slots, e *Metadata) {
	x := p.dense
	da, db, dc := w.Dense(x.m*x.k/2, x.k*x.n, x.m*x.n)
	x.A.gather(da, x.indexA, r, a)
	x.B.gather(db, x.indexB, r, b)
	x.C.gather(dc, x.indexC, r, c)
	p.product(dc, da, db, e)
	x.D.scatter(dc, x.indexD, r, d)
}

// NewSparseWarpgroupMMA returns the product of one warp of a warpgroup with a sparse A
// (wgmma.mma_async.sp), or an error if PTX has no such form.
func NewSparseWarpgroupMMA(f WarpgroupForm) (*SparseMMA, error) {
	if p, ok := sparseProducts.Load(f); ok {
		return p.(*SparseMMA), nil
	}
	if f.K*f.A.Bits != 512 || f.A.Name == "b1" {
		return nil, fmt.Errorf("a depth of %d and sparse A of type .%s", f.K, f.A.Name)
	}
	dense := f
	dense.K /= 2
	half, err := NewWarpgroupMMA(dense)
	if err != nil {
		return nil, err
	}
	p := *half
	p.k = f.K
	p.B.Rows = f.K
	return keepSparse(f, &p, f.A), nil
}

// MultiplyShared computes D = A B + C, or D = A B when c is nil, as MMA.MultiplyShared.
func (p *SparseMMA) MultiplyShared(w *Workspace, shared []byte, r *Registers, d Slots, a, b Multiplicand, c Slots, e *Metadata) error {
	x := p.dense
	half := x.k / 2
	da, db, dc := w.Dense(x.m*half, x.k*x.n, x.m*x.n)
	if a.Slots != nil {
		x.A.gather(da, x.indexA, r, a.Slots)
	} else if err := x.A.collect(da, shared, &a, x.m, half, half, 1); err != nil {
		return err
	}
	if err := x.B.collect(db, shared, &b, x.n, x.k, 1, x.n); err != nil {
		return err
	}
	clear(dc)
	if c != nil {
		x.C.gather(dc, x.indexC, r, c)
	}
	if a.Negated != b.Negated {
		for i := range da {
			da[i] = -da[i]
		}
	}
	p.product(dc, da, db, e)
	x.D.scatter(dc, x.indexD, r, d)
	return nil
}
