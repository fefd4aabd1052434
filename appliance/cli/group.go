package cli

import (
	"cmp"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
)

func (a *App) groups() *kind[api.Group] {
	return &kind[api.Group]{
		app: a, noun: "group", about: "Groups of users who have roles together",
		refs:    []api.Kind{api.KindOrganization, api.KindProject},
		columns: []string{"ORGANIZATION", "DISPLAY NAME", "ROLES", "MEMBERS", "SOURCE"},
		row: func(g api.Group) []string {
			return []string{a.named(g.Meta.Organization), g.Spec.DisplayName, a.grantWords(g.Spec.Grants), strconv.Itoa(len(g.Spec.Members)), string(g.Spec.Source)}
		},
		flags: groupFlags,
	}
}

func groupFlags(f *pflag.FlagSet) func(*api.Group) error {
	display := f.String("display-name", "", "display name")
	grants := f.StringArray("grant", nil, "ROLE, or ROLE@ORGANIZATION/PROJECT for members and viewers; replaces the previous ones; repeatable")
	members := f.StringSlice("member", nil, "e-mail addresses or IDs of users of the organization; replaces the previous ones")
	provider := f.String("identity-provider", "", "identity provider whose claims decide the members at each sign-in; default: --member does; only at the creation")
	external := f.String("external-id", "", "value in the provider's groups claim; default: the name of the group")
	return func(g *api.Group) error {
		s := &g.Spec
		s.DisplayName, s.ExternalID = cmp.Or(*display, s.DisplayName), cmp.Or(*external, s.ExternalID)
		if *provider != "" {
			s.Source, s.IdentityProvider = api.GroupIdentityProvider, api.IdentityProviderID(*provider)
		}
		if f.Changed("grant") {
			s.Grants = nil
		}
		for _, text := range *grants {
			s.Grants = append(s.Grants, grantOf(text))
		}
		if f.Changed("member") {
			s.Members = nil
		}
		for _, m := range *members {
			s.Members = append(s.Members, api.UserID(m))
		}
		return nil
	}
}
