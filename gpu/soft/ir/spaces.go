package ir

import "github.com/basalt-gpu/basalt/gpu/abi"

// Spaces is the generic address space of a context's kernels, where the other
// spaces have a place each (PTX ISA, "Generic Addressing"). All of it lies in
// the session's address window, so that no generic address is also a pointer of
// the guest process:
//
//	device memory …   host memory …   param      local      shared
//	├─────────────────┼───────────────┼──────────┼──────────┼──────────┤
//	base              host                                             base + size
type Spaces struct{ Device, Host, Param, Local, Shared uint64 }

// SpaceSize is how many bytes of addresses a space has: as much as a thread can
// have of local memory (MaxBlockBytes for a warp), and more than the others.
const SpaceSize = uint64(MaxBlockBytes / WarpSize)

// NewSpaces lays the address space out in a session's window.
func NewSpaces(w abi.Window) Spaces {
	end := w.Base + w.Size
	return Spaces{Device: w.Base, Host: w.Host().Base, Param: end - 3*SpaceSize, Local: end - 2*SpaceSize, Shared: end - SpaceSize}
}

// DeviceBytes returns the size of the address range of device memory, in bytes.
func (s Spaces) DeviceBytes() uint64 { return s.Host - s.Device }

// The three spaces are the window's tail, which nobody gives out.
var _ = [1]struct{}{}[3*SpaceSize-abi.WindowTail]
