package client

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// InstanceSamples returns recent samples of an instance's use.
func (a *API) InstanceSamples(ctx context.Context, id string, q api.SampleQuery) (api.Samples, error) {
	return get[api.Samples](ctx, a, api.GetInstanceSamplesParams{From: q.From, Step: int64(q.Step / time.Second)}, "instances", id, "samples")
}

// NodeSamples returns recent samples of a node's use.
func (a *API) NodeSamples(ctx context.Context, id string, q api.SampleQuery) (api.Samples, error) {
	return get[api.Samples](ctx, a, api.GetNodeSamplesParams{From: q.From, Step: int64(q.Step / time.Second)}, "nodes", id, "samples")
}

// GPUSamples returns recent samples of a GPU's use.
func (a *API) GPUSamples(ctx context.Context, id string, q api.SampleQuery) (api.Samples, error) {
	return get[api.Samples](ctx, a, api.GetGPUSamplesParams{From: q.From, Step: int64(q.Step / time.Second)}, "gpus", id, "samples")
}

// GPUTenants returns the virtual GPUs that are on a GPU now.
func (a *API) GPUTenants(ctx context.Context, id string) (api.GPUTenantList, error) {
	return get[api.GPUTenantList](ctx, a, nil, "gpus", id, "tenants")
}
