package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/basalt-gpu/basalt/api"
)

func (w *world) groupTries() []try {
	return []try{
		{"P  a group gives roles beyond its maker's", "refused", w.beyondGroups},
		{"P  a directory reaches users and groups that it did not provision", "not found", w.foreignDirectory},
		{"P  a directory's key does what is not SCIM", "refused: forbidden", w.directoryKey},
	}
}

// beyondGroups tries to give roles by groups that the caller does not have, to users of
// others, and to change the groups of others.
func (w *world) beyondGroups(ctx context.Context) error {
	foe := api.Meta{Organization: w.foe.Meta.ID}
	bad := []api.Code{api.CodeForbidden, api.CodeInvalid, api.CodeNotFound, api.CodeUnauthenticated}
	specs := []api.GroupSpec{
		{Grants: []api.Grant{{Role: api.RoleOperator}}}, {Grants: []api.Grant{{Role: api.RoleReseller, Organization: w.foe.Meta.ID}}},
		{Grants: []api.Grant{{Role: api.RoleAdmin, Organization: w.victim.Meta.ID}}},
		{Grants: []api.Grant{{Role: api.RoleMember, Organization: w.victim.Meta.ID, Project: w.web.Meta.ID}}},
		{Members: []api.UserID{api.UserID(w.canary + "@example.com")}}, {Source: api.GroupScim},
	}
	for _, o := range w.things {
		if o.Kind == "User" {
			specs = append(specs, api.GroupSpec{Members: []api.UserID{api.UserID(o.Meta.ID)}})
		}
	}
	own, err := w.make(ctx, w.admin, "/v1/groups", w.tag+"-"+word(), foe, api.GroupSpec{})
	if err != nil {
		return err
	}
	return each(specs, func(spec api.GroupSpec) error {
		err := w.refused(ctx, w.admin, http.MethodPost, "/v1/groups", body{withName(foe, w.tag+"-"+word()), spec}, bad...)
		return errors.Join(err, w.refused(ctx, w.admin, http.MethodPut, own.at(), body{own.Meta, spec}, bad...))
	})
}

// directoryOf returns a key for the directory of the attacker's organization.
func (w *world) directoryOf(ctx context.Context) (string, error) {
	o, err := w.make(ctx, w.admin, "/v1/api-keys", w.tag+"-"+word(), api.Meta{Organization: w.foe.Meta.ID}, api.APIKeySpec{Role: api.RoleAdmin, Scopes: []string{"scim:write"}})
	return o.Secret, err
}

func (w *world) foreignDirectory(ctx context.Context) error {
	token, err := w.directoryOf(ctx)
	if err != nil {
		return err
	}
	patch := map[string]any{"schemas": []string{"urn:ietf:params:scim:api:messages:2.0:PatchOp"}, "Operations": []any{map[string]any{"op": "replace", "value": map[string]any{"displayName": w.tag, "active": false}}}}
	ask := func(method, path string, content any, want int) error {
		a, err := w.ask(ctx, token, method, "/scim/v2"+path, content)
		if err == nil && a.status != want {
			err = fmt.Errorf("%s %s: %s", method, path, a)
		}
		return err
	}
	for _, o := range w.things {
		paths := map[string]string{"User": "/Users/", "Group": "/Groups/"}
		if paths[o.Kind] == "" {
			continue
		}
		at := paths[o.Kind] + o.Meta.ID
		err := errors.Join(ask(http.MethodGet, at, nil, 404), ask(http.MethodDelete, at, nil, 404), ask(http.MethodPatch, at, patch, 404),
			ask(http.MethodPut, at, map[string]any{"userName": "x@example.com", "displayName": "x"}, 404),
			ask(http.MethodPost, "/Groups", map[string]any{"displayName": w.tag, "members": []any{map[string]any{"value": o.Meta.ID}}}, 400))
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *world) directoryKey(ctx context.Context) error {
	token, err := w.directoryOf(ctx)
	if err != nil {
		return err
	}
	for _, path := range []string{"/v1/users", "/v1/groups", "/v1/api-keys", "/v1/organizations", "/v1/projects", "/v1/audit-events"} {
		if err := w.refused(ctx, token, http.MethodGet, path, nil, api.CodeForbidden); err != nil {
			return err
		}
	}
	for _, who := range w.strangers[1:] { // all except the admin, who manages the users
		a, err := w.ask(ctx, who.token, http.MethodGet, "/scim/v2/Users", nil)
		if err == nil && a.ok() && who.name != string(api.RoleReseller) {
			err = fmt.Errorf("%s reads /scim/v2/Users: %s", who.name, a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
