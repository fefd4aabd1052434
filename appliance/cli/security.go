package cli

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
)

func (a *App) securitySettingsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "security-settings", Short: "Roles that need two-factor authentication everywhere"}
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
			"organization. Until they have set one up, they can do nothing else. API keys and identity providers are not affected. For operators.",
		Example: "  basalt security-settings set --require-second-factor operator,reseller,admin\n  basalt security-settings set --require-second-factor ''"}
	roles := cmd.Flags().StringSlice("require-second-factor", nil, "roles; replaces the previous ones; empty: only as organizations require")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !cmd.Flags().Changed("require-second-factor") {
			return usagef("nothing to change: give --require-second-factor")
		}
		s, err := a.api.SecuritySettings(cmd.Context())
		if err != nil {
			return err
		}
		s.RequireSecondFactor = nil
		for _, r := range *roles {
			s.RequireSecondFactor = append(s.RequireSecondFactor, api.Role(r))
		}
		if s, err = a.api.UpdateSecuritySettings(cmd.Context(), s); err != nil {
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
		return table{{"REQUIRE SECOND FACTOR"}, {cmp.Or(strings.Join(roles, ", "), "as organizations require")}}
	})
}
