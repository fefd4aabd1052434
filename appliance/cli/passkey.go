package cli

import (
	"bufio"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
)

func (a *App) passkeyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "passkey", Short: "Manage your own passkeys",
		Long: "Passkeys are added in the portal, by a browser, and sign in there."}
	cmd.AddCommand(&cobra.Command{
		Use: "list", Short: "List your own passkeys", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := a.api.Passkeys(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(list, func() table {
				rows := table{{"NAME", "SITE", "ADDED", "LAST USED"}}
				for _, p := range list.Items {
					rows = append(rows, []string{p.Name, p.Site, formatTime(p.CreatedAt), timeOr(p.UsedAt, "never")})
				}
				return rows
			})
		},
	}, &cobra.Command{
		Use: "delete NAME", Short: "Delete one of your own passkeys", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := a.api.Passkeys(cmd.Context())
			if err != nil {
				return err
			}
			i := slices.IndexFunc(list.Items, func(p api.Passkey) bool { return p.Name == args[0] || p.ID == args[0] })
			if i < 0 {
				return api.Errorf(api.CodeNotFound, "passkey %q does not exist", args[0]).WithHint("basalt passkey list")
			}
			password, err := a.secret(bufio.NewReader(a.In), "Password: ")
			if err != nil {
				return err
			}
			gone, err := a.api.DeletePasskey(cmd.Context(), list.Items[i].ID, password)
			if err == nil {
				fmt.Fprintf(a.Out, "Passkey %s is deleted.\n", gone.Name)
			}
			return err
		},
	})
	return cmd
}
