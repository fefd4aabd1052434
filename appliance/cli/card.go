package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// cards describes the cards on file.
func (a *App) cards() *kind[api.Card] {
	k := &kind[api.Card]{
		app: a, noun: "card", about: "Payment cards that are stored at the payment provider",

		refs:    []api.Kind{api.KindOrganization},
		columns: []string{"ORGANIZATION", "CARD", "EXPIRES", "DEFAULT", "STATE", "NOTE"},
		row: func(c api.Card) []string {
			expires, standard := "", ""
			if c.Status.ExpiryYear > 0 {
				expires = fmt.Sprintf("%04d-%02d", c.Status.ExpiryYear, c.Status.ExpiryMonth)
			}
			if c.Status.Default {
				standard = "yes"
			}
			return []string{a.named(c.Meta.Organization), strings.TrimSpace(c.Status.Brand + " " + c.Status.LastDigits), expires, standard,
				strings.ToLower(string(cmp.Or(c.Status.State, api.CardOpening))), c.Status.LastError}
		},
		detail: func(c api.Card) (d detail) {
			d.add("url", c.Status.URL)
			return d
		},
	}
	k.more = []*cobra.Command{a.cardAddCommand(), a.cardDefaultCommand(k), k.deleteCommand()}
	return k
}

func (a *App) cardAddCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "add", Short: "Begin to save a payment card", Args: cobra.NoArgs,
		Long:    "Prints the address of a page of the payment provider, on which a payment card can be entered for an hour. Nothing is charged: the payment card is there for `checkout create --card` and for the automatic top-up (`top-up set`).",
		Example: "  basalt card add --organization acme"}
	standard := cmd.Flags().Bool("default", false, "make it the default payment card when it is saved; the first one always is")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := client.Of[api.Card](a.api).Create(cmd.Context(), api.Card{Meta: api.Meta{Organization: a.config.Organization}, Spec: api.CardSpec{Default: *standard}})
		if err != nil {
			return err
		}
		if a.flags.output != "table" {
			return a.cards().printOne(cmd.Context(), c)
		}
		fmt.Fprintln(a.Out, c.Status.URL)
		fmt.Fprintf(a.Err, "open this address to enter the card; afterwards: basalt card get %s\n", c.Meta.ID)
		return nil
	}
	return cmd
}

func (a *App) cardDefaultCommand(k *kind[api.Card]) *cobra.Command {
	return &cobra.Command{Use: "default ID", Short: "Choose the default payment card of an organization", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.api.SetDefaultCard(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return k.printOne(cmd.Context(), c)
		},
	}
}
