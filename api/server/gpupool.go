package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// pool checks that the GPU pool named in a spec exists. The default pool exists even
// without an object.
func (h *handlers) pool(ctx context.Context, field, name string) error {
	if name == "" || name == api.DefaultPool {
		return nil
	}
	found := false
	err := h.each(ctx, api.ListQuery{Kind: api.KindGPUPool, Name: name}, func(api.Object) bool {
		found = true
		return false
	})
	if err == nil && !found {
		err = api.Errorf(api.CodeInvalid, "GPUPool %s does not exist", name).At(field).WithHint("basalt gpu-pool list")
	}
	return err
}

// gpuPoolSpec fills in defaults and validates.
func (h *handlers) gpuPoolSpec(_ context.Context, m api.Meta, old *api.GPUPool, s api.GPUPoolSpec) (api.GPUPoolSpec, error) {
	if old != nil && m.Name != old.Meta.Name {
		return s, api.Errorf(api.CodeInvalid, "the name of a GPU pool cannot change: GPUs and instances refer to it").At("meta.name")
	}
	s = api.DefaultGPUPool(s)
	return s, api.ValidateGPUPool(s)
}
