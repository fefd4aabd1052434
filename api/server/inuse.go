package server

import (
	"context"
	"encoding/json"

	"github.com/basalt-gpu/basalt/api"
)

// user is a kind whose objects can keep another from being deleted.
type user struct {
	kind  api.Kind
	query func(o api.Object) api.ListQuery
	uses  func(user, o api.Object) bool
}

func anywhere(api.Object) api.ListQuery { return api.ListQuery{} }
func within(o api.Object) api.ListQuery { return api.ListQuery{Project: o.Meta.ID} }
func owned(o api.Object) api.ListQuery  { return api.ListQuery{Organization: o.Meta.ID} }
func always(_, _ api.Object) bool       { return true }

// references are fields that refer to others, of any kind's spec.
type references struct {
	Flavor    string `json:"flavor"`
	Image     string `json:"image"`
	Instance  string `json:"instance"`
	Pool      string `json:"pool"`
	PriceBook string `json:"priceBook"`
	Vgpu      *struct {
		Pool string `json:"pool"`
	} `json:"vgpu"`
}

func refs(o api.Object) references {
	var r references
	_ = json.Unmarshal(o.Spec, &r) // specs are our own; one that is broken refers to nothing
	return r
}

// users of a kind's objects.
var users = map[api.Kind][]user{
	api.KindFlavor: {{api.KindInstance, anywhere, func(u, o api.Object) bool { return refs(u).Flavor == o.Meta.ID }}},
	api.KindImage: {
		{api.KindVolume, anywhere, func(u, o api.Object) bool { return refs(u).Image == o.Meta.ID }},
		{api.KindInstance, anywhere, func(u, o api.Object) bool { return refs(u).Image == o.Meta.ID }},
	},
	api.KindGPUPool: {
		{api.KindInstance, anywhere, func(u, o api.Object) bool { v := refs(u).Vgpu; return v != nil && v.Pool == o.Meta.Name }},
		{api.KindGPU, anywhere, func(u, o api.Object) bool {
			pool := refs(u).Pool
			return pool == o.Meta.Name || pool == "" && o.Meta.Name == api.DefaultPool
		}},
	},
	api.KindPriceBook: {{api.KindOrganization, anywhere, func(u, o api.Object) bool { return refs(u).PriceBook == o.Meta.ID }}},
	api.KindProject: {
		{api.KindInstance, within, always}, {api.KindVolume, within, always}, {api.KindImage, within, always},
		{api.KindAPIKey, within, always},
	},
	api.KindOrganization: {
		{api.KindProject, owned, always}, {api.KindAccount, owned, always}, {api.KindAPIKey, owned, always},
	},
	// A root volume goes with its instance; a data volume is taken off first.
	api.KindVolume: {{api.KindInstance, func(o api.Object) api.ListQuery { return api.ListQuery{Project: o.Meta.Project} },
		func(u, o api.Object) bool { return refs(o).Instance == u.Meta.ID && u.Meta.DeletedAt == nil }}},
}

// unused refuses what something else uses: CodeInUse.
func (h *handlers) unused(ctx context.Context, o api.Object) error {
	for _, u := range users[o.Kind] {
		q := u.query(o)
		q.Kind = u.kind
		var by *api.Object
		if err := h.each(ctx, q, func(x api.Object) bool {
			if u.uses(x, o) {
				by = &x
			}
			return by == nil
		}); err != nil {
			return err
		}
		if by != nil {
			e := api.Errorf(api.CodeInUse, "%s %s is in use", o.Kind, o.Meta.Name)
			if who(ctx).sees(*by) { // never another tenant's name
				e.Message += " by " + string(by.Kind) + " " + by.Meta.Name
			}
			return e.WithHint("delete or change what uses it first")
		}
	}
	return nil
}
