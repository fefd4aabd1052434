package exec

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// The matrix instructions that a whole warp executes together (PTX ISA, "Warp Level
// Matrix Instructions"). They are .aligned: all lanes execute the same instruction.

// matrixBuffers holds the registers of a warp while a matrix instruction is executed.
type matrixBuffers struct {
	a, b, c ops.Registers
	dense   ops.Workspace
}

// readRegisters returns the registers of a warp's lanes, in a buffer that grows as needed.
func (m *machine) readRegisters(room *ops.Registers, w int, list []ir.Ref) ops.Registers {
	for len(*room) < len(list) {
		*room = append(*room, [ir.WarpSize]uint64{})
	}
	for i, r := range list {
		if r.Class == ir.Class64 {
			copy((*room)[i][:], m.v64(r.Slot, w, w+1))
			continue
		}
		for l, v := range m.v32(r.Slot, w, w+1) {
			(*room)[i][l] = uint64(v)
		}
	}
	return (*room)[:len(list)]
}

// writeRegisters writes registers of a warp's lanes.
func (m *machine) writeRegisters(w int, list []ir.Ref, from ops.Registers) {
	for i, r := range list {
		if r.Class == ir.Class64 {
			copy(m.v64(r.Slot, w, w+1), from[i][:])
			continue
		}
		v := m.v32(r.Slot, w, w+1)
		for l := range v {
			v[l] = uint32(from[i][l])
		}
	}
}

// whole executes an instruction that the lanes of a warp execute together.
type whole = func(m *machine, w int, lanes uint32) error

// together returns the instruction of all lanes of a warp.
func together(o *ir.Aligned) *warpOp {
	return &warpOp{Exchange: &o.Exchange, whole: newWhole(o.Do)}
}

func newWhole(op ir.Op) whole {
	switch o := op.(type) {
	case *ir.Product:
		return multiply(o)
	case *ir.WarpgroupProduct:
		return multiplyShared(o)
	case *ir.SparseProduct:
		return multiplySparse(o)
	case *ir.SparseWarpgroupProduct:
		return multiplySharedSparse(o)
	case *ir.LoadMatrix:
		return loadMatrix(o)
	case *ir.StoreMatrix:
		return storeMatrix(o)
	case *ir.LoadTiles:
		return loadTiles(o)
	case *ir.StoreTiles:
		return storeTiles(o)
	case *ir.TransposeTile:
		return transposeTile(o)
	}
	panic(fmt.Sprintf("a warp cannot do %T together", op)) // excluded by TestEveryOperation
}

func multiply(o *ir.Product) whole {
	return func(m *machine, w int, _ uint32) error {
		r := &m.matrix
		a, b, c := m.readRegisters(&r.a, w, o.A), m.readRegisters(&r.b, w, o.B), m.readRegisters(&r.c, w, o.C)
		for len(r.c) < len(o.D) {
			r.c = append(r.c, [ir.WarpSize]uint64{})
		}
		o.F.Multiply(&r.dense, r.c, a, b, c)
		m.writeRegisters(w, o.D, r.c)
		return nil
	}
}

// warpsPerGroup is the number of warps of a warpgroup.
const warpsPerGroup = 4

func multiplyShared(o *ir.WarpgroupProduct) whole {
	return func(m *machine, w int, _ uint32) error {
		r := &m.matrix
		d := m.readRegisters(&r.c, w, o.D)
		c := d
		if (m.preds[o.Add.Slot*maxWarps+w]&1 != 0) == o.Add.Not {
			c = nil
		}
		a := ops.Multiplicand{First: 16 * (w % warpsPerGroup), Across: o.Flip[0], Negated: o.Neg[0]}
		if o.InA {
			a.Registers = m.readRegisters(&r.a, w, o.A)
		} else {
			a.Matrix = ops.SharedMatrixOf(m.get(o.A[0], w*ir.WarpSize))
		}
		b := ops.Multiplicand{Matrix: ops.SharedMatrixOf(m.get(o.B, w*ir.WarpSize)), Across: o.Flip[1], Negated: o.Neg[1]}
		if err := o.F.MultiplyShared(&r.dense, m.shared, d, a, b, c); err != nil {
			return fmt.Errorf("%w: %w", abi.ErrIllegalAddress, err)
		}
		m.writeRegisters(w, o.D, d)
		return nil
	}
}

// lines returns the memory of each line of a matrix.
func (m *machine) lines(k *ir.MatrixAccess, w int, lanes uint32) ([][]byte, error) {
	a := reached(k.Access)
	lane := w*ir.WarpSize + bits.TrailingZeros32(lanes)
	n, size := k.Fragment.Lines(k.Col)
	stride := 8 * size
	if k.Stride.Class != ir.ClassNone {
		stride = m.get(k.Stride, lane) * uint64(k.Fragment.StrideBits())
	}
	if stride%8 != 0 {
		return nil, fmt.Errorf("%w: stride of %d bits between the lines of a matrix, want a multiple of 8", abi.ErrMisaligned, stride)
	}
	lines := make([][]byte, n)
	base := m.get(a.Base, lane)
	for i := range lines {
		var err error
		if lines[i], err = m.stretch(a, a.at(base, a.Off+uint64(i)*stride/8), size, lane); err != nil {
			return nil, err
		}
	}
	return lines, nil
}

// stretch returns n bytes at an address, which must be a multiple of a.Size.
func (m *machine) stretch(a *access, addr, n uint64, lane int) ([]byte, error) {
	b, err := m.window(a.Space, addr, a.Size, lane)
	if err != nil {
		return nil, err
	}
	if uint64(len(b)) < n {
		return nil, outside(n, a.Space, addr, uint64(len(b)))
	}
	return b[:n], nil
}

func loadMatrix(k *ir.LoadMatrix) whole {
	return func(m *machine, w int, lanes uint32) error {
		lines, err := m.lines(&k.MatrixAccess, w, lanes)
		if err != nil {
			return err
		}
		v := m.readRegisters(&m.matrix.c, w, k.R)
		k.Fragment.Load(v, lines, k.Col)
		m.writeRegisters(w, k.R, v)
		return nil
	}
}

func storeMatrix(k *ir.StoreMatrix) whole {
	return func(m *machine, w int, lanes uint32) error {
		if lane := w*ir.WarpSize + bits.TrailingZeros32(lanes); k.Space == ir.Generic && m.get(k.Base, lane)+k.Off-m.env.Spaces.Param < ir.SpaceSize {
			return errParameters
		}
		lines, err := m.lines(&k.MatrixAccess, w, lanes)
		if err != nil {
			return err
		}
		m.did |= didChange
		k.Fragment.Store(lines, m.readRegisters(&m.matrix.c, w, k.R), k.Col)
		return nil
	}
}

// tileRow returns the memory of a row of a tile. The address of row row of tile i is in
// lane 8i+row.
func (m *machine) tileRow(a *access, w, tile, row int) ([]byte, error) {
	return m.inShared(a, w*ir.WarpSize+8*tile+row, 16)
}

func loadTiles(o *ir.LoadTiles) whole {
	a := reached(o.Access)
	return func(m *machine, w int, _ uint32) error {
		var tiles [4]ops.Tile // destination registers may hold addresses: read everything first
		for i := range o.D {
			for row := range tiles[i] {
				b, err := m.tileRow(a, w, i, row)
				if err != nil {
					return err
				}
				for j := range tiles[i][row] {
					tiles[i][row][j] = binary.LittleEndian.Uint16(b[2*j:])
				}
			}
		}
		for i, d := range o.D {
			for l := range ir.WarpSize {
				m.set(d, w*ir.WarpSize+l, uint64(tiles[i].Word(l, o.Trans)))
			}
		}
		return nil
	}
}

func storeTiles(o *ir.StoreTiles) whole {
	a := reached(o.Access)
	return func(m *machine, w int, _ uint32) error {
		m.did |= didChange
		for i, s := range o.S {
			tile := m.tile(w, s, o.Trans)
			for row := range tile {
				b, err := m.tileRow(a, w, i, row)
				if err != nil {
					return err
				}
				for j, v := range tile[row] {
					binary.LittleEndian.PutUint16(b[2*j:], v)
				}
			}
		}
		return nil
	}
}

// tile returns the tile that a register of a warp's lanes holds.
func (m *machine) tile(w int, s ir.Ref, trans bool) (t ops.Tile) {
	for l := range ir.WarpSize {
		t.SetWord(l, trans, uint32(m.get(s, w*ir.WarpSize+l)))
	}
	return t
}

func transposeTile(o *ir.TransposeTile) whole {
	return func(m *machine, w int, _ uint32) error {
		t := m.tile(w, o.S, false)
		for l := range ir.WarpSize {
			m.set(o.D, w*ir.WarpSize+l, uint64(t.Word(l, true)))
		}
		return nil
	}
}
