package server

import (
	"context"
	"fmt"
	"maps"

	"github.com/basalt-gpu/basalt/api"
)

// amounts returns the quotas that an object with that spec uses, and the limits that it
// sets. Nil means that it has none.
func (h *handlers) amounts(ctx context.Context, spec any) (uses, limits api.Amounts, err error) {
	switch s := spec.(type) {
	case api.InstanceSpec:
		f, err := h.flavor(ctx, string(s.Flavor))
		if err != nil {
			return nil, nil, err
		}
		return s.Uses(f.Spec), nil, nil
	case api.VolumeSpec:
		return s.Uses(), nil, nil
	case api.FloatingIPSpec:
		return s.Uses(), nil, nil
	case api.OrganizationSpec:
		return nil, s.Limits(), nil
	case api.ProjectSpec:
		return nil, s.Limits(), nil
	}
	return nil, nil, nil
}

// noNil returns an empty map for nil, which would mean unchanged.
func noNil(a api.Amounts) api.Amounts {
	if a == nil {
		return api.Amounts{}
	}
	return a
}

// GetOrganizationQuota returns an organization's limits and use.
func (h *handlers) GetOrganizationQuota(ctx context.Context, r in[none, none]) (*api.Quota, error) {
	o, err := get[api.Organization](ctx, h, api.KindOrganization, r.ID, "", "")
	if err != nil {
		return nil, err
	}
	limits := api.DefaultQuotas()
	maps.Copy(limits, o.Spec.Quota)
	q, err := h.quota(ctx, api.KindOrganization, o.Meta.ID, limits)
	return &q, err
}

// GetProjectQuota returns a project's limits and use.
func (h *handlers) GetProjectQuota(ctx context.Context, r in[api.GetProjectQuotaParams, none]) (*api.Quota, error) {
	p, err := get[api.Project](ctx, h, api.KindProject, r.ID, r.Params.Organization, "")
	if err != nil {
		return nil, err
	}
	q, err := h.quota(ctx, api.KindProject, p.Meta.ID, p.Spec.Quota)
	return &q, err
}

func (h *handlers) quota(ctx context.Context, kind api.Kind, id string, limits api.Amounts) (api.Quota, error) {
	uses, err := h.opts.Store.Sums(ctx, kind, id)
	delete(uses, api.QuotaSpend)
	if err != nil {
		return api.Quota{}, fmt.Errorf("read the use of %s %s: %w", kind, id, err)
	}
	return api.Quota{Limits: noNil(maps.Clone(limits)), Uses: noNil(uses)}, nil
}
