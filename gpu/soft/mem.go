package soft

import (
	"encoding/binary"
	"fmt"
	mathbits "math/bits"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// addrSpace is how an access finds its memory.
type addrSpace uint8

const (
	spGeneric addrSpace = iota
	spGlobal            // .global and .const: device memory
	spShared
	spLocal
	spParam // a kernel's parameters
)

func (s addrSpace) String() string {
	return [...]string{"generic", "global", "shared", "local", "param"}[s]
}

// access is a compiled ld, st, atom or red.
type access struct {
	space addrSpace
	base  ref // class32 or class64
	off   uint64
	typ   ptx.Type
	n     int    // vector elements
	mask  uint64 // of the register's width
	reach uint64 // the highest address of the space, a mask for sums
	local uint64 // where local memory begins in the generic space
}

// at is an address with an offset. Addresses of shared, local and parameter
// memory have 32 bits: a sum beyond them wraps, and a wider register is cut
// off. A 32-bit register is zero-extended for the other spaces (PTX ISA,
// "Addresses as Operands"). The quick paths for whole warps leave addresses
// that wrap to the slow one.
func (a *access) at(addr, off uint64) uint64 { return (addr + off) & a.reach }

// access parses modifiers and the memory operand of an access. Cache, order
// and scope modifiers change nothing here: one block runs in program order.
func (c *compiler) access(in *ptx.Inst, mem *ptx.Operand, skip map[string]bool) (access, error) {
	a, err := c.operand(in, mem, skip)
	if a.reach = 1<<64 - 1; a.space > spGlobal {
		a.reach = 1<<32 - 1
	}
	return a, err
}

func (c *compiler) operand(in *ptx.Inst, mem *ptx.Operand, skip map[string]bool) (access, error) {
	a := access{n: 1, mask: ^uint64(0), local: c.mod.spaces.local}
	param := false
	for _, m := range in.Mods {
		if t, ok := ptx.TypeByName(m); ok {
			a.typ = t
			continue
		}
		switch m {
		case "global", "const":
			a.space = spGlobal
		case "shared", "shared::cta":
			a.space = spShared
		case "local":
			a.space = spLocal
		case "param", "param::entry", "param::func":
			param = true
		case "v2":
			a.n = 2
		case "v4":
			a.n = 4
		case "volatile", "weak", "relaxed", "acquire", "release", "acq_rel", "sc", "cta", "gpu", "sys", "cluster",
			"nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "mmio",
			"L1::evict_normal", "L1::evict_first", "L1::evict_last", "L1::no_allocate", "L1::evict_unchanged",
			"L2::64B", "L2::128B", "L2::256B":
		default:
			if !skip[m] {
				return a, in.Errorf("unsupported modifier ." + m)
			}
		}
	}
	if a.typ == ptx.NoType || a.typ == ptx.Pred || a.typ == ptx.B128 || mem.Kind != ptx.KindMem || len(mem.List) > 1 {
		return a, in.Errorf("unsupported memory access")
	}
	a.off = uint64(mem.Off)
	if len(mem.List) == 0 {
		a.base = c.constant(class64, 0)
	} else {
		b := &mem.List[0]
		var err error
		switch b.Kind {
		case ptx.KindReg:
			a.base = c.fr.regs[b.Reg]
			if a.base.class == classPred {
				return a, in.Errorf("a predicate is no address")
			}
		case ptx.KindVar:
			a.base, err = c.source(b, class64, ptx.U64)
		default:
			return a, in.Errorf("unsupported address")
		}
		if err != nil {
			return a, err
		}
		if param {
			a.space = spParam
			if _, local := c.fr.vars[b.Var]; local || !c.fr.f.Entry {
				a.space = spLocal
			}
			return a, nil
		}
		if b.Kind == ptx.KindVar && a.space == spGeneric { // ld.u32 %r, [var]
			base, _ := c.mod.spaces.base(b.Var.Space.String())
			a.off += base
		}
	}
	if param {
		a.space = spParam
	}
	return a, nil
}

// addresses gives every lane's address before the offset. The slice is valid
// until the next call.
func (m *machine) addresses(a *access) []uint64 {
	if a.base.class == class64 {
		v := m.v64(a.base.slot, 0, m.warps)
		if a.n == 1 {
			return v
		}
		copy(m.save64, v) // a vector load may overwrite its own address
		return m.save64
	}
	for i, v := range m.v32(a.base.slot, 0, m.warps) {
		m.save64[i] = uint64(v)
	}
	return m.save64
}

// fixed is the memory of a space in which all lanes share addresses, for the
// quick path: device memory means the allocation touched last.
func (m *machine) fixed(s addrSpace) (base uint64, data []byte) {
	switch s {
	case spShared:
		return 0, m.shared
	case spParam:
		return 0, m.env.params
	case spLocal:
		return 0, nil
	}
	return m.cache.base, m.cache.data
}

// probe makes the first active lane's allocation the one touched last: most
// instructions stay inside one. A bad address is reported by the access itself.
func (m *machine) probe(a *access, addrs []uint64, off uint64, act []uint32) {
	if a.space > spGlobal {
		return
	}
	for w, bits := range act {
		if bits != 0 {
			addr := addrs[w*warpSize+mathbits.TrailingZeros32(bits)] + off
			if addr-m.cache.base >= uint64(len(m.cache.data)) {
				if r, ok := find(m.env.table, addr); ok {
					m.cache = r
				}
			}
			return
		}
	}
}

// uniform loads a kernel parameter: the same value for all lanes.
func (m *machine) uniform(a *access, addr uint64, d ref, act []uint32) error {
	b, err := m.window(spParam, addr, uint64(a.typ.Size()), 0)
	if err != nil {
		return err
	}
	v := readAs(b, a.typ) & a.mask
	for w, bits := range act {
		if bits != 0 {
			m.spread(d, w, bits, v)
		}
	}
	return nil
}

func (c *compiler) vector(a *access, o *ptx.Operand) ([]*ptx.Operand, error) {
	if a.n == 1 {
		return []*ptx.Operand{o}, nil
	}
	if o.Kind != ptx.KindVec || len(o.List) != a.n {
		return nil, c.in.Errorf("the vector has the wrong length")
	}
	var list []*ptx.Operand
	for i := range o.List {
		list = append(list, &o.List[i])
	}
	return list, nil
}

func (c *compiler) load(in *ptx.Inst) ([]step, error) {
	if len(in.Args) != 2 {
		return nil, in.Errorf("wrong number of operands")
	}
	a, err := c.access(in, &in.Args[1], nil)
	if err != nil {
		return nil, err
	}
	ops, err := c.vector(&a, &in.Args[0])
	if err != nil {
		return nil, err
	}
	dst := make([]ref, len(ops))
	for i, o := range ops {
		if dst[i], err = c.loadDest(o, a.typ); err != nil {
			return nil, err
		}
		if o.Kind == ptx.KindReg && c.fr.f.Regs[o.Reg].Type.Size() == 2 {
			if a.mask = 0xffff; a.typ.Size() > 2 {
				return nil, in.Errorf("the register is too small")
			}
		}
	}
	size := uint64(a.typ.Size())
	base := in.Args[1].List
	constant := len(base) == 0 || base[0].Kind == ptx.KindVar
	return []step{{masked: func(m *machine, act []uint32) error {
		addrs := m.addresses(&a)
		if err := m.aligned(&a, addrs, act); err != nil {
			return err
		}
		for i, d := range dst {
			if constant && a.space == spParam {
				if err := m.uniform(&a, a.at(addrs[0], a.off+uint64(i)*size), d, act); err != nil {
					return err
				}
				continue
			}
			if err := m.loadOne(&a, addrs, a.off+uint64(i)*size, d, act); err != nil {
				return err
			}
		}
		return nil
	}}}, nil
}

// loadDest: the register may be wider than what is loaded (PTX ISA, "Operand
// Size Exceeding Instruction-Type Size").
func (c *compiler) loadDest(o *ptx.Operand, t ptx.Type) (ref, error) {
	if o.Kind == ptx.KindReg {
		r := c.fr.regs[o.Reg]
		if r.class == classPred || r.class == class32 && t.Size() == 8 {
			return r, c.in.Errorf("register " + c.fr.f.Regs[o.Reg].Name + " has the wrong size")
		}
		return r, nil
	}
	return c.dest(o, classOf(t))
}

// aligned checks vectors, whose alignment is that of the whole.
func (m *machine) aligned(a *access, addrs []uint64, act []uint32) error {
	if a.n == 1 {
		return nil
	}
	whole := uint64(a.n)*uint64(a.typ.Size()) - 1
	return eachLaneErr(act, func(l int) error {
		if at := a.at(addrs[l], a.off); at&whole != 0 {
			return fmt.Errorf("%w: vector of %d bytes at %#x", abi.ErrMisaligned, whole+1, at)
		}
		return nil
	})
}

func (m *machine) loadOne(a *access, addrs []uint64, off uint64, d ref, act []uint32) error {
	size := uint64(a.typ.Size())
	m.probe(a, addrs, off, act)
	base, data := m.fixed(a.space)
	whole := words(data)
	for w, bits := range act {
		if bits == 0 {
			continue
		}
		lane := w * warpSize
		if a.space <= spGlobal {
			if done, err := m.broadcast(a, addrs[lane:][:warpSize], off, d, w, bits); done || err != nil {
				if err != nil {
					return err
				}
				continue
			}
		}
		if bits == ^uint32(0) && size == 4 && d.class == class32 {
			v, ad := m.r32[d.slot*m.lanes+lane:][:warpSize], addrs[lane:][:warpSize]
			i := 0
			for from := off - base; i < warpSize; i++ {
				at := mathbits.RotateLeft64(ad[i]+from, -2) // huge when misaligned
				if at >= uint64(len(whole)) {
					break
				}
				v[i] = whole[at]
			}
			if i == warpSize {
				continue
			}
			bits = bits >> i << i
		} else if bits == ^uint32(0) && size == 8 && d.class == class64 {
			v, ad := m.r64[d.slot*m.lanes+lane:][:warpSize], addrs[lane:][:warpSize]
			i := 0
			for ; i < warpSize; i++ {
				o := ad[i] + off - base
				if o >= uint64(len(data)) || o&7 != 0 || uint64(len(data))-o < 8 {
					break
				}
				v[i] = binary.LittleEndian.Uint64(data[o:])
			}
			if i == warpSize {
				continue
			}
			bits = bits >> i << i
		}
		for l := range warpSize {
			if bits>>l&1 == 0 {
				continue
			}
			b, err := m.window(a.space, a.at(addrs[lane+l], off), size, lane+l)
			if err != nil {
				return err
			}
			m.set(d, lane+l, readAs(b, a.typ)&a.mask)
		}
		base, data = m.fixed(a.space)
		whole = words(data)
	}
	return nil
}

// broadcast loads for the active lanes of a warp that have one address. Such a
// load is one load: were it one for each lane, another block could write in
// between, and lanes that a program keeps in step would see different values.
func (m *machine) broadcast(a *access, addrs []uint64, off uint64, d ref, w int, bits uint32) (done bool, err error) {
	first := addrs[mathbits.TrailingZeros32(bits)]
	if addrs[mathbits.Len32(bits)-1] != first || a.space == spGeneric && first+off-a.local < spaceSize {
		return false, nil
	}
	for rest := bits; rest != 0; rest &= rest - 1 {
		if addrs[mathbits.TrailingZeros32(rest)] != first {
			return false, nil
		}
	}
	b, err := m.window(a.space, a.at(first, off), uint64(a.typ.Size()), 0)
	if err != nil {
		return false, err
	}
	m.spread(d, w, bits, readAs(b, a.typ)&a.mask)
	return true, nil
}

// spread gives some lanes of a warp one value.
func (m *machine) spread(d ref, w int, bits uint32, v uint64) {
	switch {
	case bits == ^uint32(0) && d.class == class32:
		fill(m.v32(d.slot, w, w+1), uint32(v))
	case bits == ^uint32(0) && d.class == class64:
		fill(m.v64(d.slot, w, w+1), v)
	default:
		for ; bits != 0; bits &= bits - 1 {
			m.set(d, w*warpSize+mathbits.TrailingZeros32(bits), v)
		}
	}
}

// readAs reads one value, extended to the register by its type.
func readAs(b []byte, t ptx.Type) uint64 {
	var v uint64
	switch t.Size() {
	case 1:
		v = uint64(b[0])
		if t == ptx.S8 {
			v = uint64(int64(int8(b[0])))
		}
	case 2:
		v = uint64(binary.LittleEndian.Uint16(b))
		if t == ptx.S16 {
			v = uint64(int64(int16(v)))
		}
	case 4:
		v = uint64(binary.LittleEndian.Uint32(b))
		if t == ptx.S32 {
			v = uint64(int64(int32(v)))
		}
	default:
		v = binary.LittleEndian.Uint64(b)
	}
	return v
}

func (c *compiler) store(in *ptx.Inst) ([]step, error) {
	if len(in.Args) != 2 {
		return nil, in.Errorf("wrong number of operands")
	}
	a, err := c.access(in, &in.Args[0], nil)
	if err != nil {
		return nil, err
	}
	if a.space == spParam {
		return nil, in.Errorf("a kernel's parameters are read-only")
	}
	ops, err := c.vector(&a, &in.Args[1])
	if err != nil {
		return nil, err
	}
	src := make([]ref, len(ops))
	for i, o := range ops {
		cl := classOf(a.typ)
		if o.Kind == ptx.KindReg && c.fr.regs[o.Reg].class == class64 {
			cl = class64
		}
		if src[i], err = c.source(o, cl, a.typ); err != nil {
			return nil, err
		}
	}
	size := uint64(a.typ.Size())
	return []step{{masked: func(m *machine, act []uint32) error {
		addrs := m.addresses(&a)
		if err := m.aligned(&a, addrs, act); err != nil {
			return err
		}
		for i, s := range src {
			if err := m.storeOne(&a, addrs, a.off+uint64(i)*size, s, act); err != nil {
				return err
			}
		}
		return nil
	}}}, nil
}

func (m *machine) storeOne(a *access, addrs []uint64, off uint64, s ref, act []uint32) error {
	size := uint64(a.typ.Size())
	m.probe(a, addrs, off, act)
	base, data := m.fixed(a.space)
	whole := words(data)
	for w, bits := range act {
		if bits == 0 {
			continue
		}
		lane := w * warpSize
		if a.space <= spGlobal {
			bits = a.writers(addrs[lane:][:warpSize], off, bits)
		}
		if bits == ^uint32(0) && size == 4 && s.class == class32 {
			v, ad := m.r32[s.slot*m.lanes+lane:][:warpSize], addrs[lane:][:warpSize]
			i := 0
			for from := off - base; i < warpSize; i++ {
				at := mathbits.RotateLeft64(ad[i]+from, -2) // huge when misaligned
				if at >= uint64(len(whole)) {
					break
				}
				whole[at] = v[i]
			}
			if i == warpSize {
				continue
			}
			bits = bits >> i << i
		}
		for l := range warpSize {
			if bits>>l&1 == 0 {
				continue
			}
			addr := a.at(addrs[lane+l], off)
			if a.space == spGeneric && addr-m.env.spaces.param < spaceSize {
				return fmt.Errorf("%w: store to parameters", abi.ErrIllegalAddress)
			}
			b, err := m.window(a.space, addr, size, lane+l)
			if err != nil {
				return err
			}
			switch v := m.get(s, lane+l); size {
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
		base, data = m.fixed(a.space)
		whole = words(data)
	}
	return nil
}

// writers gives the lanes of a warp that a store takes: of those with the same
// address the last. A warp's store to one address is one store: were it one for
// each lane, a lock that a whole warp releases would be released again when
// another block has it.
func (a *access) writers(addrs []uint64, off uint64, lanes uint32) uint32 {
	if lanes == ^uint32(0) && ascending(addrs) {
		return lanes
	}
	var lowest, highest uint64 // of the writers so far
	writers := uint32(0)
	for rest := lanes; rest != 0; {
		l := mathbits.Len32(rest) - 1
		rest &^= 1 << l
		switch x := addrs[l]; {
		case writers == 0:
			lowest, highest = x, x
		case x < lowest:
			lowest = x
		case x > highest:
			highest = x
		case a.space == spGeneric && x+off-a.local < spaceSize: // each lane has its own
		case x == lowest || x == highest || having(addrs, writers, x) != 0:
			continue
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
