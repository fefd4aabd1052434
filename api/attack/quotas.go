package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/basalt-gpu/basalt/api"
)

func (w *world) quotaTries() []try {
	return []try{
		{"A6 quotas of an organization that says nothing", "every countable kind has one", w.quotaDefaults},
		{"A6 one more of each kind than the quota", "refused: quota_exceeded", w.beyondQuotas},
		{"A6 many at one moment, one of which fits", "one is made", w.quotaAtOnce},
	}
}

func (w *world) quotaDefaults(ctx context.Context) error {
	q, err := fetch[api.Quota](ctx, w.wire, w.admin, http.MethodGet, w.foe.at()+"/quota", nil)
	if err != nil {
		return err
	}
	return each(slices.Sorted(maps.Keys(api.DefaultQuotas())), func(name string) error {
		if most, limited := q.Limits[name]; !limited || most < 1 {
			return fmt.Errorf("%s has the limit %d (%v)", name, most, limited)
		}
		return nil
	})
}

// beyondQuotas tries to create an object of each kind in an organization with zero
// quotas.
func (w *world) beyondQuotas(ctx context.Context) error {
	org, err := w.make(ctx, w.op, "/v1/organizations", w.tag+"-poor", api.Meta{}, api.OrganizationSpec{})
	if err != nil {
		return err
	}
	project, err := w.make(ctx, w.op, "/v1/projects", w.tag+"-poor", api.Meta{Organization: org.Meta.ID}, api.ProjectSpec{})
	if err != nil {
		return err
	}
	token, err := w.key(ctx, w.tag+"-poor", api.RoleAdmin, api.Meta{Organization: org.Meta.ID})
	if err != nil {
		return err
	}
	if err := w.change(ctx, w.op, org, func(spec map[string]any) {
		none := api.Amounts{}
		for name := range api.DefaultQuotas() {
			none[name] = 0
		}
		spec["quota"] = none
	}); err != nil {
		return err
	}
	whole, within := api.Meta{Organization: org.Meta.ID}, api.Meta{Organization: org.Meta.ID, Project: project.Meta.ID}
	wrong := each([]struct {
		path string
		meta api.Meta
		spec any
	}{
		{"/v1/images", within, api.ImageSpec{Format: api.FormatRaw}}, {"/v1/volumes", within, api.VolumeSpec{SizeBytes: mib}},
		{"/v1/networks", within, api.NetworkSpec{Cidr4: "10.78.0.0/24"}}, {"/v1/security-groups", within, api.SecurityGroupSpec{}},
		{"/v1/projects", whole, api.ProjectSpec{}}, {"/v1/api-keys", whole, api.APIKeySpec{Role: api.RoleBilling}},
		{"/v1/webhooks", whole, api.WebhookSpec{URL: "https://x.example/"}}, {"/v1/identity-providers", whole, api.IdentityProviderSpec{Issuer: "https://x.example/", ClientID: "x"}},
		{"/v1/budgets", whole, map[string]any{"amountMicros": 1}},
	}, func(c struct {
		path string
		meta api.Meta
		spec any
	}) error {
		a, err := w.ask(ctx, token, http.MethodPost, c.path, body{withName(c.meta, w.tag+"-more"), c.spec})
		if err == nil && a.Code != api.CodeQuota && a.Code != api.CodeUnavailable {
			err = fmt.Errorf("%s: %s", c.path, a)
		}
		return err
	})
	u := body{withName(whole, w.tag+"@example.com"), api.UserSpec{}}
	return errors.Join(wrong, w.refused(ctx, token, http.MethodPost, "/v1/users", u, api.CodeQuota))
}

// quotaAtOnce creates many projects concurrently where one more fits.
func (w *world) quotaAtOnce(ctx context.Context) error {
	if err := w.change(ctx, w.op, w.foe, func(spec map[string]any) { spec["quota"] = api.Amounts{"projects": 2} }); err != nil {
		return err
	}
	var mu sync.Mutex
	made, wrong := 0, error(nil)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			_, err := w.makeLocked(ctx, &mu, "/v1/projects", fmt.Sprintf("%s-p%d", w.tag, i), api.Meta{Organization: w.foe.Meta.ID}, api.ProjectSpec{})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				made++
			}
		})
	}
	all.Wait()
	if made != 1 {
		wrong = fmt.Errorf("%d projects were made", made)
	}
	return errors.Join(wrong, w.change(ctx, w.op, w.foe, func(spec map[string]any) { delete(spec, "quota") }))
}

// makeLocked is make for the attacker's admin, safe for concurrent use.
func (w *world) makeLocked(ctx context.Context, mu *sync.Mutex, path, name string, m api.Meta, spec any) (object, error) {
	a, err := w.ask(ctx, w.admin, http.MethodPost, path, body{withName(m, name), spec})
	if err != nil {
		return object{}, err
	}
	mu.Lock()
	defer mu.Unlock()
	return w.taken(a, path)
}
