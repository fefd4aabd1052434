package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

func (w *world) scopeTries() []try {
	return []try{
		{"P  a key makes, changes and renews wider ones", "refused: forbidden", w.widerKeys},
		{"P  a key of a scope does what is in none", "refused: forbidden", w.outOfScope},
		{"A3 forged X-Forwarded-For and its like", "a key of other networks stays refused", w.forgedAddresses},
		{"A3 forged addresses in the audit trail", "it has the real one", w.forgedTrail},
	}
}

// narrow returns a key that may create others within its scopes, networks and lifetime.
func (w *world) narrow(ctx context.Context) (string, api.APIKeySpec, error) {
	end := time.Now().UTC().Add(time.Hour).Truncate(time.Second)
	spec := api.APIKeySpec{Role: api.RoleAdmin, Scopes: []string{"api-keys:write", "instances:read"}, Networks: []string{"0.0.0.0/0", "::/0"}, ExpiresAt: &end}
	o, err := w.make(ctx, w.op, "/v1/api-keys", w.tag+"-"+word(), api.Meta{Organization: w.foe.Meta.ID}, spec)
	return o.Secret, spec, err
}

func (w *world) widerKeys(ctx context.Context) error {
	token, spec, err := w.narrow(ctx)
	if err != nil {
		return err
	}
	own, err := w.make(ctx, token, "/v1/api-keys", w.tag+"-"+word(), api.Meta{Organization: w.foe.Meta.ID}, spec)
	if err != nil {
		return err
	}
	later := spec.ExpiresAt.Add(time.Hour)
	return each([]func(*api.APIKeySpec){
		func(s *api.APIKeySpec) { s.Scopes = nil },
		func(s *api.APIKeySpec) { s.Scopes = []string{"instances:write"} },
		func(s *api.APIKeySpec) { s.Scopes = []string{"users:read"} },
		func(s *api.APIKeySpec) { s.Networks = nil },
		func(s *api.APIKeySpec) { s.ExpiresAt = nil },
		func(s *api.APIKeySpec) { s.ExpiresAt = &later },
	}, func(widen func(*api.APIKeySpec)) error {
		wide := spec
		widen(&wide)
		content := body{api.Meta{Name: w.tag + "-" + word(), Organization: w.foe.Meta.ID}, wide}
		if err := w.refused(ctx, token, http.MethodPost, "/v1/api-keys", content, api.CodeForbidden); err != nil {
			return err
		}
		now, err := fetch[object](ctx, w.wire, w.op, http.MethodGet, own.at(), nil)
		if err != nil {
			return err
		}
		if err := w.refused(ctx, token, http.MethodPut, own.at(), body{now.Meta, wide}, api.CodeForbidden); err != nil {
			return err
		}
		other, err := w.make(ctx, w.op, "/v1/api-keys", w.tag+"-"+word(), api.Meta{Organization: w.foe.Meta.ID}, wide)
		if err != nil {
			return err
		}
		return errors.Join(w.refused(ctx, token, http.MethodPost, other.at()+"/rotate", map[string]any{}, api.CodeForbidden), w.drop(ctx, other))
	})
}

func (w *world) outOfScope(ctx context.Context) error {
	token, _, err := w.narrow(ctx)
	if err != nil {
		return err
	}
	all, err := operations()
	if err != nil {
		return err
	}
	allowed := map[string]bool{"Whoami": true, "Watch": true, "ListInstances": true, "ListFlavors": true, "ListApps": true, "ListOffers": true, "ListAPIKeys": true, "CreateAPIKey": true,
		// Operations that need no key.
		"GetVersion": true, "GetHealth": true, "GetBranding": true, "GetLogo": true, "Login": true, "SetPassword": true, "RequestPasswordReset": true, "GetSignUp": true, "RequestSignUp": true, "FinishSignUp": true, "ReceivePaymentEvent": true, "LoginWithLink": true,
		"ListLoginProviders": true, "BeginOIDCLogin": true, "FinishOIDCLogin": true, "GetSAMLMetadata": true, "ReceiveSAMLResponse": true, "BeginPasskeyLogin": true, "FinishPasskeyLogin": true}
	return each(all, func(op operation) error {
		if allowed[op.id] || strings.Contains(op.path, "{") {
			return nil
		}
		a, err := w.ask(ctx, token, op.method, op.path, map[string]any{})
		if err == nil && a.Code != api.CodeForbidden {
			err = fmt.Errorf("%s: %s", op.id, a)
		}
		return err
	})
}

// forgers are headers that proxies set, and any client can forge.
var forgers = []string{"X-Forwarded-For", "Forwarded", "X-Real-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "X-Client-Ip", "X-Originating-Ip", "X-Cluster-Client-Ip"}

const elsewhere = "192.0.2.77"

func forged(header string) []string {
	if header == "Forwarded" {
		return []string{header, "for=" + elsewhere}
	}
	return []string{header, elsewhere}
}

func (w *world) forgedAddresses(ctx context.Context) error {
	o, err := w.make(ctx, w.op, "/v1/api-keys", w.tag+"-office", api.Meta{Organization: w.foe.Meta.ID},
		api.APIKeySpec{Role: api.RoleAdmin, Networks: []string{"192.0.2.0/24"}})
	if err != nil {
		return err
	}
	return each(forgers, func(header string) error {
		a, err := w.ask(ctx, o.Secret, http.MethodGet, "/v1/whoami", nil, forged(header)...)
		if err == nil && a.Code != api.CodeForbidden {
			err = fmt.Errorf("with %s: %s", header, a)
		}
		return err
	})
}

func (w *world) forgedTrail(ctx context.Context) error {
	for _, header := range forgers {
		content := body{api.Meta{Name: w.tag + "-" + word()}, api.ProjectSpec{}}
		a, err := w.ask(ctx, w.admin, http.MethodPost, "/v1/projects", content, forged(header)...)
		if err != nil {
			return err
		}
		o, err := w.taken(a, "/v1/projects")
		if err != nil {
			return err
		}
		if err := w.drop(ctx, o); err != nil {
			return err
		}
	}
	trail, err := fetch[api.AuditEventList](ctx, w.wire, w.admin, http.MethodGet, "/v1/audit-events", nil)
	if err != nil {
		return err
	}
	for _, e := range trail.Items {
		if e.From == elsewhere {
			return fmt.Errorf("event %d is from %s", e.Seq, e.From)
		}
	}
	if len(trail.Items) < len(forgers) {
		return fmt.Errorf("the trail has %d events, want at least %d", len(trail.Items), len(forgers))
	}
	return nil
}
