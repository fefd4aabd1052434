package ir

import "github.com/basalt-gpu/basalt/gpu/abi"

// Spaces is the generic address space of a context's kernels, in which each other space
// has a range (PTX ISA, "Generic Addressing"). All of it is in the session's address
// window, so that no generic address is also a pointer of the guest process:
//
//	device memory …   host memory …   param      local      shared
//	├─────────────────┼───────────────┼──────────┼──────────┼──────────┤
//	base              host                                             base + size
type Spaces struct{ Device, Host, Param, Local, Shared uint64 }

// SpaceSize is the size of the address range of a space in bytes: the maximum local
// memory of a thread (MaxBlockBytes for a warp), and more than the other spaces need.
const SpaceSize = uint64(MaxBlockBytes / WarpSize)

// NewSpaces divides a session's window into spaces.
func NewSpaces(w abi.Window) Spaces {
	end := w.Base + w.Size
	return Spaces{Device: w.Base, Host: w.Host().Base, Param: end - 3*SpaceSize, Local: end - 2*SpaceSize, Shared: end - SpaceSize}
}

// DeviceBytes returns the size of the address range of device memory, in bytes.
func (s Spaces) DeviceBytes() uint64 { return s.Host - s.Device }

// Global reports whether a generic address is one of global memory: of every address
// outside of the other spaces, because memory can be mapped outside of the window too.
func (s Spaces) Global(address uint64) bool { return address-s.Param >= 3*SpaceSize }

// The three spaces are the tail of the window, which is not allocated.
var _ = [1]struct{}{}[3*SpaceSize-abi.WindowTail]
