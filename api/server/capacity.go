package server

import (
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
)

// Capacity reports how much of the cluster's GPUs is allocated, and when they are
// expected to be full.
type Capacity interface {
	Capacity(ctx context.Context) (api.Capacity, error)
}

// GetCapacity returns the GPUs of each model and pool with their forecast.
func (h *handlers) GetCapacity(ctx context.Context, _ in[none, none]) (*api.Capacity, error) {
	if h.opts.Capacity == nil {
		return nil, api.Errorf(api.CodeUnavailable, "this server has no capacity forecast")
	}
	c, err := h.opts.Capacity.Capacity(ctx)
	if c.Gpus == nil {
		c.Gpus = []api.GPUCapacity{}
	}
	if err != nil {
		return nil, fmt.Errorf("forecast the use of GPUs: %w", err)
	}
	return &c, nil
}
