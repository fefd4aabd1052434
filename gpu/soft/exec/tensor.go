package exec

import (
	"encoding/binary"
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// tensorUnit is the number of bytes that swizzling moves together.
const tensorUnit = 16

func copyTensor(o *ir.CopyTensor) step {
	mapAt, box := reached(o.Map), reached(o.Box)
	var barrier *access
	if o.Barrier != nil {
		barrier = reached(*o.Barrier)
	}
	return masked(func(m *machine, act []uint32) error {
		m.did |= didChange
		return eachLaneErr(act, func(l int) error {
			t, err := m.tensorMap(o, mapAt, l)
			if err != nil {
				return err
			}
			c := &tensorCopy{m: m, t: t, lane: l, load: barrier != nil}
			if o.Reduce != "" {
				if c.update = t.Type.Update(o.Reduce); c.update == nil {
					return fmt.Errorf("%w: tensor map: elements that .%s cannot reduce", abi.ErrLaunchFailed, o.Reduce)
				}
			}
			at, err := m.sharedAddress(box, l)
			if err != nil {
				return err
			}
			return m.eachBlock(o.Blocks, l, func(block uint64) error {
				if err := c.run(o, inBlock(at, block)); err != nil || barrier == nil {
					return err
				}
				return m.transacted(barrier, l, t.BoxBytes(), block)
			})
		})
	})
}

// tensorMap returns a lane's tensor map, which must be one for the instruction.
func (m *machine) tensorMap(o *ir.CopyTensor, a *access, lane int) (*ops.TensorMap, error) {
	b, err := m.window(a.Space, a.at(m.get(a.Base, lane), a.Off), tensorMapAlign, lane)
	if err != nil {
		return nil, err
	}
	t, err := ops.DecodeTensorMap(b)
	switch {
	case err != nil:
	case t.Rank != len(o.Coords):
		err = fmt.Errorf("%d dimensions, want the %d of the instruction", t.Rank, len(o.Coords))
	case (t.Im2col != nil) != o.Im2col:
		err = fmt.Errorf("its mode is im2col = %v, want %v as that of the instruction", t.Im2col != nil, o.Im2col)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: tensor map: %w", abi.ErrLaunchFailed, err)
	}
	return t, nil
}

// tensorMapAlign is the alignment of a tensor map in bytes.
const tensorMapAlign = 64

// replaceTensorField replaces a field of a map in memory.
func replaceTensorField(o *ir.ReplaceTensorField) step {
	a := reached(o.Access)
	return masked(func(m *machine, act []uint32) error {
		m.did |= didChange
		return eachLaneErr(act, func(l int) error {
			at := a.at(m.get(a.Base, l), a.Off)
			if a.Space == ir.Generic && at-m.env.Spaces.Param < ir.SpaceSize {
				return errParameters
			}
			b, err := m.window(a.Space, at, tensorMapAlign, l)
			if err != nil {
				return err
			}
			if err := o.F.Replace(b, o.Index, m.get(o.S, l)); err != nil {
				return fmt.Errorf("%w: tensor map: %w", abi.ErrLaunchFailed, err)
			}
			return nil
		})
	})
}

// tensorCopy is the copy of one lane.
type tensorCopy struct {
	m      *machine
	t      *ops.TensorMap
	lane   int
	shared []byte // the shared memory of a block
	box    uint64 // the address of the box there
	load   bool
	update ops.Update
	buf    [256 * 8]byte // a row in the layout of device memory
}

// run copies the box at an address of shared memory.
func (c *tensorCopy) run(o *ir.CopyTensor, box uint64) (err error) {
	if c.shared, c.box, err = c.m.sharedOf(box); err != nil {
		return err
	}
	if n := c.t.BoxBytes(); c.box%tensorUnit != 0 || c.box > uint64(len(c.shared)) || n > uint64(len(c.shared))-c.box {
		return fmt.Errorf("%w: box of %d bytes at shared address %#x, want a multiple of %d and the box in %d bytes", abi.ErrIllegalAddress, n, c.box, tensorUnit, len(c.shared))
	}
	var at [5]int32
	for i, r := range o.Coords {
		at[i] = int32(c.m.get(r, c.lane))
	}
	var offsets [3]uint16
	for i, r := range o.Offsets {
		offsets[i] = uint16(c.m.get(r, c.lane))
	}
	return c.t.Rows(at, offsets, c.row)
}

// row copies a row of the box.
func (c *tensorCopy) row(r ops.BoxRow) error {
	size := c.t.Type.Size()
	row := c.buf[:uint64(c.t.Box[0])*size]
	inside := row[r.First*size : r.Last*size]
	var mem []byte
	if len(inside) > 0 {
		var err error
		if mem, err = c.m.window(ir.Global, r.Address, size, c.lane); err != nil {
			return err
		}
		if len(mem) < len(inside) {
			return unallocated(uint64(len(inside)), r.Address)
		}
		mem = mem[:len(inside)]
	}
	if c.load {
		c.t.Outside(row[:r.First*size])
		c.t.Outside(row[r.Last*size:])
		copy(inside, mem)
		c.t.Loaded(inside)
	}
	for at := uint64(0); at < uint64(len(row)); at += tensorUnit {
		place := c.t.Place(c.box, r.Offset+at)
		if place+tensorUnit > uint64(len(c.shared)) {
			return fmt.Errorf("%w: %d bytes of a swizzled box at shared address %#x, want them in %d bytes", abi.ErrIllegalAddress, tensorUnit, place, len(c.shared))
		}
		unit := c.shared[place:][:tensorUnit]
		if c.load {
			copy(unit, row[at:])
		} else {
			copy(row[at:], unit)
		}
	}
	switch {
	case c.load:
	case c.update == nil:
		copy(mem, inside)
	case size == 2:
		return c.combineHalves(mem, inside, r.Address)
	default:
		combineEach(mem, inside, int(size), c.update)
	}
	return nil
}

// combineHalves updates elements of 2 bytes.
func (c *tensorCopy) combineHalves(mem, src []byte, addr uint64) error {
	for i := 0; i < len(src); i += 2 {
		x, at := uint64(binary.LittleEndian.Uint16(src[i:])), addr+uint64(i)
		word, err := c.m.window(ir.Global, at&^3, 4, c.lane)
		if err != nil {
			word = nil
		}
		atomic16(mem[i:], word, at&2 != 0, func(old uint16) uint16 { return uint16(c.update(uint64(old), x, 0)) })
	}
	return nil
}
