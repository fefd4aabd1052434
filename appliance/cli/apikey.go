package cli

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

func (a *App) apiKeys() *kind[api.APIKey] {
	k := &kind[api.APIKey]{
		app: a, noun: "api-key", about: "API keys",

		refs:    []api.Kind{api.KindOrganization, api.KindProject},
		columns: []string{"ROLE", "ORGANIZATION", "PROJECT", "SCOPES", "EXPIRES"},
		row: func(k api.APIKey) []string {
			expires := "never"
			if k.Spec.ExpiresAt != nil {
				expires = formatTime(*k.Spec.ExpiresAt)
			}
			return []string{string(k.Spec.Role), a.named(k.Meta.Organization), a.named(k.Meta.Project), cmp.Or(strings.Join(k.Spec.Scopes, ","), "all"), expires}
		},
		made: a.showToken, secret: true,
		flags: func(f *pflag.FlagSet) func(*api.APIKey) error {
			role := f.String("role", "", "operator, reseller, admin, member, viewer or billing")
			expires := f.Duration("expires-in", 0, "how long it is valid; default: does not expire")
			scopes := f.StringSlice("scope", nil, "limit to these permissions of its role, e.g. instances:read; replaces the previous ones; default: all")
			networks := f.StringSlice("network", nil, "addresses it may be used from, e.g. 192.0.2.0/24; replaces the previous ones; default: anywhere")
			return func(k *api.APIKey) error {
				if f.Changed("scope") {
					k.Spec.Scopes = *scopes
				}
				if f.Changed("network") {
					k.Spec.Networks = *networks
				}
				k.Spec.Role = cmp.Or(api.Role(*role), k.Spec.Role)
				if *expires != 0 {
					at := a.Now().Add(*expires).UTC().Truncate(time.Second)
					k.Spec.ExpiresAt = &at
				}
				return nil
			}
		},
	}
	k.more = []*cobra.Command{rotate(k, "the old one stays valid for a while", "how long the old secret stays valid; 0: not at all", (*client.API).RotateAPIKey)}
	return k
}

func (a *App) showToken(k api.APIKey) {
	if a.flags.output == "table" {
		fmt.Fprintf(a.Out, "token: %s\nSave it now: it is not shown again.\n\n", k.Secret)
	}
}
