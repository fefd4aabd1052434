package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// ListInstances pages through the instances that the caller may see.
func (h *handlers) ListInstances(ctx context.Context, r in[api.ListInstancesParams, none]) (*page[api.Instance], error) {
	only, err := h.instancesOf(ctx, r.Params)
	if err != nil {
		return nil, err
	}
	p, err := list[api.Instance](ctx, h, api.KindInstance, query{limit: r.Params.Limit, after: r.Params.Continue,
		name: r.Params.Name, search: r.Params.Search, sort: r.Params.Sort, labels: r.Params.LabelSelector, fields: r.Params.FieldSelector, count: r.Params.Count, organization: r.Params.Organization, project: r.Params.Project, only: only})
	if err != nil {
		return nil, err
	}
	return &p, h.withQueue(ctx, p.Items)
}

// instancesOf returns a filter for the instances on a node or GPU, or in a phase; nil
// selects all. Callers who cannot see nodes and GPUs cannot filter by them.
func (h *handlers) instancesOf(ctx context.Context, p api.ListInstancesParams) (func(api.Object) bool, error) {
	if p.Node == "" && p.Gpu == "" && p.Phase == "" {
		return nil, nil
	}
	var node, gpu string
	if p.Node != "" {
		o, err := h.find(ctx, api.KindNode, p.Node, "", "")
		if err != nil {
			return nil, at(err, "node")
		}
		node = o.Meta.ID
	}
	if p.Gpu != "" {
		o, err := h.find(ctx, api.KindGPU, p.Gpu, "", "")
		if err != nil {
			return nil, at(err, "gpu")
		}
		gpu = o.Meta.ID
	}
	phase := api.InstancePhase(p.Phase)
	if phase != "" {
		if err := api.ValidateInstancePhase(phase); err != nil {
			return nil, err
		}
	}
	return func(o api.Object) bool {
		i, err := api.Decode[api.Instance](o)
		return err == nil && (node == "" || string(i.Assignment.Node) == node) && (gpu == "" || string(i.Assignment.Gpu) == gpu) &&
			(phase == "" || api.InstancePhaseOf(i) == phase)
	}, nil
}
