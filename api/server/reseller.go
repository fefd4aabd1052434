package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// parentOf is the reseller of an organization, or none. It does not change, so
// that asking once is enough. What cannot be read has none: it is not seen.
func (s *Server) parentOf(ctx context.Context, organization string) string {
	if parent, ok := s.parents.Load(organization); ok {
		return parent.(string)
	}
	o, err := s.opts.Store.Get(ctx, api.KindOrganization, organization)
	if err != nil {
		return ""
	}
	s.parents.Store(organization, o.Meta.Organization)
	return o.Meta.Organization
}

// parentIn is parentOf while a request lasts.
func (s *Server) parentIn(ctx context.Context) func(string) string {
	return func(organization string) string { return s.parentOf(ctx, organization) }
}

// paysIn returns which price books an organization has to do with, while a request
// lasts. What cannot be read has none.
func (s *Server) paysIn(ctx context.Context) func(string) auth.PriceBooks {
	return func(organization string) auth.PriceBooks {
		nobody := auth.PriceBooks{Own: "none"}
		o, err := s.opts.Store.Get(ctx, api.KindOrganization, organization)
		if err != nil {
			return nobody
		}
		org, err := api.Decode[api.Organization](o)
		if err != nil {
			return nobody
		}
		return auth.PriceBooks{Own: org.Spec.PriceBook, Offers: org.Spec.Offers}
	}
}

// parent is the reseller that a new organization is to be a customer of: the
// caller's own, when that is a reseller.
func (h *handlers) parent(ctx context.Context, ref string) (api.OrganizationID, error) {
	me := who(ctx)
	if ref == "" && me.Role == api.RoleReseller {
		ref = me.Org
	}
	if ref == "" {
		return "", nil
	}
	o, err := h.find(ctx, api.KindOrganization, ref, "", "")
	switch {
	case err != nil:
		return "", at(err, "spec.parent")
	}
	return api.OrganizationID(o.Meta.ID), at(h.maySell(ctx, o.Meta.ID), "spec.parent")
}

// maySell refuses an organization that stands below as many as there may be: it has no
// customers.
func (h *handlers) maySell(ctx context.Context, organization string) error {
	depth := 1
	for id := h.parentOf(ctx, organization); id != "" && depth < api.MaxOrganizationDepth; id = h.parentOf(ctx, id) {
		depth++
	}
	if depth < api.MaxOrganizationDepth {
		return nil
	}
	return api.Errorf(api.CodeInvalid, "organization %s is the customer of a reseller's customer and cannot have customers", organization).
		WithHint("use role admin; at most %d organizations stand above one another", api.MaxOrganizationDepth)
}

// active refuses what an organization that is suspended, or whose reseller is,
// may not do: make, change or start.
func (h *handlers) active(ctx context.Context, organization string) error {
	for id := organization; id != ""; id = h.parentOf(ctx, id) {
		o, err := h.opts.Store.Get(ctx, api.KindOrganization, id)
		if api.CodeOf(err) == api.CodeNotFound {
			return nil // what is left of one that is gone
		}
		if err != nil {
			return err
		}
		org, err := api.Decode[api.Organization](o)
		if err != nil {
			return err
		}
		if r := org.Spec.Restricted; r != nil {
			return api.Errorf(api.CodeForbidden, "organization %s cannot create or start anything: %s", o.Meta.Name, r.Reason).
				WithHint("running instances are not affected; `basalt wallet` shows what is owed")
		}
		if s := org.Spec.Suspended; s != nil {
			return api.Errorf(api.CodeForbidden, "organization %s is suspended: %s", o.Meta.Name, orNone(s.Reason)).
				WithHint("it may still read, stop and delete; ask your provider")
		}
	}
	return nil
}

func orNone(reason string) string {
	if reason == "" {
		return "no reason was given"
	}
	return reason
}

// suspension is what an organization's suspension becomes. What an operator has
// suspended no reseller resumes, nor one below what the reseller above it has.
func (h *handlers) suspension(ctx context.Context, old, s *api.OrganizationSuspension) (*api.OrganizationSuspension, error) {
	by := who(ctx).Role
	switch {
	case old != nil && s != nil && s.Reason == old.Reason:
		return old, nil
	case old != nil && old.By != by && by != api.RoleOperator:
		return nil, api.Errorf(api.CodeForbidden, "suspended by an operator: only an operator may resume it").At("spec.suspended")
	case old != nil && by != api.RoleOperator && old.ByOrganization != "" && !who(ctx).Reaches(old.ByOrganization, ""):
		return nil, api.Errorf(api.CodeForbidden, "suspended by your reseller: only that one or an operator may resume it").At("spec.suspended")
	case s == nil:
		return nil, nil
	}
	return &api.OrganizationSuspension{Reason: s.Reason, By: by, ByOrganization: who(ctx).Org}, nil
}
