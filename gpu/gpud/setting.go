package gpud

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/sched"
)

// setCard changes the settings of a card. Reducing the swap below what is allocated
// affects no existing vGPU, but no new VRAM is allocated. Sessions keep the interop
// that they began with.
func (c *core) setCard(id sched.GPUID, spec wire.GPUSpec) *wire.Error {
	card := c.cards[id]
	if card == nil {
		return &wire.Error{Code: wire.CodeNotFound, Message: fmt.Sprintf("GPU %q does not exist on this node", id)}
	}
	if spec.SwapBytes > 16*card.VRAM {
		return &wire.Error{Code: wire.CodeInvalid, Message: "swap must not be larger than 16 times the memory of the GPU"}
	}
	if card.GPUSpec == spec {
		return nil
	}
	card.GPUSpec, c.specs[id] = spec, spec
	c.save.dirty = true
	c.cfg.Log.Info("GPU settings changed", "gpu", id, "swap", FormatSize(spec.SwapBytes), "interop", spec.Interop)
	return nil
}
