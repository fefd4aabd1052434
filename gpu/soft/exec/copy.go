package exec

import (
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

func copyAsync(k *ir.CopyAsync) step {
	to, from, size := reached(k.To), reached(k.From), k.To.Size
	return masked(func(m *machine, act []uint32) error {
		m.did |= didChange
		return eachLaneErr(act, func(l int) error {
			dst, err := m.window(to.Space, to.at(m.get(to.Base, l), to.Off), size, l)
			if err != nil {
				return err
			}
			n := copied(k, m, l)
			at := from.at(m.get(from.Base, l), from.Off)
			if at&(size-1) != 0 {
				return misaligned(size, from.Space, at, size)
			}
			clear(dst[n:size])
			if n == 0 {
				return nil
			}
			src, err := m.window(from.Space, at, 1, l)
			if err != nil || uint64(len(src)) < n {
				return unallocated(n, at)
			}
			copy(dst[:n], src)
			return nil
		})
	})
}

// copied returns the number of bytes that a lane copies.
func copied(k *ir.CopyAsync, m *machine, lane int) uint64 {
	if k.Ignore != nil && m.get(k.Ignore.Ref(), lane) != uint64(bitOf(k.Ignore.Not)) {
		return 0
	}
	if k.Count.Class == ir.ClassNone {
		return k.To.Size
	}
	return min(m.get(k.Count, lane), k.To.Size)
}
