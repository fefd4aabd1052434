package server

import (
	"context"

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
		return r.Body.Spec, api.ValidateNode(r.Body.Spec)
	})
	return UpdateNode200JSONResponse(o), err
}
