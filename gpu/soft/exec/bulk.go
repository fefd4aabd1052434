package exec

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// bulkUnit is the alignment in bytes of the addresses and the size of a bulk copy.
const bulkUnit = 16

func copyBulk(o *ir.CopyBulk) step {
	to, from := reached(o.To), reached(o.From)
	var barrier *access
	if o.Barrier != nil {
		barrier = reached(*o.Barrier)
	}
	return masked(func(m *machine, act []uint32) error {
		m.did |= didChange
		return eachLaneErr(act, func(l int) error {
			n := m.get(o.Bytes, l)
			if n%bulkUnit != 0 {
				return fmt.Errorf("%w: bulk copy of %d bytes, want a multiple of %d", abi.ErrMisaligned, n, bulkUnit)
			}
			return m.eachBlock(o.Blocks, l, func(block uint64) error {
				if n > 0 {
					dst, err := m.bulk(to, l, n, block)
					if err != nil {
						return err
					}
					src, err := m.bulk(from, l, n, 0)
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
				return m.transacted(barrier, l, n, block)
			})
		})
	})
}

// eachBlock calls f with each block of the cluster that a lane's mask names, as a block
// is in the addresses of shared memory, or with 0 if there is no mask: then the block is
// that of the address.
func (m *machine) eachBlock(mask ir.Ref, lane int, f func(block uint64) error) error {
	if mask.Class == ir.ClassNone {
		return f(0)
	}
	for set := m.get(mask, lane) & (1<<16 - 1); set != 0; set &= set - 1 {
		if err := f(uint64(bits.TrailingZeros64(set) + 1)); err != nil {
			return err
		}
	}
	return nil
}

// inBlock returns an address of shared memory in a block of the cluster, or, for block
// 0, the address itself.
func inBlock(addr, block uint64) uint64 {
	if block == 0 {
		return addr
	}
	return addr&(1<<ops.ClusterShift-1) | block<<ops.ClusterShift
}

// bulk returns the memory of one side of a copy. A block other than 0 is that of
// eachBlock.
func (m *machine) bulk(a *access, lane int, n, block uint64) ([]byte, error) {
	addr := inBlock(a.at(m.get(a.Base, lane), a.Off), block)
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

// transacted performs complete-tx on an mbarrier with n bytes. A block other than 0 is
// that of eachBlock.
func (m *machine) transacted(barrier *access, lane int, n, block uint64) error {
	addr, err := m.sharedAddress(barrier, lane)
	if err != nil {
		return err
	}
	mem, err := m.window(ir.Shared, inBlock(addr, block), 8, lane)
	if err != nil {
		return err
	}
	_, err = changeBarrier(mem, func(b ops.MBarrier) (ops.MBarrier, error) { return b.Complete(int64(n)) })
	return err
}
