package compile

import (
	"strings"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// spaceBase returns the generic address at which a space begins: 0 for device memory,
// whose addresses are generic ones.
func spaceBase(s *ir.Spaces, space string) (base uint64, ok bool) {
	name, _, _ := strings.Cut(space, "::")
	switch name {
	case "shared":
		return s.Shared, true
	case "local":
		return s.Local, true
	case "param":
		return s.Param, true
	case "global", "const":
		return 0, true
	}
	return 0, false
}

// spaceArea returns the range of generic addresses of a space. That of global memory
// begins behind the other spaces and wraps around, as it has every address outside of
// them: host memory, and memory that is mapped outside of the window, are global too.
func spaceArea(s *ir.Spaces, space string) (base, size uint64, ok bool) {
	base, ok = spaceBase(s, space)
	if base == 0 {
		return s.Param + 3*ir.SpaceSize, ^(3 * ir.SpaceSize) + 1, ok
	}
	if space == "shared" || space == "shared::cta" { // the block's own, not that of its cluster
		return base, 1 << ops.ClusterShift, ok
	}
	return base, ir.SpaceSize, ok
}
