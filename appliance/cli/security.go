package cli

import (
	"cmp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

func (a *App) securitySettingsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "security-settings", Short: "Two-factor authentication and support access, for the whole cluster"}
	cmd.AddCommand(&cobra.Command{Use: "show", Short: "Show the security settings", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.api.SecuritySettings(cmd.Context())
			if err != nil {
				return err
			}
			return a.printSecurity(s)
		},
	}, a.securitySettingsSet())
	return cmd
}

func (a *App) securitySettingsSet() *cobra.Command {
	cmd := &cobra.Command{Use: "set", Short: "Change the security settings", Args: cobra.NoArgs,
		Long: "Users with one of the roles who sign in with a password need two-factor authentication or a passkey, in every\n" +
			"organization. Until they have set one up, they can do nothing else. API keys and identity providers are not affected.\n\n" +
			"If consent is required, operators and resellers enter instances of other organizations (console, shell, SSH,\n" +
			"apps, exec) only while the organization has a support grant. For operators.",
		Example: "  basalt security-settings set --require-second-factor operator,reseller,admin\n  basalt security-settings set --require-second-factor ''"}
	roles := cmd.Flags().StringSlice("require-second-factor", nil, "roles; replaces the previous ones; empty: only as organizations require")
	consent := cmd.Flags().Bool("require-support-consent", false, "whether operators and resellers need a support grant to enter instances of other organizations")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		given := cmd.Flags().Changed
		if !given("require-second-factor") && !given("require-support-consent") {
			return usagef("nothing to change: give --require-second-factor or --require-support-consent")
		}
		s, err := a.api.SecuritySettings(cmd.Context())
		if err != nil {
			return err
		}
		was := s
		if given("require-second-factor") {
			s.RequireSecondFactor = nil
			for _, r := range *roles {
				s.RequireSecondFactor = append(s.RequireSecondFactor, api.Role(r))
			}
		}
		if given("require-support-consent") {
			s.RequireSupportConsent = *consent
		}
		if s, err = a.api.PatchSecuritySettings(cmd.Context(), client.MergePatch(was, s)); err != nil {
			return err
		}
		return a.printSecurity(s)
	}
	return cmd
}

func (a *App) printSecurity(s api.SecuritySettings) error {
	return a.print(s, func() table {
		roles := make([]string, len(s.RequireSecondFactor))
		for i, r := range s.RequireSecondFactor {
			roles[i] = string(r)
		}
		return table{{"REQUIRE SECOND FACTOR", "SUPPORT CONSENT"}, {cmp.Or(strings.Join(roles, ", "), "as organizations require"), onOff(s.RequireSupportConsent)}}
	})
}

func (a *App) supportGrants() *kind[api.SupportGrant] {
	k := &kind[api.SupportGrant]{
		app: a, noun: "support-grant", about: "Consents that support may enter an organization's instances",
		refs:    []api.Kind{api.KindOrganization},
		columns: []string{"ORGANIZATION", "EXPIRES", "REASON"},
		row: func(g api.SupportGrant) []string {
			expires := formatTime(g.Spec.ExpiresAt)
			if !g.Allows(a.Now()) {
				expires = "expired"
			}
			return []string{a.named(g.Meta.Organization), expires, g.Spec.Reason}
		},
		flags: func(f *pflag.FlagSet) func(*api.SupportGrant) error {
			lasts := f.Duration("expires-in", 24*time.Hour, "how long support may enter, at most 720h")
			reason := f.String("reason", "", "why, for example the number of a ticket")
			return func(g *api.SupportGrant) error {
				g.Spec = api.SupportGrantSpec{ExpiresAt: a.Now().Add(*lasts).UTC().Truncate(time.Second), Reason: *reason}
				return nil
			}
		},
	}
	k.more = []*cobra.Command{k.createCommand(), k.deleteCommand()}
	return k
}
