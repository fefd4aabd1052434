package exec

import (
	"encoding/binary"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	mathbits "math/bits"

	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// access is the memory operand of a step.
type access struct {
	ir.Access
	reach uint64 // the highest address of the space, used as a mask for sums
}

// reached returns an access with the highest address of its space.
func reached(a ir.Access) *access {
	x := &access{a, 1<<64 - 1}
	if a.Space > ir.Global {
		x.reach = 1<<32 - 1
	}
	return x
}

func load(o *ir.Load) step {
	a, size := reached(o.Access), o.Size
	return masked(func(m *machine, act []uint32) error {
		addrs := m.addresses(a)
		if err := m.aligned(a, addrs, act); err != nil {
			return err
		}
		if a.Space != ir.Param {
			m.read(addrs, act)
		}
		for i, d := range o.D {
			if o.Fixed && a.Space == ir.Param {
				if err := m.uniform(a, a.at(addrs[0], a.Off+uint64(i)*size), d, act); err != nil {
					return err
				}
				continue
			}
			if err := m.loadOne(a, addrs, a.Off+uint64(i)*size, d, act); err != nil {
				return err
			}
		}
		return nil
	})
}

func store(o *ir.Store) step {
	a, size := reached(o.Access), o.Size
	return masked(func(m *machine, act []uint32) error {
		addrs := m.addresses(a)
		if err := m.aligned(a, addrs, act); err != nil {
			return err
		}
		m.did |= didChange
		for i, s := range o.S {
			if err := m.storeOne(a, addrs, a.Off+uint64(i)*size, s, act); err != nil {
				return err
			}
		}
		return nil
	})
}

func update(i *ir.Atomic) step {
	o, a, size := atomicOp{i}, reached(i.Access), i.Size
	return masked(func(m *machine, act []uint32) error {
		addrs := m.addresses(a)
		m.read(addrs, act)
		m.probe(a, addrs, a.Off, act)
		base, data := m.fixed(a.Space)
		alone := a.Space == ir.Shared && m.of.size == 1 // no other block has access to the memory
		for w, bits := range act {
			if alone {
				bits = m.updateAlone(o, addrs[w*ir.WarpSize:][:ir.WarpSize], a.Off-base, data, w, bits)
			}
			for ; bits != 0; bits &= bits - 1 {
				l := w*ir.WarpSize + mathbits.TrailingZeros32(bits)
				at := a.offset(addrs[l], a.Off-base, data)
				if size < 4 || at >= uint64(len(data)) {
					if err := m.updateOne(o, a, a.at(addrs[l], a.Off), l); err != nil {
						return err
					}
					base, data = m.fixed(a.Space)
					continue
				}
				f := o.in(m, a.at(addrs[l], a.Off))
				x, y := m.get(o.B, l), m.get(o.C, l)
				old, now := atomicUpdate(data[at:], size, alone, f, x, y)
				if now != old {
					m.did |= didChange
				}
				m.set(o.D, l, old)
			}
		}
		return nil
	})
}

// atomicOp is the atomic operation of a step.
type atomicOp struct{ *ir.Atomic }

// in returns the operation for an address of the operation's space.
func (o atomicOp) in(m *machine, addr uint64) ops.Update {
	if o.Device != nil && (o.Space == ir.Global || o.Space == ir.Generic && m.env.Spaces.Global(addr)) {
		return o.Device
	}
	return o.F
}

// updateOne executes the operation for one lane, whatever its address.
func (m *machine) updateOne(o atomicOp, a *access, addr uint64, l int) error {
	if a.Space == ir.Generic && addr-m.env.Spaces.Param < ir.SpaceSize {
		return errParameters
	}
	mem, err := m.window(a.Space, addr, a.Size, l)
	if err != nil {
		return err
	}
	f, x, y := o.in(m, addr), m.get(o.B, l), m.get(o.C, l)
	var old, now uint64
	if a.Size >= 4 {
		old, now = atomicUpdate(mem, a.Size, false, f, x, y)
	} else {
		word, err := m.window(a.Space, addr&^3, 4, l)
		if err != nil {
			word = nil
		}
		old = uint64(atomic16(mem, word, addr&2 != 0, func(v uint16) uint16 { now = f(uint64(v), x, y); return uint16(now) }))
	}
	if now != old {
		m.did |= didChange
	}
	m.set(o.D, l, old)
	return nil
}

// at returns an address with an offset. Addresses of shared, local and parameter memory
// have 32 bits: a sum beyond them wraps around, and a wider register is truncated. A
// 32-bit register is zero-extended for the other spaces (PTX ISA, "Addresses as
// Operands"). The fast paths for whole warps leave addresses that wrap around to the
// slow one.
func (a *access) at(addr, off uint64) uint64 { return (addr + off) & a.reach }

// addresses returns every lane's address without the offset. The slice is valid until
// the next call.
func (m *machine) addresses(a *access) []uint64 {
	if a.Base.Class == ir.Class64 {
		v := m.v64(a.Base.Slot, 0, m.warps)
		if a.N == 1 {
			return v
		}
		copy(m.save64, v) // a vector load may overwrite its own address
		return m.save64
	}
	widen(m.save64, m.v32(a.Base.Slot, 0, m.warps))
	return m.save64
}

// fixed returns the memory of a space in which all lanes share addresses, for the fast
// path. For device memory it is the allocation accessed last.
func (m *machine) fixed(s ir.Space) (base uint64, data []byte) {
	switch s {
	case ir.Shared:
		return 0, m.shared
	case ir.Param:
		return 0, m.env.Params
	case ir.Local:
		return 0, nil
	}
	return m.cache.Base, m.cache.Data
}

// probe makes the first active lane's allocation the one accessed last, as most
// instructions access only one. An invalid address is reported by the access itself.
func (m *machine) probe(a *access, addrs []uint64, off uint64, act []uint32) {
	if a.Space > ir.Global {
		return
	}
	for w, bits := range act {
		if bits != 0 {
			addr := addrs[w*ir.WarpSize+mathbits.TrailingZeros32(bits)] + off
			if addr-m.cache.Base >= uint64(len(m.cache.Data)) {
				if r, ok := FindRegion(m.env.table, addr); ok {
					m.cache = r
				}
			}
			return
		}
	}
}

// uniform loads a kernel parameter, which has the same value in all lanes.
func (m *machine) uniform(a *access, addr uint64, d ir.Ref, act []uint32) error {
	b, err := m.window(ir.Param, addr, a.Size, 0)
	if err != nil {
		return err
	}
	v := readAs(b, a) & a.Mask
	for w := 0; w < len(act); w++ {
		if n := fullFrom(act, w); n > 0 {
			m.fillWarps(d, w, w+n, v)
			w += n - 1
		} else if act[w] != 0 {
			m.spread(d, w, act[w], v)
		}
	}
	return nil
}

// aligned checks the addresses of vector accesses, which must be aligned to the whole
// vector.
func (m *machine) aligned(a *access, addrs []uint64, act []uint32) error {
	if a.N == 1 {
		return nil
	}
	whole := uint64(a.N)*a.Size - 1
	all := a.Off
	for w, bits := range act {
		if bits != 0 {
			for _, addr := range addrs[w*ir.WarpSize:][:ir.WarpSize] {
				all |= addr
			}
		}
	}
	if all&whole == 0 {
		return nil
	}
	return eachLaneErr(act, func(l int) error {
		if at := a.at(addrs[l], a.Off); at&whole != 0 {
			return misaligned(whole+1, a.Space, at, whole+1)
		}
		return nil
	})
}

func (m *machine) loadOne(a *access, addrs []uint64, off uint64, d ir.Ref, act []uint32) error {
	m.probe(a, addrs, off, act)
	base, data := m.fixed(a.Space)
	for w := 0; w < len(act); w++ {
		bits := act[w]
		if bits == ^uint32(0) {
			if n := m.loadWide(a, addrs, off-base, data, d, act, w); n > 0 {
				w += n - 1
				continue
			}
		}
		if bits == 0 {
			continue
		}
		lane := w * ir.WarpSize
		if a.Space <= ir.Global {
			if done, err := m.broadcast(a, addrs[lane:][:ir.WarpSize], off, d, w, bits); done || err != nil {
				if err != nil {
					return err
				}
				continue
			}
		}
		bits = m.loadInside(a, addrs[lane:][:ir.WarpSize], off-base, data, d, w, bits)
		for ; bits != 0; bits &= bits - 1 {
			l := lane + mathbits.TrailingZeros32(bits)
			b, err := m.window(a.Space, a.at(addrs[l], off), a.Size, l)
			if err != nil {
				return err
			}
			m.set(d, l, readAs(b, a)&a.Mask)
		}
		base, data = m.fixed(a.Space)
	}
	return nil
}

// broadcast loads for the active lanes of a warp if they have one address, and reports
// whether it has. Such an access must be one load: with a load for each lane, another
// block could write between them, and lanes that a program keeps in lockstep would see
// different values.
func (m *machine) broadcast(a *access, addrs []uint64, off uint64, d ir.Ref, w int, bits uint32) (done bool, err error) {
	first := addrs[mathbits.TrailingZeros32(bits)]
	if addrs[mathbits.Len32(bits)-1] != first || a.Space == ir.Generic && first+off-a.Local < ir.SpaceSize {
		return false, nil
	}
	for rest := bits; rest != 0; rest &= rest - 1 {
		if addrs[mathbits.TrailingZeros32(rest)] != first {
			return false, nil
		}
	}
	b, err := m.window(a.Space, a.at(first, off), a.Size, 0)
	if err != nil {
		return false, err
	}
	m.spread(d, w, bits, readAs(b, a)&a.Mask)
	return true, nil
}

// spread sets the value of some lanes of a warp.
func (m *machine) spread(d ir.Ref, w int, bits uint32, v uint64) {
	if bits == ^uint32(0) {
		m.fillWarps(d, w, w+1, v)
		return
	}
	for ; bits != 0; bits &= bits - 1 {
		m.set(d, w*ir.WarpSize+mathbits.TrailingZeros32(bits), v)
	}
}

// readAs reads one value, extended as the access requires.
func readAs(b []byte, a *access) uint64 {
	var v uint64
	switch a.Size {
	case 1:
		v = uint64(b[0])
		if a.Signed {
			v = uint64(int64(int8(b[0])))
		}
	case 2:
		v = uint64(binary.LittleEndian.Uint16(b))
		if a.Signed {
			v = uint64(int64(int16(v)))
		}
	case 4:
		v = uint64(binary.LittleEndian.Uint32(b))
		if a.Signed {
			v = uint64(int64(int32(v)))
		}
	default:
		v = binary.LittleEndian.Uint64(b)
	}
	return v
}

func (m *machine) storeOne(a *access, addrs []uint64, off uint64, s ir.Ref, act []uint32) error {
	m.probe(a, addrs, off, act)
	base, data := m.fixed(a.Space)
	for w := 0; w < len(act); w++ {
		bits := act[w]
		if bits == ^uint32(0) {
			if n := m.storeWide(a, addrs, off-base, data, s, act, w); n > 0 {
				w += n - 1
				continue
			}
		}
		if bits == 0 {
			continue
		}
		lane := w * ir.WarpSize
		if a.Space <= ir.Global {
			bits = a.writers(addrs[lane:][:ir.WarpSize], off, bits)
		}
		bits = m.storeInside(a, addrs[lane:][:ir.WarpSize], off-base, data, s, w, bits)
		for ; bits != 0; bits &= bits - 1 {
			l := lane + mathbits.TrailingZeros32(bits)
			addr := a.at(addrs[l], off)
			if a.Space == ir.Generic && addr-m.env.Spaces.Param < ir.SpaceSize {
				return errParameters
			}
			b, err := m.window(a.Space, addr, a.Size, l)
			if err != nil {
				return err
			}
			writeAs(b, a, m.get(s, l))
		}
		base, data = m.fixed(a.Space)
	}
	return nil
}

// writeAs writes the low bytes of a register.
func writeAs(b []byte, a *access, v uint64) {
	switch a.Size {
	case 1:
		b[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	default:
		binary.LittleEndian.PutUint64(b, v)
	}
}

// writers returns the lanes of a warp whose stores take effect: of those with the same
// address the last. A warp's store to one address is one store: with a store for each
// lane, a lock that a whole warp releases would be released again after another block
// has acquired it.
func (a *access) writers(addrs []uint64, off uint64, lanes uint32) uint32 {
	if lanes == ^uint32(0) && ascending(addrs) {
		return lanes
	}
	var seen [64]uint8 // by hash of their address, the writers so far, counted from 1
	writers := uint32(0)
	for rest := lanes; rest != 0; {
		l := mathbits.Len32(rest) - 1
		rest &^= 1 << l
		x := addrs[l]
		if a.Space != ir.Generic || x+off-a.Local >= ir.SpaceSize { // else each lane has its own memory
			h := x * 0x9e3779b97f4a7c15 >> 58
			for seen[h] != 0 && addrs[seen[h]-1] != x {
				h = (h + 1) % 64
			}
			if seen[h] != 0 {
				continue
			}
			seen[h] = uint8(l + 1)
		}
		writers |= 1 << l
	}
	return writers
}

func ascending(v []uint64) bool {
	last := v[0]
	for _, x := range v[1:] {
		if x <= last {
			return false
		}
		last = x
	}
	return true
}
