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
		if o.Multicast && m.cluster != nil && len(m.cluster.shared) > 1 {
			return errMulticast
		}
		m.did |= didChange
		return eachLaneErr(act, func(l int) error {
			b, err := m.window(mapAt.Space, mapAt.at(m.get(mapAt.Base, l), mapAt.Off), 64, l)
			if err != nil {
				return err
			}
			t, err := ops.DecodeTensorMap(b)
			if err == nil && t.Rank != len(o.Coords) {
				err = fmt.Errorf("%d dimensions, want the %d of the instruction", t.Rank, len(o.Coords))
			}
			if err != nil {
				return fmt.Errorf("%w: tensor map: %w", abi.ErrLaunchFailed, err)
			}
			c := &tensorCopy{m: m, t: t, lane: l, load: barrier != nil}
			if o.Reduce != "" {
				if c.update = t.Type.Update(o.Reduce); c.update == nil {
					return fmt.Errorf("%w: tensor map: elements that .%s cannot reduce", abi.ErrLaunchFailed, o.Reduce)
				}
			}
			if c.box, err = m.sharedAddress(box, l); err != nil {
				return err
			}
			if n := t.BoxBytes(); c.box%tensorUnit != 0 || c.box > uint64(len(m.shared)) || n > uint64(len(m.shared))-c.box {
				return fmt.Errorf("%w: box of %d bytes at shared address %#x, want a multiple of %d and the box in %d bytes", abi.ErrIllegalAddress, n, c.box, tensorUnit, len(m.shared))
			}
			var at [5]int32
			for i, r := range o.Coords {
				at[i] = int32(m.get(r, l))
			}
			if err := t.Rows(at, c.row); err != nil || barrier == nil {
				return err
			}
			return m.transacted(barrier, l, t.BoxBytes())
		})
	})
}

// tensorCopy is the copy of one lane.
type tensorCopy struct {
	m      *machine
	t      *ops.TensorMap
	lane   int
	box    uint64 // its address in shared memory
	load   bool
	update ops.Update
	buf    [256 * 8]byte // a row in the layout of device memory
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
		if place+tensorUnit > uint64(len(c.m.shared)) {
			return fmt.Errorf("%w: %d bytes of a swizzled box at shared address %#x, want them in %d bytes", abi.ErrIllegalAddress, tensorUnit, place, len(c.m.shared))
		}
		unit := c.m.shared[place:][:tensorUnit]
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
