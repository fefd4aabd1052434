package client

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// InstanceSamples are what an instance has used lately.
func (a *API) InstanceSamples(ctx context.Context, id string, q api.SampleQuery) (api.Samples, error) {
	return get[api.Samples](ctx, a, api.GetInstanceSamplesParams{From: q.From, Step: int64(q.Step / time.Second)}, "instances", id, "samples")
}

// NodeSamples are what a node has used lately.
func (a *API) NodeSamples(ctx context.Context, id string, q api.SampleQuery) (api.Samples, error) {
	return get[api.Samples](ctx, a, api.GetNodeSamplesParams{From: q.From, Step: int64(q.Step / time.Second)}, "nodes", id, "samples")
}

// GPUSamples are what of a card was used lately.
func (a *API) GPUSamples(ctx context.Context, id string, q api.SampleQuery) (api.Samples, error) {
	return get[api.Samples](ctx, a, api.GetGPUSamplesParams{From: q.From, Step: int64(q.Step / time.Second)}, "gpus", id, "samples")
}

// GPUTenants are the virtual GPUs on a card now.
func (a *API) GPUTenants(ctx context.Context, id string) (api.GPUTenantList, error) {
	return get[api.GPUTenantList](ctx, a, nil, "gpus", id, "tenants")
}
