package ops

import (
	"errors"
	"fmt"
	"sync"
)

// Products of a warpgroup of four warps (PTX ISA, "Asynchronous Warpgroup Level Matrix
// Instructions": wgmma.mma_async). Each warp has 16 of the 64 rows and does not depend
// on the others, so each warp computes its own part.

// SharedMatrix is a multiplicand in shared memory, at the location of a matrix
// descriptor (PTX ISA, "Shared Memory Matrix Layout"). Its units are 16 bytes.
type SharedMatrix struct {
	start, leading, stride uint64 // in bytes
	base                   uint64 // the row of the swizzling pattern at its start
	width                  uint64 // of the pattern, in units: 1 (none), 2, 4 or 8
}

// SharedMatrixOf decodes a descriptor.
func SharedMatrixOf(desc uint64) SharedMatrix {
	field := func(at int) uint64 { return desc >> at & (1<<14 - 1) << 4 }
	return SharedMatrix{field(0), field(16), field(32), desc >> 49 & 7, [4]uint64{1, 8, 4, 2}[desc>>62]}
}

// at returns the address of byte b of line i of a matrix. A line is along the depth, of
// one row of A or one column of B, or with across it is at one depth, of all of them.
func (s *SharedMatrix) at(i, b uint64, across bool) uint64 {
	unit, group := b/16, i/8
	addr := s.start + i%8*16*s.width + b%16
	switch {
	case !across && s.width == 1:
		addr += group*s.stride + unit*s.leading
	case !across:
		addr += group*s.stride + unit*16
	case s.width == 1:
		addr += group*s.leading + unit*s.stride
	default:
		addr += group*s.stride + unit%s.width*16 + unit/s.width*s.leading
	}
	return addr ^ (addr>>7-s.base)&(s.width-1)<<4
}

// WarpgroupForm has the qualifiers of a wgmma.mma_async.
type WarpgroupForm struct {
	N, K     int
	D, A, B  *Element
	Saturate bool
	Bitwise  string // of single bits: "and"
}

// check returns an error that names the unsupported combination, unless PTX has the
// form.
func (f *WarpgroupForm) check() error {
	results := resultTypes[f.A.Name]
	switch {
	case f.N < 8 || f.N > 256 || f.N%8 != 0:
		return fmt.Errorf("%d columns (8 to 256 in steps of 8)", f.N)
	case f.A.Bits == 4 || f.A.Bits == 64 || !listed(results, f.D.Name):
		return fmt.Errorf("types .%s of A and .%s of D", f.A.Name, f.D.Name)
	case f.A.Bits != f.B.Bits || f.A.Whole() != f.B.Whole() || f.A.Bits != 8 && f.A != f.B:
		return multiplicandsError(f.A, f.B)
	case f.A.Name == "b1" && f.K != 256, f.A.Name != "b1" && f.K*f.A.Bits != 256:
		return fmt.Errorf("a depth of %d and A of type .%s", f.K, f.A.Name)
	case (f.A.Name == "b1") != (f.Bitwise == "and") || f.A.Name != "b1" && f.Bitwise != "":
		return bitwiseError(f.A, f.Bitwise)
	case f.Saturate && (!f.A.Whole() || f.A.Name == "b1"):
		return saturateError(f.A)
	}
	return nil
}

var warpgroupProducts sync.Map // of WarpgroupForm: *MMA

// NewWarpgroupMMA returns the product of one warp of a warpgroup.
func NewWarpgroupMMA(f WarpgroupForm) (*MMA, error) {
	if p, ok := warpgroupProducts.Load(f); ok {
		return p.(*MMA), nil
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	d := f.D
	if f.Saturate {
		d = elements["s32.satfinite"]
	}
	p := &MMA{batch: 1, m: 16, n: f.N, k: f.K}
	if f.Bitwise != "" {
		p.k, p.row = p.k/32, countAnd
	}
	p.A, p.C, p.D = fragmentA(p.m, p.k, f.A), fragmentC(p.m, p.n, d), fragmentC(p.m, p.n, d)
	p.B = Fragment{Rows: p.k, Cols: p.n, Type: f.B}
	p.indexA, p.indexC = p.A.index(), p.C.index()
	p.indexD = p.indexC
	stored, _ := warpgroupProducts.LoadOrStore(f, p)
	return stored.(*MMA), nil
}

// Multiplicand is an A or a B: registers, or a matrix in shared memory.
type Multiplicand struct {
	Slots   Slots // nil if it is in memory
	Matrix  SharedMatrix
	First   int  // its first row
	Across  bool // lines are along the rows of A or the columns of B
	Negated bool
}

// ErrOutside is the error of a matrix that is not completely in shared memory.
var ErrOutside = errors.New("the descriptor of a matrix reaches beyond shared memory")

// MultiplyShared computes D = A B + C, or D = A B when c is nil.
func (p *MMA) MultiplyShared(w *Workspace, shared []byte, r *Registers, d Slots, a, b Multiplicand, c Slots) error {
	da, db, dc := w.Dense(p.m*p.k, p.k*p.n, p.m*p.n)
	if a.Slots != nil {
		p.A.gather(da, p.indexA, r, a.Slots)
	} else if err := p.A.collect(da, shared, &a, p.m, p.k, p.k, 1); err != nil {
		return err
	}
	if err := p.B.collect(db, shared, &b, p.n, p.k, 1, p.n); err != nil {
		return err
	}
	for _, x := range []struct {
		dense   []float64
		negated bool
	}{{da[:p.m*p.k], a.Negated}, {db[:p.k*p.n], b.Negated}} {
		for i := range x.dense {
			if x.negated {
				x.dense[i] = -x.dense[i]
			}
		}
	}
	if c != nil {
		p.C.gather(dc, p.indexC, r, c)
	} else {
		clear(dc[:p.m*p.n])
	}
	p.product(dc, da, db)
	p.D.scatter(dc, p.indexD, r, d)
	return nil
}

// collect copies a matrix in shared memory to a dense one, with outer rows of A or
// columns of B. perOuter and perDepth are the distances of elements in the dense one.
func (f *Fragment) collect(dense []float64, shared []byte, x *Multiplicand, outer, depth, perOuter, perDepth int) error {
	size := uint64(f.Type.Bits / 8)
	for o := range outer {
		for k := range depth {
			line, along := uint64(x.First+o), uint64(k)
			if x.Across {
				line, along = along, line
			}
			at := x.Matrix.at(line, along*size, x.Across)
			if at+size > uint64(len(shared)) {
				return ErrOutside
			}
			v := uint64(0)
			for i, b := range shared[at:][:size] {
				v |= uint64(b) << (8 * i)
			}
			dense[o*perOuter+k*perDepth] = f.Type.decode(v)
		}
	}
	return nil
}
