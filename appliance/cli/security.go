package cli

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

func (a *App) securitySettingsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "security-settings", Short: "Two-factor authentication, support access and encryption between nodes, for the whole cluster"}
	cmd.AddCommand(&cobra.Command{Use: "show", Short: "Show the security settings", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.api.SecuritySettings(cmd.Context())
			if err != nil {
				return err
			}
			return a.printSecurity(s)
		},
	}, a.securitySettingsSet(), a.rotateTunnelKeys())
	return cmd
}

func (a *App) securitySettingsSet() *cobra.Command {
	cmd := &cobra.Command{Use: "set", Short: "Change the security settings", Args: cobra.NoArgs,
		Long: "Users with one of the roles who sign in with a password need two-factor authentication or a passkey, in every\n" +
			"organization. Until they have set one up, they can do nothing else. API keys and identity providers are not affected.\n\n" +
			"If consent is required, operators and resellers enter instances of other organizations (console, shell, SSH,\n" +
			"apps, exec) only while the organization has a support grant.\n\n" +
			"If tunnels are encrypted, the nodes send the packets of instance networks to each other with WireGuard. They change\n" +
			"over together, as soon as all of them are ready: `basalt node show` has the condition EncryptionReady, and what it\n" +
			"waits for. For operators.",
		Example: "  basalt security-settings set --require-second-factor operator,reseller,admin\n  basalt security-settings set --require-second-factor ''\n  basalt security-settings set --encrypt-tunnels"}
	roles := cmd.Flags().StringSlice("require-second-factor", nil, "roles; replaces the previous ones; empty: only as organizations require")
	consent := cmd.Flags().Bool("require-support-consent", false, "whether operators and resellers need a support grant to enter instances of other organizations")
	encrypt := cmd.Flags().Bool("encrypt-tunnels", false, "whether the nodes encrypt the packets of instance networks between each other")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		given := cmd.Flags().Changed
		if !given("require-second-factor") && !given("require-support-consent") && !given("encrypt-tunnels") {
			return usagef("nothing to change: give --require-second-factor, --require-support-consent or --encrypt-tunnels")
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
		if given("encrypt-tunnels") {
			s.EncryptTunnels = *encrypt
		}
		if s, err = a.api.PatchSecuritySettings(cmd.Context(), client.MergePatch(was, s)); err != nil {
			return err
		}
		return a.printSecurity(s)
	}
	return cmd
}

func (a *App) rotateTunnelKeys() *cobra.Command {
	return &cobra.Command{Use: "rotate-tunnel-keys", Short: "Have all nodes create new keys for encrypted tunnels", Args: cobra.NoArgs,
		Long: "Every node creates another key pair. The tunnels use them as soon as all nodes are ready, and the old ones are\n" +
			"deleted. Nothing is interrupted. For operators.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.api.SecuritySettings(cmd.Context())
			if err != nil {
				return err
			}
			if !s.EncryptTunnels {
				return usagef("tunnels are not encrypted, and have no keys: basalt security-settings set --encrypt-tunnels")
			}
			was := s
			s.TunnelKeyRotation++
			if s, err = a.api.PatchSecuritySettings(cmd.Context(), client.MergePatch(was, s)); err != nil {
				return err
			}
			return a.printSecurity(s)
		}}
}

func (a *App) printSecurity(s api.SecuritySettings) error {
	return a.print(s, func() table {
		roles := make([]string, len(s.RequireSecondFactor))
		for i, r := range s.RequireSecondFactor {
			roles[i] = string(r)
		}
		return table{{"REQUIRE SECOND FACTOR", "SUPPORT CONSENT", "ENCRYPT TUNNELS", "TUNNEL KEY ROTATIONS"}, {cmp.Or(strings.Join(roles, ", "), "as organizations require"), onOff(s.RequireSupportConsent), onOff(s.EncryptTunnels), strconv.FormatInt(s.TunnelKeyRotation, 10)}}
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
