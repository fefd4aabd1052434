package cli

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

func (a *App) organizations() *kind[api.Organization] {
	return &kind[api.Organization]{
		app: a, kind: api.KindOrganization, noun: "organization", about: "Customers",
		all: (*client.API).Organizations, meta: func(o *api.Organization) *api.Meta { return &o.Meta },
		refs:    []api.Kind{api.KindPriceBook},
		columns: []string{"DISPLAY NAME", "PRICE BOOK"},
		row: func(o api.Organization) []string {
			return []string{o.Spec.DisplayName, cmp.Or(a.named(string(o.Spec.PriceBook)), api.DefaultPriceBook)}
		},
		flags: func(f *pflag.FlagSet) func(*api.Organization) error {
			display := f.String("display-name", "", "what people call it")
			book := f.String("price-book", "", "price book, name or id; the one named default unless given")
			return func(o *api.Organization) error {
				o.Spec.DisplayName = cmp.Or(*display, o.Spec.DisplayName)
				o.Spec.PriceBook = cmp.Or(api.PriceBookID(*book), o.Spec.PriceBook)
				return nil
			}
		},
	}
}

func (a *App) projects() *kind[api.Project] {
	return &kind[api.Project]{
		app: a, kind: api.KindProject, noun: "project", about: "What an organization keeps its resources in", scope: ofOrganization,
		all: (*client.API).Projects, meta: func(p *api.Project) *api.Meta { return &p.Meta },
		refs:    []api.Kind{api.KindOrganization},
		columns: []string{"ORGANIZATION", "DISPLAY NAME"},
		row:     func(p api.Project) []string { return []string{a.named(p.Meta.Organization), p.Spec.DisplayName} },
		flags: func(f *pflag.FlagSet) func(*api.Project) error {
			display := f.String("display-name", "", "what people call it")
			return func(p *api.Project) error {
				p.Spec.DisplayName = cmp.Or(*display, p.Spec.DisplayName)
				return nil
			}
		},
	}
}

func (a *App) apiKeys() *kind[api.APIKey] {
	return &kind[api.APIKey]{
		app: a, kind: api.KindAPIKey, noun: "api-key", about: "Bearer tokens", scope: ofProject,
		all: (*client.API).APIKeys, meta: func(k *api.APIKey) *api.Meta { return &k.Meta },
		refs:    []api.Kind{api.KindOrganization, api.KindProject},
		columns: []string{"ROLE", "ORGANIZATION", "PROJECT", "EXPIRES"},
		row: func(k api.APIKey) []string {
			expires := "never"
			if k.Spec.ExpiresAt != nil {
				expires = formatTime(*k.Spec.ExpiresAt)
			}
			return []string{string(k.Spec.Role), a.named(k.Meta.Organization), a.named(k.Meta.Project), expires}
		},
		made: func(k api.APIKey) {
			if a.flags.output == "table" {
				fmt.Fprintf(a.Out, "token: %s\nIt is shown this once.\n\n", k.Secret)
			}
		},
		flags: func(f *pflag.FlagSet) func(*api.APIKey) error {
			role := f.String("role", "", "operator, admin, member or viewer")
			expires := f.Duration("expires-in", 0, "how long it is valid; for ever unless given")
			return func(k *api.APIKey) error {
				k.Spec.Role = cmp.Or(api.Role(*role), k.Spec.Role)
				if *expires != 0 {
					at := a.Now().Add(*expires).UTC().Truncate(time.Second)
					k.Spec.ExpiresAt = &at
				}
				return nil
			}
		},
	}
}
