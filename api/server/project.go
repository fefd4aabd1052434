package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// ListProjects pages through what the caller sees.
func (h *handlers) ListProjects(ctx context.Context, r ListProjectsRequestObject) (ListProjectsResponseObject, error) {
	p, err := list[api.Project](ctx, h, api.KindProject, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name, organization: r.Params.Organization})
	return ListProjects200JSONResponse(p), err
}

// CreateProject makes one.
func (h *handlers) CreateProject(ctx context.Context, r CreateProjectRequestObject) (CreateProjectResponseObject, error) {
	h.references.RLock()
	defer h.references.RUnlock()
	m, err := h.place(ctx, api.KindProject, r.Body.Meta)
	if err != nil {
		return nil, err
	}
	spec, err := r.Body.Spec, api.ValidateProject(r.Body.Spec)
	if err != nil {
		return nil, err
	}
	o, err := create[api.Project](ctx, h, api.KindProject, newID(api.KindProject), m, spec, r.Params.IdempotencyKey)
	return CreateProject201JSONResponse(o), err
}

// GetProject by id or name.
func (h *handlers) GetProject(ctx context.Context, r GetProjectRequestObject) (GetProjectResponseObject, error) {
	o, err := get[api.Project](ctx, h, api.KindProject, r.ID, r.Params.Organization, "")
	return GetProject200JSONResponse(o), err
}

// UpdateProject changes name, labels and spec.
func (h *handlers) UpdateProject(ctx context.Context, r UpdateProjectRequestObject) (UpdateProjectResponseObject, error) {
	h.references.RLock()
	defer h.references.RUnlock()
	o, err := update(ctx, h, api.KindProject, r.ID, r.Body.Meta, func(old api.Project) (any, error) {
		return r.Body.Spec, api.ValidateProject(r.Body.Spec)
	})
	return UpdateProject200JSONResponse(o), err
}

// DeleteProject deletes one that nothing uses.
func (h *handlers) DeleteProject(ctx context.Context, r DeleteProjectRequestObject) (DeleteProjectResponseObject, error) {
	o, err := remove[api.Project](ctx, h, api.KindProject, r.ID)
	return DeleteProject200JSONResponse(o), err
}
