package soft

import "github.com/basalt-gpu/basalt/gpu/abi"

// spaces is the generic address space of a context's kernels, where the other
// spaces have a place each (PTX ISA, "Generic Addressing"). All of it lies in
// the session's address window, so that no generic address is also a pointer of
// the guest process:
//
//	device memory …   host memory …   param      local      shared
//	├─────────────────┼───────────────┼──────────┼──────────┼──────────┤
//	base              host                                             base + size
type spaces struct{ device, host, param, local, shared uint64 }

// spaceSize is how many bytes of addresses a space has: as much as a thread can
// have of local memory (MaxMachineBytes for a warp), and more than the others.
const spaceSize = uint64(MaxMachineBytes / warpSize)

func newSpaces(w abi.Window) spaces {
	end := w.Base + w.Size
	return spaces{device: w.Base, host: w.Host().Base, param: end - 3*spaceSize, local: end - 2*spaceSize, shared: end - spaceSize}
}

// room is how many bytes of addresses device memory has.
func (s spaces) room() uint64 { return s.host - s.device }

// The three spaces are the window's tail, which nobody gives out.
var _ = [1]struct{}{}[3*spaceSize-abi.WindowTail]
