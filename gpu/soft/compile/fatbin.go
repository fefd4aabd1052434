package compile

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/fatbin"
)

// Capability is a device's compute capability, as in sm_90. It selects the PTX of a
// fatbin.
//
// A real driver refuses PTX for a newer target. The soft GPU accepts it: it checks
// instructions, not the .target line, and reports the instruction that is not
// implemented.
type Capability uint32

// DefaultCapability is the capability of a device for which none is given.
const DefaultCapability Capability = 90

// better reports whether PTX for architecture a is preferred to that for b: the newest
// that the device covers, or else the oldest.
func (c Capability) better(a, b uint32) bool {
	if a <= uint32(c) && b <= uint32(c) {
		return a > b
	}
	return a < b
}

// fatbinPTX returns the best PTX for the device.
func (c Capability) fatbinPTX(image []byte) (source, error) {
	entries, err := fatbin.Entries(image)
	if err != nil {
		return source{}, fmt.Errorf("%w: %w", abi.ErrInvalidImage, err)
	}
	var best *fatbin.Entry
	for i, e := range entries {
		if e.Kind == fatbin.PTX && (best == nil || c.better(e.Arch, best.Arch)) {
			best = &entries[i]
		}
	}
	if best == nil {
		return source{}, errNoPTX
	}
	return source{packed: best}, nil
}
