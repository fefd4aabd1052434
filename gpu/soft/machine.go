package soft

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

const (
	warpSize   = 32
	maxThreads = 1024
	maxWarps   = maxThreads / warpSize
)

// MaxMachineBytes bounds the registers and local memory of one running block.
const MaxMachineBytes = 1 << 30

// machine runs the blocks of one launch, one after another, on one goroutine.
// Register files are lane-major: register r of all lanes is one vector.
type machine struct {
	p     *program
	env   *Launch
	warps int
	lanes int // warps * 32: the stride of a register

	r32    []uint32
	r64    []uint64
	preds  []uint32 // [register][maxWarps]
	live   [maxWarps]uint32
	ctaid  [3]uint32
	shared []byte
	local  []byte // [lane][p.localBytes]
	stride uint32 // bytes of local memory per lane
	save32 []uint32
	save64 []uint64
	cache  region // the allocation touched last
	groups []*group
	pool   []*group
	bars   [16]barrier
	meet   exchange // the meeting of lanes in work
	fault  error    // of the end of a block

	saved      map[frameKey][]uint64
	savedBytes int
}

func newMachine(p *program, env *Launch) *machine {
	m := &machine{p: p, env: env}
	m.warps = (env.threads + warpSize - 1) / warpSize
	m.lanes = m.warps * warpSize
	m.r32 = make([]uint32, p.n32*m.lanes)
	m.r64 = make([]uint64, p.n64*m.lanes)
	m.preds = make([]uint32, p.np*maxWarps)
	m.shared = make([]byte, (p.sharedBytes+env.Shared+15)&^15)
	m.stride = p.localBytes
	m.local = make([]byte, int(m.stride)*m.lanes)
	m.save32 = make([]uint32, m.lanes)
	m.save64 = make([]uint64, m.lanes)
	for slot, v := range p.const32 {
		fill(m.v32(slot, 0, m.warps), v)
	}
	for slot, v := range p.const64 {
		fill(m.v64(slot, 0, m.warps), v)
	}
	m.fixedSpecials()
	return m
}

func fill[T any](d []T, v T) {
	for i := range d {
		d[i] = v
	}
}

func (m *machine) v32(r, w0, w1 int) []uint32 {
	o := r * m.lanes
	return m.r32[o+w0*warpSize : o+w1*warpSize]
}

func (m *machine) v64(r, w0, w1 int) []uint64 {
	o := r * m.lanes
	return m.r64[o+w0*warpSize : o+w1*warpSize]
}

func (m *machine) pred(r, w0, w1 int) Predicate {
	o := r * maxWarps
	return m.preds[o+w0 : o+w1]
}

// get and set move one lane of a register of either width.
func (m *machine) get(r ref, lane int) uint64 {
	switch r.class {
	case class32:
		return uint64(m.r32[r.slot*m.lanes+lane])
	case class64:
		return m.r64[r.slot*m.lanes+lane]
	}
	return uint64(m.preds[r.slot*maxWarps+lane>>5] >> (lane & 31) & 1)
}

func (m *machine) set(r ref, lane int, v uint64) {
	switch r.class {
	case class32:
		m.r32[r.slot*m.lanes+lane] = uint32(v)
	case class64:
		m.r64[r.slot*m.lanes+lane] = v
	case classPred:
		w := &m.preds[r.slot*maxWarps+lane>>5]
		*w = *w&^(1<<(lane&31)) | uint32(v&1)<<(lane&31)
	}
}

// resolve gives size bytes of device memory for an access.
func (m *machine) resolve(addr uint64, size uint64) ([]byte, error) {
	if addr&(size-1) != 0 {
		return nil, fmt.Errorf("%w: %d bytes at %#x", abi.ErrMisaligned, size, addr)
	}
	if off := addr - m.cache.base; off < uint64(len(m.cache.data)) && uint64(len(m.cache.data))-off >= size {
		return m.cache.data[off:], nil
	}
	r, ok := find(m.env.table, addr)
	if !ok || uint64(len(r.data))-(addr-r.base) < size {
		return nil, fmt.Errorf("%w: %d bytes at %#x", abi.ErrIllegalAddress, size, addr)
	}
	m.cache = r
	return r.data[addr-r.base:], nil
}

// window gives size bytes at an address of the given space for a lane. A
// generic address picks its space by value.
func (m *machine) window(sp addrSpace, addr uint64, size uint64, lane int) ([]byte, error) {
	if sp == spGeneric {
		switch at := &m.env.Spaces; {
		case addr-at.shared < spaceSize:
			sp, addr = spShared, addr-at.shared
		case addr-at.local < spaceSize:
			sp, addr = spLocal, addr-at.local
		case addr-at.param < spaceSize:
			sp, addr = spParam, addr-at.param
		}
	}
	var mem []byte
	switch sp {
	case spShared:
		mem = m.shared
	case spLocal:
		mem = m.local[uint32(lane)*m.stride:][:m.stride]
	case spParam:
		mem = m.env.Params
	default:
		return m.resolve(addr, size)
	}
	if addr&(size-1) != 0 {
		return nil, fmt.Errorf("%w: %d bytes at %#x", abi.ErrMisaligned, size, addr)
	}
	if addr >= uint64(len(mem)) || uint64(len(mem))-addr < size {
		return nil, fmt.Errorf("%w: %d bytes at %s address %#x", abi.ErrIllegalAddress, size, sp, addr)
	}
	return mem[addr:], nil
}
