package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// firstOf returns the commands that create a project's default network and security
// group, if the cluster has networking.
func (h *handlers) firstOf(ctx context.Context, m api.Meta) ([]api.Command, error) {
	if !h.opts.Networking {
		return nil, nil
	}
	network, err := h.fitMTU(ctx, nil, api.ProjectNetwork(api.ProjectID(m.ID)))
	if err != nil {
		return nil, err
	}
	group := newID(api.KindSecurityGroup)
	made := func(kind api.Kind, id string, spec any) api.Command {
		return api.Command{Op: api.OpPutSpec, Kind: kind, ID: id, Name: api.DefaultName, Organization: m.Organization, Project: m.ID, Data: api.Encode(spec)}
	}
	return []api.Command{
		made(api.KindNetwork, newID(api.KindNetwork), network),
		made(api.KindSecurityGroup, group, api.ProjectSecurityGroup(api.SecurityGroupID(group))),
	}, nil
}

// projectSpec validates. Only the cluster itself restricts a project.
func projectSpec(_ context.Context, _ api.Meta, old *api.Project, s api.ProjectSpec) (api.ProjectSpec, error) {
	s.Restricted = nil
	if old != nil {
		s.Restricted = old.Spec.Restricted
	}
	return s, api.ValidateProject(s)
}

// projectDeleted returns the commands that delete a project's default network and
// security group with it.
func (h *handlers) projectDeleted(ctx context.Context, p api.Project) (with []api.Command, err error) {
	for _, kind := range []api.Kind{api.KindNetwork, api.KindSecurityGroup} {
		if err := h.each(ctx, api.ListQuery{Kind: kind, Project: p.Meta.ID, Name: api.DefaultName}, func(o api.Object) bool {
			with = append(with, api.Command{Op: api.OpDelete, Kind: kind, ID: o.Meta.ID, Expect: api.AnyRevision})
			return true
		}); err != nil {
			return nil, err
		}
	}
	return with, nil
}
