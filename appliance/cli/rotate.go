package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// rotate builds the command that replaces an object's secret and prints the new one.
func rotate[T any](k *kind[T], then, keeps string, call func(a *client.API, ctx context.Context, id string, keepSeconds int64) (T, error)) *cobra.Command {
	cmd := &cobra.Command{Use: "rotate NAME|ID", Short: "Create a new secret; " + then, Args: cobra.ExactArgs(1)}
	keep := cmd.Flags().Duration("keep", 24*time.Hour, keeps)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o, err := k.get(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if o, err = call(k.app.api, cmd.Context(), api.MetaOf(&o).ID, int64(*keep/time.Second)); err != nil {
			return err
		}
		k.made(o)
		return k.printOne(cmd.Context(), o)
	}
	return cmd
}
