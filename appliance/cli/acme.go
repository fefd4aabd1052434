package cli

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

func (a *App) acmeSettingsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "acme-settings", Short: "How certificates are requested for the host names of portals"}
	cmd.AddCommand(&cobra.Command{
		Use: "show", Short: "Show the settings, and the certificate of the cluster's portal", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.api.ACMESettings(cmd.Context())
			if err != nil {
				return err
			}
			return a.printACME(s)
		},
	}, a.acmeSettingsSet())
	return cmd
}

func (a *App) acmeSettingsSet() *cobra.Command {
	cmd := &cobra.Command{Use: "set", Short: "Change the settings; others are kept", Args: cobra.NoArgs,
		Long: "Certificates are requested for the address of the portal (basalt mail set --portal-url) and for approved portal domains.\n" +
			"Connections to port 443 of these names must reach the cluster. For operators.",
		Example: "  basalt acme-settings set --enable --accept-terms --directory https://acme-v02.api.letsencrypt.org/directory --email ops@example.com"}
	f := cmd.Flags()
	enable, disable := f.Bool("enable", false, "request and renew certificates"), f.Bool("disable", false, "request none; those that were issued are used until they expire")
	directory := f.String("directory", "", "address of the directory of the certificate authority")
	accept := f.Bool("accept-terms", false, "accept the terms of the certificate authority")
	email := f.String("email", "", "address at which the certificate authority may contact you")
	cmd.MarkFlagsMutuallyExclusive("enable", "disable")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := a.api.ACMESettings(cmd.Context())
		if err != nil {
			return err
		}
		was := s
		if *enable || *disable {
			s.Enabled = *enable
		}
		for flag, set := range map[string]func(){
			"directory": func() { s.DirectoryURL = *directory }, "accept-terms": func() { s.AcceptTerms = *accept }, "email": func() { s.Email = *email },
		} {
			if f.Changed(flag) {
				set()
			}
		}
		if s, err = a.api.PatchACMESettings(cmd.Context(), client.MergePatch(was, s)); err != nil {
			return err
		}
		return a.printACME(s)
	}
	return cmd
}

func (a *App) printACME(s api.ACMESettings) error {
	return a.print(s, func() table {
		state := "disabled"
		if s.Enabled {
			state = "enabled"
		}
		return table{{"STATE", "DIRECTORY", "E-MAIL", "HOST NAME", "CERTIFICATE"}, {state, s.DirectoryURL, s.Email, s.Status.HostName, cmp.Or(a.requestedCertificate(s.Status), "none")}}
	})
}

// requestedCertificate describes a certificate that the cluster requested; empty: it has not.
func (a *App) requestedCertificate(st api.CertificateStatus) string {
	text := ""
	if st.ExpiresAt != nil && a.Now().Before(*st.ExpiresAt) {
		text = "until " + formatTime(*st.ExpiresAt)
	}
	for _, c := range st.Conditions {
		if c.Message != "" {
			text = cmp.Or(text, "none") + ": " + c.Message
		}
	}
	return text
}
