package exec

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// mbarrier returns the step of an operation on an mbarrier. A wait never blocks: it
// reports whether the phase has ended, and the kernel polls.
func mbarrier(o *ir.MBarrier) step {
	a := reached(o.Access)
	return masked(func(m *machine, act []uint32) error {
		return eachLaneErr(act, func(l int) error {
			mem, err := m.inShared(a, l, 8)
			if err != nil {
				return err
			}
			n := uint64(1)
			if o.N.Class != ir.ClassNone {
				n = m.get(o.N, l)
			}
			old, err := changeBarrier(mem, func(b ops.MBarrier) (ops.MBarrier, error) { return applied(o.What, b, n) })
			switch {
			case err != nil:
				return err
			case o.What == ir.MBarrierEnded || o.What == ir.MBarrierEndedParity:
				ended := old.Ended(ops.MBarrier(n))
				if o.What == ir.MBarrierEndedParity {
					ended = old.EndedParity(uint32(n))
				}
				m.set(o.D, l, uint64(bitOf(ended)))
				if !ended { // other threads must complete the phase
					m.did |= didSleep
				}
			default:
				m.did |= didChange
				m.set(o.D, l, uint64(old))
			}
			return nil
		})
	})
}

// changeBarrier atomically changes an mbarrier object, which other blocks of a cluster
// may change at the same time, and returns its old value.
func changeBarrier(mem []byte, f func(ops.MBarrier) (ops.MBarrier, error)) (ops.MBarrier, error) {
	var err error
	old := atomic64(mem, func(old uint64) uint64 {
		var now ops.MBarrier
		if now, err = f(ops.MBarrier(old)); err != nil {
			err = fmt.Errorf("%w: %w", abi.ErrLaunchFailed, err)
			return old
		}
		return uint64(now)
	})
	return ops.MBarrier(old), err
}

// applied returns the object after an operation.
func applied(what ir.MBarrierOp, b ops.MBarrier, n uint64) (ops.MBarrier, error) {
	switch what {
	case ir.MBarrierInit:
		return ops.NewMBarrier(uint32(n))
	case ir.MBarrierArrive, ir.MBarrierDrop:
		return b.Arrive(uint32(n), what == ir.MBarrierDrop)
	case ir.MBarrierExpect:
		return b.Expect(int64(n))
	case ir.MBarrierComplete:
		return b.Complete(int64(n))
	case ir.MBarrierArriveExpect, ir.MBarrierDropExpect:
		b, err := b.Expect(int64(n))
		if err != nil {
			return b, err
		}
		return b.Arrive(1, what == ir.MBarrierDropExpect)
	case ir.MBarrierInval:
		return 0, nil
	}
	return b, nil
}

// inShared returns size bytes, a power of two, of shared memory at a lane's address.
func (m *machine) inShared(a *access, lane int, size uint64) ([]byte, error) {
	addr, err := m.sharedAddress(a, lane)
	if err != nil {
		return nil, err
	}
	return m.window(ir.Shared, addr, size, lane)
}

// sharedAddress returns a lane's address in shared memory. A generic address must be in
// shared memory.
func (m *machine) sharedAddress(a *access, lane int) (uint64, error) {
	addr := a.at(m.get(a.Base, lane), a.Off)
	if a.Space != ir.Generic {
		return addr, nil
	}
	if addr -= m.env.Spaces.Shared; addr >= ir.SpaceSize {
		return 0, fmt.Errorf("%w: address %#x of an mbarrier or a box, want one in shared memory", abi.ErrIllegalAddress, addr+m.env.Spaces.Shared)
	}
	return addr, nil
}
