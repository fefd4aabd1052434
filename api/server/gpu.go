package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// gpuSpec validates a spec, whose pool must exist.
func (h *handlers) gpuSpec(ctx context.Context, _ api.Meta, _ *api.GPU, s api.GPUSpec) (api.GPUSpec, error) {
	if err := api.ValidateGPU(s); err != nil {
		return s, err
	}
	return s, h.pool(ctx, "spec.pool", s.Pool)
}
