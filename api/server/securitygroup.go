package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// securityGroupSpec turns names of groups into ids and validates.
func (h *handlers) securityGroupSpec(ctx context.Context, m api.Meta, s api.SecurityGroupSpec) (api.SecurityGroupSpec, error) {
	s.Rules = slices.Clone(s.Rules)
	if err := api.ValidateSecurityGroup(s); err != nil {
		return s, err
	}
	for i, r := range s.Rules {
		switch r.Group {
		case "":
		case api.SelfGroup, api.SecurityGroupID(m.ID):
			s.Rules[i].Group = api.SecurityGroupID(m.ID)
		default:
			_, o, err := sibling[api.SecurityGroup](ctx, h, api.KindSecurityGroup, m, fmt.Sprintf("spec.rules[%d].group", i), string(r.Group))
			if err != nil {
				return s, err
			}
			s.Rules[i].Group = api.SecurityGroupID(o.Meta.ID)
		}
	}
	return s, nil
}

// ListSecurityGroups pages through what the caller sees.
func (h *handlers) ListSecurityGroups(ctx context.Context, r in[api.ListSecurityGroupsParams, none]) (*page[api.SecurityGroup], error) {
	p, err := list[api.SecurityGroup](ctx, h, api.KindSecurityGroup, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name, search: r.Params.Search, sort: r.Params.Sort, organization: r.Params.Organization, project: r.Params.Project})
	return &p, err
}

// CreateSecurityGroup makes one.
func (h *handlers) CreateSecurityGroup(ctx context.Context, r in[api.CreateSecurityGroupParams, api.SecurityGroup]) (*api.SecurityGroup, error) {
	m, err := h.place(ctx, api.KindSecurityGroup, r.Body.Meta)
	if err != nil {
		return nil, err
	}
	m.ID = newID(api.KindSecurityGroup)
	spec, err := h.securityGroupSpec(ctx, m, r.Body.Spec)
	if err != nil {
		return nil, err
	}
	o, err := create[api.SecurityGroup](ctx, h, api.KindSecurityGroup, m.ID, m, spec, r.Params.IdempotencyKey)
	return &o, err
}

// GetSecurityGroup by id or name.
func (h *handlers) GetSecurityGroup(ctx context.Context, r in[api.GetSecurityGroupParams, none]) (*api.SecurityGroup, error) {
	o, err := get[api.SecurityGroup](ctx, h, api.KindSecurityGroup, r.ID, r.Params.Organization, r.Params.Project)
	return &o, err
}

// UpdateSecurityGroup changes name, labels and spec.
func (h *handlers) UpdateSecurityGroup(ctx context.Context, r in[none, api.SecurityGroup]) (*api.SecurityGroup, error) {
	o, err := update(ctx, h, api.KindSecurityGroup, r.ID, r.Body.Meta, func(old api.SecurityGroup) (any, error) {
		return h.securityGroupSpec(ctx, old.Meta, r.Body.Spec)
	})
	return &o, err
}

// DeleteSecurityGroup deletes one that nothing uses.
func (h *handlers) DeleteSecurityGroup(ctx context.Context, r in[none, none]) (*api.SecurityGroup, error) {
	o, err := remove[api.SecurityGroup](ctx, h, api.KindSecurityGroup, r.ID)
	return &o, err
}
