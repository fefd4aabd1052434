package server

import (
	"context"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// ListNodes pages through what the caller sees.
func (h *handlers) ListNodes(ctx context.Context, r in[api.ListNodesParams, none]) (*page[api.Node], error) {
	p, err := list[api.Node](ctx, h, api.KindNode, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name, search: r.Params.Search, sort: r.Params.Sort})
	return &p, err
}

// GetNode by id or name.
func (h *handlers) GetNode(ctx context.Context, r in[none, none]) (*api.Node, error) {
	o, err := get[api.Node](ctx, h, api.KindNode, r.ID, "", "")
	return &o, err
}

// GetNodeLeaks is what lies there and belongs to nobody.
func (h *handlers) GetNodeLeaks(ctx context.Context, r in[none, none]) (*api.LeakList, error) {
	o, err := h.find(ctx, api.KindNode, r.ID, "", "")
	if err != nil {
		return nil, err
	}
	if h.opts.Runtime == nil {
		return nil, api.Errorf(api.CodeUnavailable, "nodes cannot be looked at from this server")
	}
	all, err := h.opts.Runtime.Leaks(ctx, api.NodeID(o.Meta.ID))
	if all == nil {
		all = []api.Leak{}
	}
	return &api.LeakList{Items: all}, err
}

// UpdateNode changes name, labels and spec.
func (h *handlers) UpdateNode(ctx context.Context, r in[none, api.Node]) (*api.Node, error) {
	o, err := update(ctx, h, api.KindNode, r.ID, r.Body.Meta, func(old api.Node) (any, error) {
		return api.ChangeNode(old.Spec, r.Body.Spec)
	})
	return &o, err
}

// DeleteNode removes a node that has nothing left on it. With force, also one
// with instances: it gets no lease any more, and when that has certainly ended
// the planner removes it, and what was on it starts elsewhere.
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
		n, err = put[api.Node](ctx, h, o, o.Meta, n.Spec)
		return &n, err
	case !r.Params.Force && len(on) > 0 && n.Assignment.State == api.NodeLost:
		return nil, api.Errorf(api.CodeInUse, "instances wait for node %s: %s", n.Meta.Name, strings.Join(on, ", ")).
			WithHint("their disks lie on it and are lost with it: delete them, or remove the node with --force")
	case !r.Params.Force && len(on) > 0:
		return nil, api.Errorf(api.CodeInUse, "instances are on node %s: %s", n.Meta.Name, strings.Join(on, ", ")).
			WithHint("basalt node drain %s; or, if it is certainly switched off, --force", n.Meta.Name)
	}
	n, err = remove[api.Node](ctx, h, api.KindNode, n.Meta.ID)
	return &n, err
}

// instancesOn names some of the instances on a node.
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
