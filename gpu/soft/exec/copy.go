package exec

import (
	"encoding/binary"
	"math/bits"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// asyncCopy is a cp.async.
type asyncCopy struct {
	*ir.CopyAsync
	to, from *access
	size     uint64
}

func copyAsync(k *ir.CopyAsync) step {
	o := &asyncCopy{k, reached(k.To), reached(k.From), k.To.Size}
	o.to.Size, o.from.Size = o.size, o.size
	return masked(func(m *machine, act []uint32) error {
		m.did |= didChange
		for w, lanes := range act {
			if lanes == 0 {
				continue
			}
			for lanes = o.inside(m, w, lanes); lanes != 0; lanes &= lanes - 1 {
				if err := o.lane(m, w*ir.WarpSize+bits.TrailingZeros32(lanes)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// inside copies for some lanes of a warp, in order, as long as their addresses are in
// shared memory and in the allocation of the first one, and returns the remaining lanes.
func (o *asyncCopy) inside(m *machine, w int, lanes uint32) uint32 {
	first := w*ir.WarpSize + bits.TrailingZeros32(lanes)
	if o.to.Space != ir.Shared || o.from.Space > ir.Global {
		return lanes
	}
	if addr := m.get(o.from.Base, first) + o.from.Off; addr-m.cache.Base >= uint64(len(m.cache.Data)) {
		r, ok := FindRegion(m.env.table, addr)
		if !ok {
			return lanes
		}
		m.cache = r
	}
	base, data := m.fixed(o.from.Space)
	var to, from [ir.WarpSize]uint64
	m.addressesOf(&to, o.to, w)
	m.addressesOf(&from, o.from, w)
	whole := o.Ignore == nil && o.Count.Class == ir.ClassNone
	for ; lanes != 0; lanes &= lanes - 1 {
		l := bits.TrailingZeros32(lanes)
		if !whole && o.copied(m, w*ir.WarpSize+l) != o.size {
			break
		}
		t, f := o.to.offset(to[l], o.to.Off, m.shared), o.from.offset(from[l], o.from.Off-base, data)
		if t >= uint64(len(m.shared)) || f >= uint64(len(data)) {
			break
		}
		copyUnit(m.shared[t:], data[f:], o.size)
	}
	return lanes
}

// addressesOf sets d to the addresses of a warp's lanes, without the offset.
func (m *machine) addressesOf(d *[ir.WarpSize]uint64, a *access, w int) {
	if a.Base.Class == ir.Class64 {
		copy(d[:], m.v64(a.Base.Slot, w, w+1))
		return
	}
	for l, v := range m.v32(a.Base.Slot, w, w+1) {
		d[l] = uint64(v)
	}
}

// copyUnit copies 4, 8 or 16 bytes.
func copyUnit(to, from []byte, size uint64) {
	switch size {
	case 4:
		binary.LittleEndian.PutUint32(to, binary.LittleEndian.Uint32(from))
		return
	case 16:
		binary.LittleEndian.PutUint64(to[8:], binary.LittleEndian.Uint64(from[8:]))
	}
	binary.LittleEndian.PutUint64(to, binary.LittleEndian.Uint64(from))
}

// lane copies for one lane, whatever its addresses.
func (o *asyncCopy) lane(m *machine, l int) error {
	dst, err := m.window(o.to.Space, o.to.at(m.get(o.to.Base, l), o.to.Off), o.size, l)
	if err != nil {
		return err
	}
	n := o.copied(m, l)
	at := o.from.at(m.get(o.from.Base, l), o.from.Off)
	if at&(o.size-1) != 0 {
		return misaligned(o.size, o.from.Space, at, o.size)
	}
	clear(dst[n:o.size])
	if n == 0 {
		return nil
	}
	src, err := m.window(o.from.Space, at, 1, l)
	if err != nil || uint64(len(src)) < n {
		return unallocated(n, at)
	}
	copy(dst[:n], src)
	return nil
}

// copied returns the number of bytes that a lane copies.
func (o *asyncCopy) copied(m *machine, lane int) uint64 {
	if o.Ignore != nil && m.get(o.Ignore.Ref(), lane) != uint64(bitOf(o.Ignore.Not)) {
		return 0
	}
	if o.Count.Class == ir.ClassNone {
		return o.size
	}
	return min(m.get(o.Count, lane), o.size)
}
