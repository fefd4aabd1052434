package server

import (
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// parentOf returns the reseller of an organization, or "". It never changes, so it is
// cached. An organization that cannot be read is treated as having none, which shows
// the caller less.
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

// parentIn returns parentOf for the duration of a request.
func (s *Server) parentIn(ctx context.Context) func(string) string {
	return func(organization string) string { return s.parentOf(ctx, organization) }
}

// paysIn returns a function that returns the price books of an organization, for the
// duration of a request. If they cannot be read there are none.
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

// parent returns the reseller of a new organization, by default the caller's if that is
// a reseller.
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

// maySell refuses an organization at the lowest allowed level, which cannot have
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

// active refuses to create, change or start anything in an organization that is
// suspended, or a seller above it is. Why a seller is suspended is not for its customers.
func (h *handlers) active(ctx context.Context, organization string) error {
	for id := organization; id != ""; id = h.parentOf(ctx, id) {
		o, err := h.opts.Store.Get(ctx, api.KindOrganization, id)
		if api.CodeOf(err) == api.CodeNotFound {
			return nil // leftovers of a deleted organization
		}
		if err != nil {
			return fmt.Errorf("read organization %s: %w", id, err)
		}
		org, err := api.Decode[api.Organization](o)
		if err != nil {
			return err
		}
		if id != organization && (org.Spec.Restricted != nil || org.Spec.Suspended != nil) {
			return api.Errorf(api.CodeForbidden, "nothing can be created or started in this organization, because its seller is suspended or restricted").
				WithHint("it may still read, stop and delete; ask your provider")
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

// suspension returns an organization's new suspension. A reseller cannot lift one by an
// operator, nor one by a reseller above.
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
