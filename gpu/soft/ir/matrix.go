package ir

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// The matrix operations of a warp, whose lanes hold the matrices together (PTX ISA,
// "Warp Level Matrix Instructions"). Each is the Do of an Aligned.

// Product is D = A B + C (mma, wmma.mma).
type Product struct {
	F          *ops.MMA
	D, A, B, C []Ref
}

// Name implements Op.
func (o *Product) Name() string { return "mma." + o.F.String() }

// Registers implements Op.
func (o *Product) Registers() (results, sources []Ref) {
	return registers(o.D...), append(append(registers(o.A...), registers(o.B...)...), registers(o.C...)...)
}

// MatrixAccess is a fragment and its matrix in memory. Address and stride are the same
// in all lanes. Access.Size is the alignment of a line.
type MatrixAccess struct {
	Access
	Fragment ops.Fragment
	Col      bool // its lines are columns
	Stride   Ref  // elements from line to line; None if the lines are consecutive
	R        []Ref
}

func (k *MatrixAccess) text() string {
	return fmt.Sprintf("%s.%d.%d.%s.%s", map[bool]string{true: "col", false: "row"}[k.Col], k.Fragment.Rows, k.Fragment.Cols, k.Fragment.Type.Name, k.Access.text())
}

// LoadMatrix loads a fragment (wmma.load).
type LoadMatrix struct{ MatrixAccess }

// Name implements Op.
func (o *LoadMatrix) Name() string { return "ld.matrix." + o.text() }

// Registers implements Op.
func (o *LoadMatrix) Registers() (results, sources []Ref) {
	return registers(o.R...), registers(o.Base, o.Stride)
}

// StoreMatrix stores a fragment (wmma.store).
type StoreMatrix struct{ MatrixAccess }

// Name implements Op.
func (o *StoreMatrix) Name() string { return "st.matrix." + o.text() }

// Registers implements Op.
func (o *StoreMatrix) Registers() (results, sources []Ref) {
	return nil, append(registers(o.Base, o.Stride), registers(o.R...)...)
}

// LoadTiles loads a tile of 8 by 8 elements of 16 bits into each register (ldmatrix).
// The addresses of the rows of tile i, in shared memory, are in the lanes from 8i on.
type LoadTiles struct {
	Access
	D     []Ref
	Trans bool
}

// Name implements Op.
func (o *LoadTiles) Name() string { return "ld.tiles" + transposed(o.Trans) + "." + o.text() }

// Registers implements Op.
func (o *LoadTiles) Registers() (results, sources []Ref) { return registers(o.D...), registers(o.Base) }

// StoreTiles stores the tile in each register (stmatrix).
type StoreTiles struct {
	Access
	S     []Ref
	Trans bool
}

// Name implements Op.
func (o *StoreTiles) Name() string { return "st.tiles" + transposed(o.Trans) + "." + o.text() }

// Registers implements Op.
func (o *StoreTiles) Registers() (results, sources []Ref) {
	return nil, append(registers(o.Base), registers(o.S...)...)
}

func transposed(trans bool) string { return map[bool]string{true: ".trans"}[trans] }

// TransposeTile transposes the tile in a register (movmatrix).
type TransposeTile struct{ D, S Ref }

// Name implements Op.
func (o *TransposeTile) Name() string { return "mov.tile.trans" }

// Registers implements Op.
func (o *TransposeTile) Registers() (results, sources []Ref) { return registers(o.D), registers(o.S) }

// WarpgroupProduct is D = A B + D of a warpgroup (wgmma.mma_async), of which each warp
// computes its rows. It is executed at once, as a program may not read the result
// before it has waited.
type WarpgroupProduct struct {
	F    *ops.MMA
	D    []Ref
	A    []Ref // registers, or one with the matrix descriptor
	B    Ref   // a matrix descriptor
	Add  Pred  // where it is false, D = A B
	InA  bool  // A is in registers
	Neg  [2]bool
	Flip [2]bool // the lines of A, of B are along the other dimension
}

// Name implements Op.
func (o *WarpgroupProduct) Name() string {
	return fmt.Sprintf("wgmma.%s neg=%v flip=%v%s", o.F, o.Neg, o.Flip, negations(o.Add))
}

// Registers implements Op.
func (o *WarpgroupProduct) Registers() (results, sources []Ref) {
	sources = append(append(registers(o.D...), registers(o.A...)...), o.B, o.Add.Ref())
	return registers(o.D...), sources
}
