package cli

import (
	"bufio"
	"fmt"

	"github.com/spf13/cobra"
)

func (a *App) totpCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "totp", Short: "Manage your two-factor authentication"}
	cmd.AddCommand(&cobra.Command{
		Use: "enable", Short: "Enable two-factor authentication with an authenticator app", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			secret, err := a.api.BeginTOTP(cmd.Context())
			if err != nil {
				return err
			}
			fmt.Fprintf(a.Out, "Add this to your authenticator app:\nsecret: %s\n%s\n\n", secret.Secret, secret.URI)
			code, err := a.secret(bufio.NewReader(a.In), "Code shown by the app: ")
			if err != nil {
				return err
			}
			codes, err := a.api.ConfirmTOTP(cmd.Context(), code)
			if err != nil {
				return err
			}
			fmt.Fprintln(a.Out, "Two-factor authentication is on. Store these recovery codes in case you lose your authenticator; each can be used once:")
			for _, c := range codes.Codes {
				fmt.Fprintln(a.Out, c)
			}
			return nil
		},
	}, &cobra.Command{
		Use: "disable", Short: "Disable two-factor authentication", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			in := bufio.NewReader(a.In)
			password, err := a.secret(in, "Password: ")
			if err != nil {
				return err
			}
			code, err := a.secret(in, "One-time or recovery code: ")
			if err != nil {
				return err
			}
			if _, err := a.api.DisableTOTP(cmd.Context(), password, code); err != nil {
				return err
			}
			fmt.Fprintln(a.Out, "Two-factor authentication is off.")
			return nil
		},
	})
	return cmd
}
