package server

import (
	"context"
	"fmt"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// nodeSpec validates a changed spec.
func nodeSpec(_ context.Context, _ api.Meta, old *api.Node, s api.NodeSpec) (api.NodeSpec, error) {
	return api.ChangeNode(old.Spec, s)
}

// GetNodeLeaks returns what exists on the node but belongs to no object.
func (h *handlers) GetNodeLeaks(ctx context.Context, r in[none, none]) (*api.LeakList, error) {
	o, err := h.find(ctx, api.KindNode, r.ID, "", "")
	if err != nil {
		return nil, err
	}
	if h.opts.Runtime == nil {
		return nil, api.Errorf(api.CodeUnavailable, "node state is not available on this server")
	}
	all, err := h.opts.Runtime.Leaks(ctx, api.NodeID(o.Meta.ID))
	if all == nil {
		all = []api.Leak{}
	}
	if err != nil {
		return nil, fmt.Errorf("search for leaked objects on node %s: %w", o.Meta.ID, err)
	}
	return &api.LeakList{Items: all}, nil
}

// DeleteNode removes an empty node. With force it also removes a node with instances:
// the node gets no further lease, and once its last lease has certainly expired the
// planner removes it, and its instances are started elsewhere.
func (h *handlers) DeleteNode(ctx context.Context, r in[api.DeleteNodeParams, none]) (*api.Node, error) {
	o, err := h.own(ctx, api.KindNode, r.ID)
	if err != nil {
		return nil, err
	}
	n, err := api.Decode[api.Node](o)
	if err != nil {
		return nil, err
	}
	on, err := h.instancesOn(ctx, n.Meta.ID)
	switch {
	case err != nil:
		return nil, err
	case r.Params.Force && n.Assignment.State != api.NodeLost && n.Assignment.State != "":
		n.Spec.Off = true
		n, err = put[api.Node](ctx, h, o, o.Meta, n.Spec, nil)
		return &n, err
	case !r.Params.Force && len(on) > 0 && n.Assignment.State == api.NodeLost:
		return nil, api.Errorf(api.CodeInUse, "cannot remove node %s: instances wait for it: %s", n.Meta.Name, strings.Join(on, ", ")).
			WithHint("their disks are on it and are lost with it: delete the instances, or remove the node with --force")
	case !r.Params.Force && len(on) > 0:
		return nil, api.Errorf(api.CodeInUse, "cannot remove node %s: instances are on it: %s", n.Meta.Name, strings.Join(on, ", ")).
			WithHint("drain it first: basalt node drain %s (--force if it is certainly switched off)", n.Meta.Name)
	}
	n, err = remove[api.Node](ctx, h, api.KindNode, n.Meta.ID)
	return &n, err
}

// instancesOn returns the names of some of the instances on a node.
func (h *handlers) instancesOn(ctx context.Context, node string) (names []string, err error) {
	const most = 3
	err = h.each(ctx, api.ListQuery{Kind: api.KindInstance}, func(o api.Object) bool {
		if in, err := api.Decode[api.Instance](o); err == nil && string(in.Assignment.Node) == node {
			names = append(names, in.Meta.Name)
		}
		return len(names) < most
	})
	return names, err
}
