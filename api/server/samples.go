package server

import (
	"context"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// GetInstanceSamples returns the samples that its node has recorded of the instance.
func (h *handlers) GetInstanceSamples(ctx context.Context, r in[api.GetInstanceSamplesParams, none]) (*api.Samples, error) {
	s, err := h.samples(ctx, api.KindInstance, r.ID, r.Params.From, r.Params.Step)
	return &s, err
}

// GetNodeSamples returns the samples that the node has recorded of itself.
func (h *handlers) GetNodeSamples(ctx context.Context, r in[api.GetNodeSamplesParams, none]) (*api.Samples, error) {
	s, err := h.samples(ctx, api.KindNode, r.ID, r.Params.From, r.Params.Step)
	return &s, err
}

// GetGPUSamples returns the samples that its node has recorded of the GPU.
func (h *handlers) GetGPUSamples(ctx context.Context, r in[api.GetGPUSamplesParams, none]) (*api.Samples, error) {
	s, err := h.samples(ctx, api.KindGPU, r.ID, r.Params.From, r.Params.Step)
	return &s, err
}

// maxStep limits the step of samples, in seconds; none longer than a day is recorded.
const maxStep = 86400

func (h *handlers) samples(ctx context.Context, kind api.Kind, ref string, from time.Time, step int64) (api.Samples, error) {
	if step < 0 || step > maxStep {
		return api.Samples{}, api.Errorf(api.CodeInvalid, "must be between 5 and %d seconds", maxStep).At("step")
	}
	o, err := h.find(ctx, kind, ref, "", "")
	if err != nil {
		return api.Samples{}, err
	}
	if h.opts.Runtime == nil {
		return api.Samples{}, unmeasured()
	}
	out, err := h.opts.Runtime.Samples(ctx, kind, o.Meta.ID, api.SampleQuery{From: from, Step: time.Duration(step) * time.Second})
	if err != nil {
		return out, fmt.Errorf("read the samples of %s %s: %w", kind, o.Meta.ID, err)
	}
	return out, nil
}

// ListGPUTenants returns the virtual GPUs that are on a GPU now.
func (h *handlers) ListGPUTenants(ctx context.Context, r in[none, none]) (*api.GPUTenantList, error) {
	o, err := h.find(ctx, api.KindGPU, r.ID, "", "")
	if err != nil {
		return nil, err
	}
	if h.opts.Runtime == nil {
		return nil, unmeasured()
	}
	all, err := h.opts.Runtime.GPUTenants(ctx, api.GPUID(o.Meta.ID))
	if err != nil {
		return nil, fmt.Errorf("list the tenants of GPU %s: %w", o.Meta.ID, err)
	}
	return &api.GPUTenantList{Items: all}, nil
}

func unmeasured() error {
	return api.Errorf(api.CodeUnavailable, "metrics are not available on this server")
}
