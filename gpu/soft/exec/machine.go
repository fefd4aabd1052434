// Package exec executes compiled kernels on the soft GPU.
//
// A Program consists of basic blocks of steps. Only this package creates steps, ends of
// blocks, barriers and warp operations, so only it depends on the machine that they
// work on. The threads of a block run as groups of lanes at the same position
// (group.go): a step is a loop over the lanes of some warps, with masks where lanes
// diverge (block.go). Lanes of a warp synchronize by their member masks (warpsync.go),
// threads at barriers (barrier.go). Several blocks run at a time, on several
// goroutines; one that waits for others through memory is set aside (waiting.go,
// run.go).
package exec

import (
	"github.com/basalt-gpu/basalt/gpu/soft/ir"

	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

const maxWarps = ir.MaxThreads / ir.WarpSize

// machine executes a block of a launch, and others after it. It is used by one
// goroutine at a time. Register files are lane-major: register r of all lanes is one
// vector.
type machine struct {
	p     *Program
	env   *Launch
	of    *Run
	warps int
	lanes int // warps * 32: the stride of a register

	r32     []uint32
	r64     []uint64
	preds   []uint32 // [register][maxWarps]
	live    [maxWarps]uint32
	block   uint64    // index in the grid
	batch   batch     // the next blocks that it begins
	through uint64    // blocks of batches that it has ended, without the current one
	ctaid   [3]uint32 // position in the grid
	rank    uint32    // in the cluster
	shared  []byte
	local   []byte // [lane][p.localBytes]
	stride  uint32 // bytes of local memory per lane
	save32  []uint32
	save64  []uint64
	shadow  *shadow // of a checked program, or nil
	cache   Region  // the allocation accessed last
	bound   bound   // the texture used last
	groups  []*group
	pool    []*group
	bars    [16]barrier
	meet    exchange // the current exchange of lanes
	matrix  matrixBuffers
	blocks  []block // of the program, or of its machine code
	native  codeState
	starts  bool  // the threads of the block have not begun
	fault   error // error of the end of a block

	clock uint64   // basic blocks that have begun
	due   uint64   // the clock at which it checks next whether to stop
	until uint64   // the clock at the end of the block's turn
	did   activity // of the running group, in this iteration of its loop
	reads uint64   // hash of the addresses that it has read in it

	cluster *cluster
	alone   cluster          // of a block that is in no cluster
	parity  [maxWarps]uint32 // of the latest phase of each lane at the cluster's barrier

	placed  []placed
	shape   shape  // that the special registers are filled for
	printed []byte // buffer for a lane's text

	saved      map[frameKey][]uint64
	savedBytes int
}

// shape has the parameters that the special registers of a launch depend on.
type shape struct {
	grid, block, cluster [3]uint32

	shared, sms uint32
	workspace   uint64
}

func newMachine(r *Run) *machine {
	p := r.p
	m := &machine{p: p, blocks: p.Blocks, warps: warpsOf(r.env)}
	m.lanes = m.warps * ir.WarpSize
	m.r32 = make([]uint32, p.Regs32*m.lanes)
	m.r64 = make([]uint64, p.Regs64*m.lanes)
	m.preds = make([]uint32, p.Preds*maxWarps)
	m.shared = make([]byte, sharedBytes(p, r.env))
	if p.checks.Race || p.checks.Init {
		m.shadow = &shadow{bytes: make([]shadowByte, len(m.shared))}
	}
	m.stride = p.LocalBytes
	m.local = make([]byte, int(m.stride)*m.lanes)
	m.save32 = make([]uint32, m.lanes)
	m.save64 = make([]uint64, m.lanes)
	for slot, v := range p.Const32 {
		fill(m.v32(slot, 0, m.warps), v)
	}
	for slot, v := range p.Const64 {
		fill(m.v64(slot, 0, m.warps), v)
	}
	for name, slot := range p.Specials {
		if f := placedSpecials[name]; f != nil {
			m.placed = append(m.placed, placed{slot: slot, value: f})
		}
	}
	m.join(r)
	return m
}

// join prepares a machine for a launch.
func (m *machine) join(r *Run) {
	m.of, m.env = r, r.env
	if s := (shape{m.env.Grid, m.env.Block, m.env.Cluster, m.env.Shared, m.env.SMs, m.env.Workspace}); s != m.shape {
		m.shape = s
		m.fixedSpecials()
	}
}

// leave drops the references to the launch that the machine was used for.
func (m *machine) leave() {
	m.of, m.env, m.cluster, m.cache, m.bound = nil, nil, nil, Region{}, bound{}
	m.native.forget()
	m.saved, m.savedBytes = nil, 0
	if m.grown() > machineBytes {
		m.groups, m.pool = nil, nil
	}
}

func warpsOf(l *Launch) int { return (l.threads + ir.WarpSize - 1) / ir.WarpSize }

func sharedBytes(p *Program, l *Launch) int { return int((p.SharedBytes + l.Shared + 15) &^ 15) }

// The approximate memory of a machine besides its registers and memory.
const (
	machineBytes = 16 << 10
	groupBytes   = 512
	callBytes    = 24 // of a group's stack
)

// bytesOf returns the memory in bytes of a machine whose block begins.
func bytesOf(p *ir.Program, threads, shared uint64) uint64 {
	return machineBytes + p.BlockBytes(threads) + 4*maxWarps*uint64(p.Preds) + uint64(p.SharedBytes) + shared
}

func (m *machine) size() uint64 {
	return bytesOf(m.p.Program, uint64(m.lanes), uint64(len(m.shared))-uint64(m.p.SharedBytes)) + m.p.shadowSize(uint64(len(m.shared)))
}

// grown returns how much more memory it uses by now: groups with their calls, and saved
// frames.
func (m *machine) grown() int {
	n := m.savedBytes
	for _, list := range [2][]*group{m.groups, m.pool} {
		for _, g := range list {
			n += groupBytes + callBytes*cap(g.stack)
		}
	}
	return n
}

func fill[T any](d []T, v T) {
	n := min(len(d), 16)
	for i := range d[:n] {
		d[i] = v
	}
	for ; n < len(d) && n > 0; n *= 2 { // copy is faster than a loop
		copy(d[n:], d[:n])
	}
}

func (m *machine) v32(r, w0, w1 int) []uint32 {
	o := r * m.lanes
	return m.r32[o+w0*ir.WarpSize : o+w1*ir.WarpSize]
}

func (m *machine) v64(r, w0, w1 int) []uint64 {
	o := r * m.lanes
	return m.r64[o+w0*ir.WarpSize : o+w1*ir.WarpSize]
}

func (m *machine) pred(r, w0, w1 int) ops.Predicate {
	o := r * maxWarps
	return m.preds[o+w0 : o+w1]
}

// get and set read and write one lane of a register of any class.
func (m *machine) get(r ir.Ref, lane int) uint64 {
	switch r.Class {
	case ir.Class32:
		return uint64(m.r32[r.Slot*m.lanes+lane])
	case ir.Class64:
		return m.r64[r.Slot*m.lanes+lane]
	}
	return uint64(m.preds[r.Slot*maxWarps+lane>>5] >> (lane & 31) & 1)
}

func (m *machine) set(r ir.Ref, lane int, v uint64) {
	switch r.Class {
	case ir.Class32:
		m.r32[r.Slot*m.lanes+lane] = uint32(v)
	case ir.Class64:
		m.r64[r.Slot*m.lanes+lane] = v
	case ir.ClassPred:
		w := &m.preds[r.Slot*maxWarps+lane>>5]
		*w = *w&^(1<<(lane&31)) | uint32(v&1)<<(lane&31)
	}
}

// resolve returns at least size bytes of device memory for an access.
func (m *machine) resolve(addr uint64, size uint64) ([]byte, error) {
	if addr&(size-1) != 0 {
		return nil, misaligned(size, ir.Global, addr, size)
	}
	if off := addr - m.cache.Base; off < uint64(len(m.cache.Data)) && uint64(len(m.cache.Data))-off >= size {
		return m.cache.Data[off:], nil
	}
	r, ok := FindRegion(m.env.table, addr)
	if !ok || uint64(len(r.Data))-(addr-r.Base) < size {
		return nil, unallocated(size, addr)
	}
	m.cache = r
	return r.Data[addr-r.Base:], nil
}

// window returns at least size bytes at an address of the given space for a lane. The
// value of a generic address determines its space.
func (m *machine) window(sp ir.Space, addr uint64, size uint64, lane int) ([]byte, error) {
	if sp == ir.Generic {
		switch at := &m.env.Spaces; {
		case addr-at.Shared < ir.SpaceSize:
			sp, addr = ir.Shared, addr-at.Shared
		case addr-at.Local < ir.SpaceSize:
			sp, addr = ir.Local, addr-at.Local
		case addr-at.Param < ir.SpaceSize:
			sp, addr = ir.Param, addr-at.Param
		}
	}
	var mem []byte
	switch sp {
	case ir.Shared:
		var err error
		if mem, addr, err = m.sharedOf(addr); err != nil {
			return nil, err
		}
	case ir.Local:
		mem = m.local[uint32(lane)*m.stride:][:m.stride]
	case ir.Param:
		mem = m.env.Params
	default:
		return m.resolve(addr, size)
	}
	if addr&(size-1) != 0 {
		return nil, misaligned(size, sp, addr, size)
	}
	if addr >= uint64(len(mem)) || uint64(len(mem))-addr < size {
		return nil, outside(size, sp, addr, uint64(len(mem)))
	}
	return mem[addr:], nil
}
