package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

func (a *App) brandingCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "branding", Short: "Product name, colour and support contact"}
	cmd.AddCommand(a.brandingShow(), a.brandingSet())
	return cmd
}

const brandingReseller = "the branding of this organization, which has customers; default: that of the cluster"

func (a *App) brandingShow() *cobra.Command {
	cmd := &cobra.Command{Use: "show", Short: "Show the current branding", Args: cobra.NoArgs}
	reseller := cmd.Flags().String("reseller", "", brandingReseller)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		b, err := a.branding(cmd.Context(), *reseller)
		if err != nil {
			return err
		}
		return a.printBranding(b)
	}
	return cmd
}

// branding returns the branding of an organization, or of the cluster if it is empty.
func (a *App) branding(ctx context.Context, organization string) (api.Branding, error) {
	if organization == "" {
		return a.api.Branding(ctx)
	}
	return a.api.OrganizationBranding(ctx, organization)
}

func (a *App) brandingSet() *cobra.Command {
	cmd := &cobra.Command{Use: "set", Short: "Change branding; an empty value removes a setting", Args: cobra.NoArgs,
		Long: "The logo is set in the portal, or by PUT /v1/branding/logo. For operators; resellers set their own with --reseller."}
	f := cmd.Flags()
	name := f.String("product", "", "product name; default: Basalt")
	color := f.String("color", "", "accent colour, e.g. '#0b5cad'")
	email := f.String("support-email", "", "support e-mail")
	url := f.String("support-url", "", "support URL")
	reseller := f.String("reseller", "", brandingReseller)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		b, err := a.branding(cmd.Context(), *reseller)
		if err != nil {
			return err
		}
		was := b
		for flag, set := range map[string]func(){
			"product": func() { b.ProductName = *name }, "color": func() { b.AccentColor = *color },
			"support-email": func() { b.SupportEmail = *email }, "support-url": func() { b.SupportURL = *url },
		} {
			if f.Changed(flag) {
				set()
			}
		}
		if *reseller == "" {
			b, err = a.api.PatchBranding(cmd.Context(), client.MergePatch(was, b))
		} else {
			b, err = a.api.PatchOrganizationBranding(cmd.Context(), *reseller, client.MergePatch(was, b))
		}
		if err != nil {
			return err
		}
		return a.printBranding(b)
	}
	return cmd
}

func (a *App) printBranding(b api.Branding) error {
	return a.print(b, func() table {
		return table{{"PRODUCT", "COLOR", "SUPPORT E-MAIL", "SUPPORT URL", "LOGO"},
			{cmp.Or(b.ProductName, "Basalt"), b.AccentColor, b.SupportEmail, b.SupportURL, cmp.Or(b.Logo, "none")}}
	})
}
