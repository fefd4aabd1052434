package cli

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

func (a *App) groups() *kind[api.Group] {
	k := &kind[api.Group]{
		app: a, noun: "group", about: "Groups of users who have roles together",
		refs:    []api.Kind{api.KindOrganization, api.KindProject},
		columns: []string{"ORGANIZATION", "DISPLAY NAME", "ROLES", "MEMBERS", "SOURCE"},
		row: func(g api.Group) []string {
			return []string{a.named(g.Meta.Organization), g.Spec.DisplayName, a.grantWords(g.Spec.Grants), strconv.Itoa(len(g.Spec.Members)), string(g.Spec.Source)}
		},
		flags: groupFlags,
	}
	k.more = []*cobra.Command{
		memberCommand(k, "add-member", "Add users to a group; other members are kept", func(members []api.UserID, u api.UserID) []api.UserID {
			if slices.Contains(members, u) {
				return members
			}
			return append(members, u)
		}),
		memberCommand(k, "remove-member", "Remove users from a group; other members are kept", func(members []api.UserID, u api.UserID) []api.UserID {
			return slices.DeleteFunc(members, func(m api.UserID) bool { return m == u })
		}),
	}
	return k
}

// memberCommand returns a command that changes single members. The change is repeated on the
// new state if somebody else changes the group at the same time.
func memberCommand(k *kind[api.Group], name, short string, change func([]api.UserID, api.UserID) []api.UserID) *cobra.Command {
	return &cobra.Command{Use: name + " NAME|ID USER…", Short: short, Args: cobra.MinimumNArgs(2),
		Long: "USER is the e-mail address or ID of a user of the group's organization.",
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := k.get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			users := make([]api.UserID, len(args)-1)
			for i, ref := range args[1:] {
				u, err := client.Of[api.User](k.app.api).Get(cmd.Context(), ref, client.Query{Organization: g.Meta.Organization})
				if err != nil {
					return err
				}
				users[i] = api.UserID(u.Meta.ID)
			}
			g, err = k.change(cmd.Context(), g.Meta.ID, func(g *api.Group) error {
				for _, u := range users {
					g.Spec.Members = change(g.Spec.Members, u)
				}
				return nil
			})
			if err != nil {
				return err
			}
			return k.printOne(cmd.Context(), g)
		}}
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
