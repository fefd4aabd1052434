package server

import (
	"context"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// ListNodes pages through what the caller sees.
func (h *handlers) ListNodes(ctx context.Context, r ListNodesRequestObject) (ListNodesResponseObject, error) {
	p, err := list[api.Node](ctx, h, api.KindNode, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name})
	return ListNodes200JSONResponse(p), err
}

// GetNode by id or name.
func (h *handlers) GetNode(ctx context.Context, r GetNodeRequestObject) (GetNodeResponseObject, error) {
	o, err := get[api.Node](ctx, h, api.KindNode, r.ID, "", "")
	return GetNode200JSONResponse(o), err
}

// UpdateNode changes name, labels and spec.
func (h *handlers) UpdateNode(ctx context.Context, r UpdateNodeRequestObject) (UpdateNodeResponseObject, error) {
	o, err := update(ctx, h, api.KindNode, r.ID, r.Body.Meta, func(old api.Node) (any, error) {
		return api.ChangeNode(old.Spec, r.Body.Spec)
	})
	return UpdateNode200JSONResponse(o), err
}

// DeleteNode removes a node that has nothing left on it. Its certificate is
// refused from then on; with force, what was on it starts elsewhere.
func (h *handlers) DeleteNode(ctx context.Context, r DeleteNodeRequestObject) (DeleteNodeResponseObject, error) {
	n, err := get[api.Node](ctx, h, api.KindNode, r.ID, "", "")
	if err != nil {
		return nil, err
	}
	if !r.Params.Force {
		var on []string
		err := h.each(ctx, api.ListQuery{Kind: api.KindInstance}, func(o api.Object) bool {
			if in, err := api.Decode[api.Instance](o); err == nil && string(in.Assignment.Node) == n.Meta.ID {
				on = append(on, in.Meta.Name)
			}
			return len(on) < 3
		})
		switch {
		case err != nil:
			return nil, err
		case len(on) > 0 && n.Assignment.State == api.NodeLost:
			return nil, api.Errorf(api.CodeInUse, "instances wait for node %s: %s", n.Meta.Name, strings.Join(on, ", ")).
				WithHint("their disks lie on it and are lost with it: delete them, or remove the node with --force")
		case len(on) > 0:
			return nil, api.Errorf(api.CodeInUse, "instances are on node %s: %s", n.Meta.Name, strings.Join(on, ", ")).
				WithHint("basalt node drain %s; or, if it is certainly switched off, --force", n.Meta.Name)
		}
	}
	o, err := remove[api.Node](ctx, h, api.KindNode, n.Meta.ID)
	return DeleteNode200JSONResponse(o), err
}
