package server

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/accessreview"
)

const (
	defaultUnusedDays = 90
	maxUnusedDays     = 3650
)

// ListAccess pages through the review of the users and API keys that the caller may
// list. It reads all of them for each page.
func (h *handlers) ListAccess(ctx context.Context, r in[api.ListAccessParams, none]) (*api.AccessReview, error) {
	q, err := h.accessQuery(r.Params)
	if err != nil {
		return nil, err
	}
	review, err := accessreview.New(q)
	if err != nil {
		return nil, fmt.Errorf("select the access to review: %w", err)
	}
	if q.Kind != api.KindAPIKey {
		err = eachListed(ctx, h, api.KindGroup, r.Params.Organization, review.AddGroup)
	}
	if err == nil && q.Kind != api.KindAPIKey {
		err = eachListed(ctx, h, api.KindUser, r.Params.Organization, review.AddUser)
	}
	if err == nil && q.Kind != api.KindUser {
		err = eachListed(ctx, h, api.KindAPIKey, r.Params.Organization, review.AddKey)
	}
	if err != nil {
		return nil, err
	}
	out := review.Page()
	return &out, h.nameAccess(ctx, out.Items)
}

// accessQuery checks the parameters of a review.
func (h *handlers) accessQuery(p api.ListAccessParams) (accessreview.Query, error) {
	now, days := h.opts.Now().UTC(), cmp.Or(p.UnusedDays, defaultUnusedDays)
	q := accessreview.Query{Now: now, Since: now.AddDate(0, 0, -days), Search: p.Search, Kind: p.Kind, Role: p.Role, Finding: p.Finding,
		Limit: cmp.Or(p.Limit, maxLimit), Continue: p.Continue}
	switch {
	case q.Limit < 1 || q.Limit > maxLimit:
		return q, api.Errorf(api.CodeInvalid, "must be between 1 and %d", maxLimit).At("limit")
	case days < 1 || days > maxUnusedDays:
		return q, api.Errorf(api.CodeInvalid, "must be between 1 and %d", maxUnusedDays).At("unusedDays")
	case utf8.RuneCountInString(strings.TrimSpace(p.Search)) > maxSearch:
		return q, api.Errorf(api.CodeInvalid, "must have at most %d characters", maxSearch).At("search")
	}
	return q, nil
}

// eachListed calls f for each object of a kind that a list would contain.
func eachListed[T any](ctx context.Context, h *handlers, kind api.Kind, organization string, f func(T)) error {
	q := query{organization: organization}
	sq, err := h.ofStore(ctx, kind, q)
	if err != nil {
		return err
	}
	wanted, err := q.wanted(ctx, kind)
	if err != nil {
		return err
	}
	var failed error
	err = h.each(ctx, sq, func(o api.Object) bool {
		if !wanted(o) {
			return true
		}
		var t T
		if t, failed = decode[T](o); failed == nil {
			f(t)
		}
		return failed == nil
	})
	return cmp.Or(failed, err)
}

// nameAccess fills in the names of organizations and projects. One that was deleted
// meanwhile, or that the caller may not see, stays without a name.
func (h *handlers) nameAccess(ctx context.Context, entries []api.AccessEntry) error {
	known := map[string]string{"": ""}
	name := func(kind api.Kind, id string) (string, error) {
		if n, ok := known[id]; ok {
			return n, nil
		}
		o, err := h.opts.Store.Get(ctx, kind, id)
		switch {
		case err != nil && api.CodeOf(err) != api.CodeNotFound:
			return "", fmt.Errorf("read the name of %s %s: %w", kind, id, err)
		case err == nil && who(ctx).Sees(o):
			known[id] = o.Meta.Name
		default:
			known[id] = ""
		}
		return known[id], nil
	}
	var err error
	for i := range entries {
		e := &entries[i]
		if e.OrganizationName, err = name(api.KindOrganization, string(e.Organization)); err != nil {
			return err
		}
		for j := range e.Grants {
			g := &e.Grants[j]
			if g.OrganizationName, err = name(api.KindOrganization, string(g.Organization)); err != nil {
				return err
			}
			if g.ProjectName, err = name(api.KindProject, string(g.Project)); err != nil {
				return err
			}
		}
	}
	return nil
}
