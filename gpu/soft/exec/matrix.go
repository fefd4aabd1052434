package exec

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// The instructions of matrices that a whole warp executes together (PTX ISA, "Warp
// Level Matrix Instructions"). They are .aligned: lanes meet at one place only.

// matrixRoom is where a warp's registers lie while one of these instructions runs.
type matrixRoom struct {
	a, b, c ops.Registers
	dense   ops.Workspace
}

// brought returns the registers of a warp's lanes, in a room that grows with need.
func (m *machine) brought(room *ops.Registers, w int, list []Ref) ops.Registers {
	for len(*room) < len(list) {
		*room = append(*room, [WarpSize]uint64{})
	}
	for i, r := range list {
		if r.Class == Class64 {
			copy((*room)[i][:], m.v64(r.Slot, w, w+1))
			continue
		}
		for l, v := range m.v32(r.Slot, w, w+1) {
			(*room)[i][l] = uint64(v)
		}
	}
	return (*room)[:len(list)]
}

// given writes registers of a warp's lanes.
func (m *machine) given(w int, list []Ref, from ops.Registers) {
	for i, r := range list {
		if r.Class == Class64 {
			copy(m.v64(r.Slot, w, w+1), from[i][:])
			continue
		}
		v := m.v32(r.Slot, w, w+1)
		for l := range v {
			v[l] = uint32(from[i][l])
		}
	}
}

// Multiply makes the lanes of a warp compute D = A B + C (mma, wmma.mma).
func (o *WarpOp) Multiply(p *ops.MMA, d, a, b, c []Ref) {
	o.whole = func(m *machine, w int, _ uint32) error {
		r := &m.matrix
		va, vb, vc := m.brought(&r.a, w, a), m.brought(&r.b, w, b), m.brought(&r.c, w, c)
		for len(r.c) < len(d) {
			r.c = append(r.c, [WarpSize]uint64{})
		}
		p.Multiply(&r.dense, r.c, va, vb, vc)
		m.given(w, d, r.c)
		return nil
	}
}

// MatrixAccess is a matrix in memory, for wmma.load and wmma.store. Address and
// stride are the same in all lanes.
type MatrixAccess struct {
	Access
	Fragment ops.Fragment
	Col      bool // its lines are columns
	Stride   Ref  // elements from line to line; ClassNone: the lines follow each other
	Regs     []Ref
}

// lines gives the memory of each line.
func (k *MatrixAccess) lines(m *machine, w int, lanes uint32) ([][]byte, error) {
	a := k.Access.reached()
	lane := w*WarpSize + bits.TrailingZeros32(lanes)
	n, size := k.Fragment.Lines(k.Col)
	stride := 8 * size
	if k.Stride.Class != ClassNone {
		stride = m.get(k.Stride, lane) * uint64(k.Fragment.StrideBits())
	}
	if stride%8 != 0 {
		return nil, fmt.Errorf("%w: lines of a matrix %d bits apart", abi.ErrMisaligned, stride)
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

// stretch gives n bytes at an address, which a.Size aligns.
func (m *machine) stretch(a *Access, addr, n uint64, lane int) ([]byte, error) {
	b, err := m.window(a.Space, addr, a.Size, lane)
	if err != nil {
		return nil, err
	}
	if uint64(len(b)) < n {
		return nil, fmt.Errorf("%w: %d bytes at %#x", abi.ErrIllegalAddress, n, addr)
	}
	return b[:n], nil
}

// LoadMatrix makes the lanes of a warp load a fragment (wmma.load).
func (o *WarpOp) LoadMatrix(k MatrixAccess) {
	o.whole = func(m *machine, w int, lanes uint32) error {
		lines, err := k.lines(m, w, lanes)
		if err != nil {
			return err
		}
		v := m.brought(&m.matrix.c, w, k.Regs)
		k.Fragment.Load(v, lines, k.Col)
		m.given(w, k.Regs, v)
		return nil
	}
}

// StoreMatrix makes the lanes of a warp store a fragment (wmma.store).
func (o *WarpOp) StoreMatrix(k MatrixAccess) {
	o.whole = func(m *machine, w int, lanes uint32) error {
		if lane := w*WarpSize + bits.TrailingZeros32(lanes); k.Space == Generic && m.get(k.Base, lane)+k.Off-m.env.Spaces.Param < SpaceSize {
			return fmt.Errorf("%w: store to parameters", abi.ErrIllegalAddress)
		}
		lines, err := k.lines(m, w, lanes)
		if err != nil {
			return err
		}
		k.Fragment.Store(lines, m.brought(&m.matrix.c, w, k.Regs), k.Col)
		return nil
	}
}

// tileRow gives the memory of a row of a tile: of tile i the address in lane 8i+row.
func (m *machine) tileRow(a *Access, w, tile, row int) ([]byte, error) {
	lane := w*WarpSize + 8*tile + row
	addr := a.at(m.get(a.Base, lane), a.Off)
	if a.Space == Generic {
		if addr -= m.env.Spaces.Shared; addr >= SpaceSize {
			return nil, fmt.Errorf("%w: a matrix at %#x is not in shared memory", abi.ErrIllegalAddress, addr+m.env.Spaces.Shared)
		}
	}
	return m.window(Shared, addr, 16, lane)
}

// LoadTiles makes the lanes of a warp load a tile into each register (ldmatrix).
func (o *WarpOp) LoadTiles(access Access, dst []Ref, trans bool) {
	a := access.reached()
	o.whole = func(m *machine, w int, _ uint32) error {
		var tiles [4]ops.Tile // registers may hold addresses: read all first
		for i := range dst {
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
		for i, d := range dst {
			for l := range WarpSize {
				m.set(d, w*WarpSize+l, uint64(tiles[i].Word(l, trans)))
			}
		}
		return nil
	}
}

// StoreTiles makes the lanes of a warp store a tile of each register (stmatrix).
func (o *WarpOp) StoreTiles(access Access, src []Ref, trans bool) {
	a := access.reached()
	o.whole = func(m *machine, w int, _ uint32) error {
		for i, s := range src {
			tile := m.tile(w, s, trans)
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

// tile is the tile that a register of a warp's lanes holds.
func (m *machine) tile(w int, s Ref, trans bool) (t ops.Tile) {
	for l := range WarpSize {
		t.SetWord(l, trans, uint32(m.get(s, w*WarpSize+l)))
	}
	return t
}

// TransposeTile makes the lanes of a warp transpose the tile in a register (movmatrix).
func (o *WarpOp) TransposeTile(d, s Ref) {
	o.whole = func(m *machine, w int, _ uint32) error {
		t := m.tile(w, s, false)
		for l := range WarpSize {
			m.set(d, w*WarpSize+l, uint64(t.Word(l, true)))
		}
		return nil
	}
}
