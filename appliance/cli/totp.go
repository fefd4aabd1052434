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
			fmt.Fprintf(a.Out, "Give this to your authenticator:\nsecret: %s\n%s\n\n", secret.Secret, secret.URI)
			code, err := a.secret(bufio.NewReader(a.In), "The code that it shows: ")
			if err != nil {
				return err
			}
			codes, err := a.api.ConfirmTOTP(cmd.Context(), code)
			if err != nil {
				return err
			}
			fmt.Fprintln(a.Out, "One-time codes are on. Each of these is good once, should the authenticator be lost:")
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
			fmt.Fprintln(a.Out, "One-time codes are off.")
			return nil
		},
	})
	return cmd
}
