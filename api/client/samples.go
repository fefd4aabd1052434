package client

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// InstanceSamples are what an instance has used lately.
func (a *API) InstanceSamples(ctx context.Context, id string, q api.SampleQuery) (api.Samples, error) {
	return decode[api.Samples](a.gen.GetInstanceSamples(ctx, id, &api.GetInstanceSamplesParams{From: q.From, Step: int64(q.Step / time.Second)})) //nolint:bodyclose // decode closes it
}

// NodeSamples are what a node has used lately.
func (a *API) NodeSamples(ctx context.Context, id string, q api.SampleQuery) (api.Samples, error) {
	return decode[api.Samples](a.gen.GetNodeSamples(ctx, id, &api.GetNodeSamplesParams{From: q.From, Step: int64(q.Step / time.Second)})) //nolint:bodyclose // decode closes it
}

// GPUSamples are what of a card was used lately.
func (a *API) GPUSamples(ctx context.Context, id string, q api.SampleQuery) (api.Samples, error) {
	return decode[api.Samples](a.gen.GetGPUSamples(ctx, id, &api.GetGPUSamplesParams{From: q.From, Step: int64(q.Step / time.Second)})) //nolint:bodyclose // decode closes it
}

// GPUTenants are the virtual GPUs on a card now.
func (a *API) GPUTenants(ctx context.Context, id string) (api.GPUTenantList, error) {
	return decode[api.GPUTenantList](a.gen.ListGPUTenants(ctx, id)) //nolint:bodyclose // decode closes it
}
