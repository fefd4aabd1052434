package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

func (w *world) roleTries() []try {
	return []try{
		{"P  roles beyond one's own", "refused", w.beyondRoles},
		{"P  an admin changes its organization's terms", "refused: forbidden", w.ownTerms},
		{"P  a reseller reaches organizations that are not its customers", "refused", w.othersCustomers},
	}
}

// beyondRoles tries, for each role, to create keys and users with roles and scopes that
// the caller does not have.
func (w *world) beyondRoles(ctx context.Context) error {
	victim := api.Meta{Organization: w.victim.Meta.ID}
	foe := api.Meta{Organization: w.foe.Meta.ID}
	return each(w.strangers, func(who caller) error {
		return each([]struct {
			role api.Role
			meta api.Meta
		}{{api.RoleOperator, api.Meta{}}, {api.RoleOperator, foe}, {api.RoleReseller, foe}, {api.RoleAdmin, victim}, {api.RoleBilling, victim},
			{api.RoleMember, api.Meta{Organization: w.victim.Meta.ID, Project: w.web.Meta.ID}}}, func(c struct {
			role api.Role
			meta api.Meta
		}) error {
			bad := []api.Code{api.CodeForbidden, api.CodeInvalid, api.CodeUnauthenticated}
			name := w.tag + "-" + word()
			if err := w.refused(ctx, who.token, http.MethodPost, "/v1/api-keys", body{withName(c.meta, name), api.APIKeySpec{Role: c.role}}, bad...); err != nil {
				return fmt.Errorf("%s makes a key of role %s: %w", who.name, c.role, err)
			}
			grant := api.Grant{Role: c.role, Organization: c.meta.Organization, Project: c.meta.Project}
			u := body{api.Meta{Name: name + "@example.com"}, api.UserSpec{Grants: []api.Grant{grant}}}
			if err := w.refused(ctx, who.token, http.MethodPost, "/v1/users", u, bad...); err != nil {
				return fmt.Errorf("%s makes a user of role %s: %w", who.name, c.role, err)
			}
			return nil
		})
	})
}

func (w *world) ownTerms(ctx context.Context) error {
	now, err := fetch[map[string]any](ctx, w.wire, w.admin, http.MethodGet, w.foe.at(), nil)
	if err != nil {
		return err
	}
	for _, spec := range []map[string]any{
		{"priceBook": w.canary}, {"quota": map[string]int64{"instances": 1 << 30}}, {"billing": map[string]any{"mode": "invoice", "dueDays": 366}},
		{"requireTotp": false}, {"offers": []string{"default"}}, {"parent": w.seller.Meta.ID},
	} {
		if err := w.refused(ctx, w.admin, http.MethodPut, w.foe.at(), map[string]any{"meta": now["meta"], "spec": spec}, api.CodeForbidden); err != nil {
			return err
		}
	}
	pays := map[string]any{"meta": api.Meta{Organization: w.foe.Meta.ID}, "spec": map[string]any{"currency": "EUR", "amountMicros": 1, "reference": w.tag}}
	return w.refused(ctx, w.admin, http.MethodPost, "/v1/payments", pays, api.CodeForbidden)
}

func (w *world) othersCustomers(ctx context.Context) error {
	seller := w.strangers[4].token
	period := "?organization=" + w.victim.Meta.ID + "&from=2026-01-01T00:00:00Z&to=" + time.Now().UTC().Format("2006-01-02T15:04:05Z")
	gone := []api.Code{api.CodeNotFound, api.CodeInvalid, api.CodeForbidden}
	for _, path := range []string{"/v1/wallet", "/v1/ledger", "/v1/invoice-preview", "/v1/usage/export", "/v1/usage", "/v1/audit-events", "/v1/organizations/" + w.victim.Meta.ID + "/quota"} {
		if err := w.refused(ctx, seller, http.MethodGet, path+period, nil, gone...); err != nil {
			return err
		}
	}
	for path, content := range map[string]any{
		"/v1/projects":      body{api.Meta{Name: w.tag + "-in", Organization: w.victim.Meta.ID}, api.ProjectSpec{}},
		"/v1/payments":      map[string]any{"meta": api.Meta{Organization: w.victim.Meta.ID}, "spec": map[string]any{"currency": "EUR", "amountMicros": 1, "reference": w.tag}},
		"/v1/organizations": body{api.Meta{Name: w.tag + "-sub"}, api.OrganizationSpec{Parent: api.OrganizationID(w.victim.Meta.ID)}},
	} {
		if err := w.refused(ctx, seller, http.MethodPost, path, content, gone...); err != nil {
			return err
		}
	}
	return w.refused(ctx, seller, http.MethodPost, "/v1/organizations",
		body{api.Meta{Name: w.tag + "-cheap"}, api.OrganizationSpec{PriceBook: api.PriceBookID(w.canary)}}, api.CodeInvalid)
}
