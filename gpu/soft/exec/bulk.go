package exec

import (
	"encoding/binary"
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// bulkUnit is the alignment in bytes of the addresses and the size of a bulk copy.
const bulkUnit = 16

// errMulticast is the error of a copy to several blocks, which would have to write to
// the shared memory of blocks that run at the same time.
var errMulticast = fmt.Errorf("%w: not implemented: a multicast to the blocks of a cluster", abi.ErrLaunchFailed)

func copyBulk(o *ir.CopyBulk) step {
	to, from := reached(o.To), reached(o.From)
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
			n := m.get(o.Bytes, l)
			if n%bulkUnit != 0 {
				return fmt.Errorf("%w: bulk copy of %d bytes, want a multiple of %d", abi.ErrMisaligned, n, bulkUnit)
			}
			if n > 0 {
				dst, err := m.bulk(to, l, n)
				if err != nil {
					return err
				}
				src, err := m.bulk(from, l, n)
				if err != nil {
					return err
				}
				if o.F == nil {
					copy(dst, src)
				} else {
					combineEach(dst, src, int(to.Size), o.F)
				}
			}
			if barrier == nil {
				return nil
			}
			return m.transacted(barrier, l, n)
		})
	})
}

// bulk returns the memory of one side of a copy.
func (m *machine) bulk(a *access, lane int, n uint64) ([]byte, error) {
	addr := a.at(m.get(a.Base, lane), a.Off)
	b, err := m.window(a.Space, addr, bulkUnit, lane)
	if err != nil {
		return nil, err
	}
	if uint64(len(b)) < n {
		return nil, outside(n, a.Space, addr, uint64(len(b)))
	}
	return b[:n], nil
}

// combineEach updates elements of 4 or 8 bytes, each atomically.
func combineEach(dst, src []byte, size int, f ops.Update) {
	for ; len(dst) > 0; dst, src = dst[size:], src[size:] {
		if size == 8 {
			x := binary.LittleEndian.Uint64(src)
			atomic64(dst, func(old uint64) uint64 { return f(old, x, 0) })
			continue
		}
		x := uint64(binary.LittleEndian.Uint32(src))
		atomic32(dst, func(old uint32) uint32 { return uint32(f(uint64(old), x, 0)) })
	}
}

// transacted performs complete-tx on an mbarrier with n bytes.
func (m *machine) transacted(barrier *access, lane int, n uint64) error {
	mem, err := m.inShared(barrier, lane, 8)
	if err != nil {
		return err
	}
	_, err = changeBarrier(mem, func(b ops.MBarrier) (ops.MBarrier, error) { return b.Complete(int64(n)) })
	return err
}
