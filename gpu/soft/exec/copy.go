package exec

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// CopyAsync is cp.async: each lane copies from device memory to shared memory (PTX
// ISA, "Data Movement and Conversion Instructions: Asynchronous copy"). A program may
// not look before it has waited; here the copy is done at once.
type CopyAsync struct {
	To, From Access // Size: bytes of the copy
	Count    Ref    // of these so many are copied, the rest becomes zero; ClassNone: all
	Ignore   Pred   // with Ignores: nothing is copied where it holds
	Ignores  bool
}

// Step returns the step of the copy.
func (k CopyAsync) Step() Step {
	to, from, size := k.To.reached(), k.From.reached(), k.To.Size
	return masked(func(m *machine, act []uint32) error {
		return eachLaneErr(act, func(l int) error {
			dst, err := m.window(to.Space, to.at(m.get(to.Base, l), to.Off), size, l)
			if err != nil {
				return err
			}
			n := k.count(m, l)
			at := from.at(m.get(from.Base, l), from.Off)
			if at&(size-1) != 0 {
				return fmt.Errorf("%w: copy of %d bytes at %#x", abi.ErrMisaligned, size, at)
			}
			clear(dst[n:size])
			if n == 0 {
				return nil
			}
			src, err := m.window(from.Space, at, 1, l)
			if err != nil || uint64(len(src)) < n {
				return fmt.Errorf("%w: %d bytes at %#x", abi.ErrIllegalAddress, n, at)
			}
			copy(dst[:n], src)
			return nil
		})
	})
}

func (k CopyAsync) count(m *machine, lane int) uint64 {
	if k.Ignores && (m.preds[k.Ignore.slot*maxWarps+lane>>5]^k.Ignore.not)>>(lane&31)&1 != 0 {
		return 0
	}
	if k.Count.Class == ClassNone {
		return k.To.Size
	}
	return min(m.get(k.Count, lane), k.To.Size)
}
