package exec

import (
	"fmt"
	"sort"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/model"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// A checked program has other steps for instructions that access memory: they check the
// access of each lane before it is executed. A program that is not checked has no
// overhead.

// NewChecked compiles a program to steps that check for the mistakes that c selects.
func NewChecked(p *ir.Program, c model.Checks) *Program {
	if c == (model.Checks{}) {
		return NewProgram(p)
	}
	x := newProgram(p, func(op ir.Op) step { return checkedStep(op, c) })
	x.checks = c
	if !c.Race {
		return x
	}
	for i := range x.Blocks {
		if b := &x.Blocks[i]; b.warp != nil {
			sync := b.sync
			b.sync = func(m *machine, g *group) (bool, error) {
				ready, err := sync(m, g)
				if ready {
					m.shadow.met(g.act[:m.warps])
				}
				return ready, err
			}
		}
	}
	return x
}

// checked prepares the launch of a checked program. Machine code has no checks, so it
// is not used. Shadows need memory, so fewer blocks are resident, unless all blocks
// must be resident together.
func (p *Program) checked(r *Run) {
	if p.checks == (model.Checks{}) {
		return
	}
	r.env.Engine = Interpreted
	if s := p.shadowSize(uint64(sharedBytes(p, r.env))); s > 0 && r.env.Workspace == 0 {
		r.most = max(int(r.size), min(r.most, int(MaxLaunchBytes/s)))
	}
}

// use describes how an instruction accesses memory.
type use struct {
	access *access
	size   uint64 // bytes per lane
	read   bool
	write  bool
	// strong: it may race with accesses of other threads. Whether it orders other
	// accesses, as a lock does, is not known.
	strong bool
	value  func(m *machine, lane int, i uint64) (b byte, known bool) // returns byte i of the value that is written
}

func checkedStep(op ir.Op, c model.Checks) step {
	s := newStep(op)
	switch o := op.(type) {
	case *ir.Load:
		return checked(s, c, use{access: reached(o.Access), size: o.Size * uint64(o.N), read: true, strong: o.Strong})
	case *ir.Store:
		return checked(s, c, use{access: reached(o.Access), size: o.Size * uint64(o.N), write: true, strong: o.Strong, value: stored(o)})
	case *ir.Atomic:
		return checked(s, c, use{access: reached(o.Access), size: o.Size, read: true, write: true, strong: true})
	case *ir.CopyAsync:
		return checked(s, c, use{access: reached(o.To), size: o.To.Size, write: true})
	case *ir.StoreTiles, *ir.StoreMatrix, *ir.CopyTensor, *ir.CopyBulk:
		return before(s, func(m *machine, _ []uint32) error { m.shadow.fill(); return nil })
	case *ir.MBarrier:
		return before(s, func(m *machine, _ []uint32) error { m.shadow.order(); return nil })
	case *ir.Exchange:
		return before(s, func(m *machine, act []uint32) error { m.shadow.met(act); return nil })
	}
	return s
}

// stored returns the function that returns the bytes of a store.
func stored(o *ir.Store) func(m *machine, lane int, i uint64) (byte, bool) {
	return func(m *machine, lane int, i uint64) (byte, bool) {
		return byte(m.get(o.S[i/o.Size], lane) >> (8 * (i % o.Size))), true
	}
}

// before adds a check of the active lanes before a step.
func before(s step, check func(m *machine, act []uint32) error) step {
	run := s.masked
	if run == nil {
		return s
	}
	s.masked = func(m *machine, act []uint32) error {
		if err := check(m, act); err != nil {
			return err
		}
		return run(m, act)
	}
	return s
}

func checked(s step, c model.Checks, u use) step {
	return before(s, func(m *machine, act []uint32) error {
		return eachLaneErr(act, func(l int) error {
			if err := m.checkAccess(c, &u, l); err != nil {
				return fmt.Errorf("%w, in block %v, thread %v", err, m.ctaid, m.thread(l))
			}
			return nil
		})
	})
}

// thread returns the index of a lane's thread in its block.
func (m *machine) thread(lane int) [3]uint32 {
	b, i := m.env.Block, uint32(lane)
	return [3]uint32{i % b[0], i / b[0] % b[1], i / b[0] / b[1]}
}

func (m *machine) checkAccess(c model.Checks, u *use, lane int) error {
	space, at := m.spaceOf(u.access.Space, u.access.at(m.get(u.access.Base, lane), u.access.Off))
	if c.Memory {
		if at&(u.size-1) != 0 {
			return misaligned(u.size, space, at, u.size)
		}
		if err := m.checkBounds(space, at, u.size, lane); err != nil {
			return err
		}
	}
	if space == ir.Shared && m.shadow != nil && at < uint64(len(m.shared)) && u.size <= uint64(len(m.shared))-at {
		return m.shadow.use(c, u, m, lane, at)
	}
	return nil
}

// spaceOf returns the state space of an address, and the address in it.
func (m *machine) spaceOf(s ir.Space, addr uint64) (ir.Space, uint64) {
	if s != ir.Generic {
		return s, addr
	}
	switch at := &m.env.Spaces; {
	case addr-at.Shared < ir.SpaceSize:
		return ir.Shared, addr - at.Shared
	case addr-at.Local < ir.SpaceSize:
		return ir.Local, addr - at.Local
	case addr-at.Param < ir.SpaceSize:
		return ir.Param, addr - at.Param
	}
	return ir.Global, addr
}

func (m *machine) checkBounds(space ir.Space, at, size uint64, lane int) error {
	has := uint64(0)
	switch space {
	case ir.Shared:
		if at>>ops.ClusterShift != 0 {
			return nil // another block's of the cluster, which the access itself looks at
		}
		has = uint64(m.p.SharedBytes + m.env.Shared) // m.shared is rounded up
	case ir.Local:
		has = uint64(m.stride)
	case ir.Param:
		has = uint64(len(m.env.Params))
	default:
		r, ok := FindRegion(m.env.table, at)
		if ok && size <= uint64(len(r.Data))-(at-r.Base) {
			return nil
		}
		return fmt.Errorf("%w%s", unallocated(size, at), nearest(m.env.table, at, size))
	}
	if at < has && size <= has-at {
		return nil
	}
	return outside(size, space, at, has)
}

// nearest describes the position of an address relative to the closest allocation.
func nearest(table []Region, at, size uint64) string {
	i := sort.Search(len(table), func(i int) bool { return table[i].Base > at })
	var below, above Region
	if i > 0 {
		below = table[i-1]
	}
	if i < len(table) {
		above = table[i]
	}
	end := below.Base + uint64(len(below.Data))
	switch {
	case below.Data != nil && (above.Data == nil || at < end || at-end <= above.Base-at):
		return fmt.Sprintf(", %d bytes past the end of the allocation of %d bytes at %#x", at+size-end, len(below.Data), below.Base)
	case above.Data != nil:
		return fmt.Sprintf(", %d bytes before the allocation of %d bytes at %#x", above.Base-at, len(above.Data), above.Base)
	}
	return ", and nothing is allocated"
}
