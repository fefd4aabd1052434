package cli

import (
	"cmp"
	"context"
	"io"
	"os"

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
		Long: "The logo is a PNG of at most 64 KiB and 512 by 512 pixels. For operators; resellers set their own with --reseller."}
	f := cmd.Flags()
	name := f.String("product", "", "product name; default: Basalt")
	color := f.String("color", "", "accent colour, e.g. '#0b5cad'")
	email := f.String("support-email", "", "support e-mail")
	url := f.String("support-url", "", "support URL")
	logo := f.String("logo", "", "file with the logo (PNG)")
	reseller := f.String("reseller", "", brandingReseller)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		png, err := readLogo(*logo)
		if err != nil {
			return err
		}
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
		if b, err = a.patchBranding(cmd.Context(), *reseller, client.MergePatch(was, b)); err != nil {
			return err
		}
		if f.Changed("logo") {
			if b, err = a.changeLogo(cmd.Context(), *reseller, b.Revision, png); err != nil {
				return err
			}
		}
		return a.printBranding(b)
	}
	return cmd
}

// readLogo reads a logo from a file; an empty name: nil.
func readLogo(file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, api.MaxLogoBytes+1)) // the server refuses larger ones
}

// patchBranding changes the branding of an organization, or of the cluster if it is empty.
func (a *App) patchBranding(ctx context.Context, organization string, changes map[string]any) (api.Branding, error) {
	if organization == "" {
		return a.api.PatchBranding(ctx, changes)
	}
	return a.api.PatchOrganizationBranding(ctx, organization, changes)
}

// changeLogo replaces the logo of a branding at a revision, or removes it if png is nil.
func (a *App) changeLogo(ctx context.Context, organization string, revision int64, png []byte) (api.Branding, error) {
	switch {
	case organization == "" && png == nil:
		return a.api.DeleteLogo(ctx, revision)
	case organization == "":
		return a.api.PutLogo(ctx, revision, png)
	case png == nil:
		return a.api.DeleteOrganizationLogo(ctx, organization, revision)
	}
	return a.api.PutOrganizationLogo(ctx, organization, revision, png)
}

func (a *App) printBranding(b api.Branding) error {
	return a.print(b, func() table {
		return table{{"PRODUCT", "COLOR", "SUPPORT E-MAIL", "SUPPORT URL", "LOGO"},
			{cmp.Or(b.ProductName, "Basalt"), b.AccentColor, b.SupportEmail, b.SupportURL, cmp.Or(b.Logo, "none")}}
	})
}
