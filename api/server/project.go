package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// ListProjects pages through what the caller sees.
func (h *handlers) ListProjects(ctx context.Context, r in[api.ListProjectsParams, none]) (*page[api.Project], error) {
	p, err := list[api.Project](ctx, h, api.KindProject, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name, search: r.Params.Search, sort: r.Params.Sort, organization: r.Params.Organization})
	return &p, err
}

// CreateProject makes one.
func (h *handlers) CreateProject(ctx context.Context, r in[api.CreateProjectParams, api.Project]) (*api.Project, error) {
	m, err := h.place(ctx, api.KindProject, r.Body.Meta)
	if err != nil {
		return nil, err
	}
	r.Body.Spec.Restricted = nil // the cluster's
	spec, err := r.Body.Spec, api.ValidateProject(r.Body.Spec)
	if err != nil {
		return nil, err
	}
	id := newID(api.KindProject)
	o, err := create[api.Project](ctx, h, api.KindProject, id, m, spec, r.Params.IdempotencyKey, h.firstOf(m.Organization, id)...)
	return &o, err
}

// firstOf makes what a project begins with where the cluster has networks.
func (h *handlers) firstOf(organization, project string) []api.Command {
	if !h.opts.Networking {
		return nil
	}
	group := newID(api.KindSecurityGroup)
	made := func(kind api.Kind, id string, spec any) api.Command {
		return api.Command{Op: api.OpPutSpec, Kind: kind, ID: id, Name: api.DefaultName, Organization: organization, Project: project, Data: api.Encode(spec)}
	}
	return []api.Command{
		made(api.KindNetwork, newID(api.KindNetwork), api.ProjectNetwork(api.ProjectID(project))),
		made(api.KindSecurityGroup, group, api.ProjectSecurityGroup(api.SecurityGroupID(group))),
	}
}

// GetProject by id or name.
func (h *handlers) GetProject(ctx context.Context, r in[api.GetProjectParams, none]) (*api.Project, error) {
	o, err := get[api.Project](ctx, h, api.KindProject, r.ID, r.Params.Organization, "")
	return &o, err
}

// UpdateProject changes name, labels and spec.
func (h *handlers) UpdateProject(ctx context.Context, r in[none, api.Project]) (*api.Project, error) {
	o, err := update(ctx, h, api.KindProject, r.ID, r.Body.Meta, func(old api.Project) (any, error) {
		r.Body.Spec.Restricted = old.Spec.Restricted
		return r.Body.Spec, api.ValidateProject(r.Body.Spec)
	})
	return &o, err
}

// DeleteProject deletes one that nothing uses, with what it began with.
func (h *handlers) DeleteProject(ctx context.Context, r in[none, none]) (*api.Project, error) {
	p, err := h.own(ctx, api.KindProject, r.ID)
	if err != nil {
		return nil, err
	}
	var with []api.Command
	for _, kind := range []api.Kind{api.KindNetwork, api.KindSecurityGroup} {
		if err := h.each(ctx, api.ListQuery{Kind: kind, Project: p.Meta.ID, Name: api.DefaultName}, func(o api.Object) bool {
			with = append(with, api.Command{Op: api.OpDelete, Kind: kind, ID: o.Meta.ID, Expect: api.AnyRevision})
			return true
		}); err != nil {
			return nil, err
		}
	}
	o, err := remove[api.Project](ctx, h, api.KindProject, p.Meta.ID, with...)
	return &o, err
}
