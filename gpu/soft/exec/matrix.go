package exec

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
	"github.com/basalt-gpu/basalt/gpu/soft/simd"
)

// The matrix instructions that a whole warp executes together (PTX ISA, "Warp Level
// Matrix Instructions"). They are .aligned: all lanes execute the same instruction.

// matrixBuffers are used while a matrix instruction is executed.
type matrixBuffers struct {
	registers ops.Registers
	dense     ops.Workspace
	memory    matrixMemory
	lines     [][]byte
}

// registers returns the registers of a warp's lanes, until the next call.
func (m *machine) registers(w int) *ops.Registers {
	r := &m.matrix.registers
	r.Words, r.Doubles, r.Stride, r.First = m.r32, m.r64, m.lanes, w*ir.WarpSize
	return r
}

// slotsOf returns the slots of registers.
func slotsOf(list []ir.Ref) ops.Slots {
	s := make(ops.Slots, len(list))
	for i, r := range list {
		s[i] = r.Slot
	}
	return s
}

// whole executes an instruction that the lanes of a warp execute together.
type whole = func(m *machine, w int, lanes uint32) error

// together returns the instruction of all lanes of a warp.
func together(o *ir.Aligned) *warpOp {
	x := &warpOp{Exchange: &o.Exchange, do: o.Do, product: vectorProduct(o.Do)}
	if x.whole = newWhole(o.Do); x.product != nil {
		x.keep.B = 1
		x.whole = func(m *machine, w int, _ uint32) error {
			x.product.Multiply(&m.matrix.dense, m.registers(w), x.keep)
			return nil
		}
	}
	return x
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
	d, a, b, c := slotsOf(o.D), slotsOf(o.A), slotsOf(o.B), slotsOf(o.C)
	return func(m *machine, w int, _ uint32) error {
		o.F.Multiply(&m.matrix.dense, m.registers(w), d, a, b, c)
		return nil
	}
}

// vectorProduct returns a product as one of package simd, or nil.
func vectorProduct(op ir.Op) *simd.Product {
	o, ok := op.(*ir.Product)
	if !ok || !useVectors.Load() || !amd64.Available() { // which also checks F16C
		return nil
	}
	return simd.NewProduct(o.F, slotsOf(o.D), slotsOf(o.A), slotsOf(o.B), slotsOf(o.C))
}

// warpsPerGroup is the number of warps of a warpgroup.
const warpsPerGroup = 4

func multiplyShared(o *ir.WarpgroupProduct) whole {
	da, dd := slotsOf(o.A), slotsOf(o.D)
	return func(m *machine, w int, _ uint32) error {
		c := dd
		if (m.preds[o.Add.Slot*maxWarps+w]&1 != 0) == o.Add.Not {
			c = nil
		}
		a := ops.Multiplicand{First: 16 * (w % warpsPerGroup), Across: o.Flip[0], Negated: o.Neg[0]}
		if o.InA {
			a.Slots = da
		} else {
			a.Matrix = ops.SharedMatrixOf(m.get(o.A[0], w*ir.WarpSize))
		}
		b := ops.Multiplicand{Matrix: ops.SharedMatrixOf(m.get(o.B, w*ir.WarpSize)), Across: o.Flip[1], Negated: o.Neg[1]}
		if err := o.F.MultiplyShared(&m.matrix.dense, m.shared, m.registers(w), dd, a, b, c); err != nil {
			return fmt.Errorf("%w: %w", abi.ErrIllegalAddress, err)
		}
		return nil
	}
}

// matrixMemory is where a matrix is in memory.
type matrixMemory struct {
	lane         int
	base         uint64
	count        uint64 // of lines
	size, stride uint64 // bytes of a line, and from line to line
}

// memoryOf returns where a matrix is, until the next call. It is not a copy, as a copy of
// words that were just written waits until they are in the cache.
func (m *machine) memoryOf(k *ir.MatrixAccess, w int, lanes uint32) (x *matrixMemory, err error) {
	n, size := k.Fragment.Lines(k.Col)
	x = &m.matrix.memory
	x.lane, x.count, x.size, x.stride = w*ir.WarpSize+bits.TrailingZeros32(lanes), uint64(n), size, size
	x.base = m.get(k.Base, x.lane)
	if k.Stride.Class != ir.ClassNone {
		stride := m.get(k.Stride, x.lane) * uint64(k.Fragment.StrideBits())
		if stride%8 != 0 {
			return x, fmt.Errorf("%w: stride of %d bits between the lines of a matrix, want a multiple of 8", abi.ErrMisaligned, stride)
		}
		x.stride = stride / 8
	}
	return x, nil
}

// span returns memory with all lines of a matrix. It is nil if they are not within one
// allocation, or misaligned.
func (m *machine) span(a *access, x *matrixMemory) []byte {
	b, err := m.window(a.Space, a.at(x.base, a.Off), a.Size, x.lane)
	if err != nil || x.stride%a.Size != 0 || uint64(len(b)) < (x.count-1)*x.stride+x.size {
		return nil
	}
	return b
}

// lines returns the memory of each line of a matrix, until the next call.
func (m *machine) lines(a *access, x *matrixMemory) ([][]byte, error) {
	lines := m.matrix.lines[:0]
	for i := range x.count {
		line, err := m.stretch(a, a.at(x.base, a.Off+i*x.stride), x.size, x.lane)
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	m.matrix.lines = lines
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
	a, slots, wide := reached(k.Access), slotsOf(k.R), k.Fragment.Type.Bits == 64
	var stripes []ops.Stripe
	if useVectors.Load() {
		stripes = k.Fragment.Stripes(k.Col)
	}
	return func(m *machine, w int, lanes uint32) error {
		x, err := m.memoryOf(&k.MatrixAccess, w, lanes)
		if err != nil {
			return err
		}
		if stripes != nil && x.stride > 0 {
			if b := m.span(a, x); b != nil {
				simd.LoadStripes(m.registers(w), slots, stripes, wide, b, int(x.stride))
				return nil
			}
		}
		lines, err := m.lines(a, x)
		if err != nil {
			return err
		}
		k.Fragment.Load(m.registers(w), slots, lines, k.Col)
		return nil
	}
}

func storeMatrix(k *ir.StoreMatrix) whole {
	a, slots := reached(k.Access), slotsOf(k.R)
	return func(m *machine, w int, lanes uint32) error {
		if lane := w*ir.WarpSize + bits.TrailingZeros32(lanes); k.Space == ir.Generic && m.get(k.Base, lane)+k.Off-m.env.Spaces.Param < ir.SpaceSize {
			return errParameters
		}
		x, err := m.memoryOf(&k.MatrixAccess, w, lanes)
		if err != nil {
			return err
		}
		lines, err := m.lines(a, x)
		if err != nil {
			return err
		}
		m.did |= didChange
		k.Fragment.Store(lines, m.registers(w), slots, k.Col)
		return nil
	}
}

// tileRow returns the memory of a row of a tile. The address of row row of tile i is in
// lane 8i+row.
func (m *machine) tileRow(a *access, w, tile, row int) ([]byte, error) {
	lane := w*ir.WarpSize + 8*tile + row
	if a.Space == ir.Shared {
		at, size := a.at(m.get(a.Base, lane), a.Off), uint64(len(m.shared))
		if at%16 == 0 && at < size && size-at >= 16 {
			return m.shared[at:][:16], nil
		}
	}
	return m.inShared(a, lane, 16)
}

func loadTiles(o *ir.LoadTiles) whole {
	a := reached(o.Access)
	return func(m *machine, w int, _ uint32) error {
		var tiles [4][ir.WarpSize]uint32 // destination registers may hold addresses: read everything first
		for i := range o.D {
			for row := range 8 {
				b, err := m.tileRow(a, w, i, row)
				if err != nil {
					return err
				}
				words := tiles[i][4*row:][:4]
				for j := range words {
					words[j] = binary.LittleEndian.Uint32(b[4*j:])
				}
			}
		}
		for i, d := range o.D {
			words := (*[ir.WarpSize]uint32)(m.v32(d.Slot, w, w+1))
			if *words = tiles[i]; o.Trans {
				ops.TransposeTile(words)
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
			words := [ir.WarpSize]uint32(m.v32(s.Slot, w, w+1))
			if o.Trans {
				ops.TransposeTile(&words)
			}
			for row := range 8 {
				b, err := m.tileRow(a, w, i, row)
				if err != nil {
					return err
				}
				for j, v := range words[4*row:][:4] {
					binary.LittleEndian.PutUint32(b[4*j:], v)
				}
			}
		}
		return nil
	}
}

func transposeTile(o *ir.TransposeTile) whole {
	return func(m *machine, w int, _ uint32) error {
		words := [ir.WarpSize]uint32(m.v32(o.S.Slot, w, w+1))
		ops.TransposeTile(&words)
		copy(m.v32(o.D.Slot, w, w+1), words[:])
		return nil
	}
}
