package soft

import (
	"strings"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

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
// have of local memory (maxMachineBytes for a warp), and more than the others.
const spaceSize = uint64(maxMachineBytes / warpSize)

func newSpaces(w abi.Window) spaces {
	end := w.Base + w.Size
	return spaces{device: w.Base, host: w.Host().Base, param: end - 3*spaceSize, local: end - 2*spaceSize, shared: end - spaceSize}
}

// room is how many bytes of addresses device memory has.
func (s spaces) room() uint64 { return s.host - s.device }

// The three spaces are the window's tail, which nobody gives out.
var _ = [1]struct{}{}[3*spaceSize-abi.WindowTail]

// base returns where a space's addresses begin in the generic space: 0 for
// device memory, whose addresses are generic ones.
func (s spaces) base(space string) (base uint64, ok bool) {
	name, _, _ := strings.Cut(space, "::")
	switch name {
	case "shared":
		return s.shared, true
	case "local":
		return s.local, true
	case "param":
		return s.param, true
	case "global", "const":
		return 0, true
	}
	return 0, false
}

// area returns the range of generic addresses of a space.
func (s spaces) area(space string) (base, size uint64, ok bool) {
	base, ok = s.base(space)
	if base == 0 {
		return s.device, s.param - s.device, ok // host memory is global too
	}
	return base, spaceSize, ok
}
