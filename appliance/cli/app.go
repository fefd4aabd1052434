package cli

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/controlplane/catalogue"
)

func (a *App) apps() *kind[api.App] {
	k := &kind[api.App]{
		app: a, noun: "app", about: "Apps: images with a setup that runs on first boot",
		columns: []string{"TITLE", "VERSION", "CATEGORY", "IMAGE", "VRAM"},
		row: func(x api.App) []string {
			return []string{x.Spec.DisplayName, x.Spec.Version, x.Spec.Category, x.Spec.Image, formatSize(x.Spec.Needs.VramBytes)}
		},
		flags: func(f *pflag.FlagSet) func(*api.App) error {
			title := f.String("title", "", "display name")
			version := f.String("app-version", "", "version of the app")
			category := f.String("category", "", "system, workbench, inference, or another word")
			icon := f.String("icon", "", "pictogram: server, notebook, flask, chat, picture, chart, database or cube; default: cube")
			image := f.String("image", "", "name of the public image it uses")
			userData := f.String("user-data", "", "file with cloud-init user data")
			return func(x *api.App) error {
				s := &x.Spec
				s.DisplayName, s.Version = cmp.Or(*title, s.DisplayName), cmp.Or(*version, s.Version, "1")
				s.Category, s.Image = cmp.Or(*category, s.Category), cmp.Or(*image, s.Image)
				s.Icon = cmp.Or(api.AppIcon(*icon), s.Icon)
				if *userData != "" {
					raw, err := os.ReadFile(*userData)
					if err != nil {
						return err
					}
					s.UserData = string(raw)
				}
				return nil
			}
		},
	}
	k.more = []*cobra.Command{installAppCommand(k)}
	return k
}

func installAppCommand(k *kind[api.App]) *cobra.Command {
	cmd := &cobra.Command{
		Use: "install [NAME…]", Short: "Install the apps included with this program, or their newer versions", Args: cobra.ArbitraryArgs,
		Long: "Apps that are already installed in the same version are left unchanged. Installs all apps if none is named.",
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		all, err := catalogue.Apps()
		if err != nil {
			return fmt.Errorf("read the apps included with this program: %w", err)
		}
		for _, name := range args {
			if !slices.ContainsFunc(all, func(x api.App) bool { return x.Meta.Name == name }) {
				return usagef("app %q is not included with this program", name)
			}
		}
		for _, x := range all {
			if len(args) > 0 && !slices.Contains(args, x.Meta.Name) {
				continue
			}
			did, err := installApp(cmd, k, x)
			if err != nil {
				return fmt.Errorf("install app %s: %w", x.Meta.Name, err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "app %s version %s %s\n", x.Meta.Name, x.Spec.Version, did)
		}
		return nil
	}
	return cmd
}

func installApp(cmd *cobra.Command, k *kind[api.App], x api.App) (did string, err error) {
	apps := k.objects()
	old, err := apps.Get(cmd.Context(), x.Meta.Name, client.Query{})
	switch {
	case api.CodeOf(err) == api.CodeNotFound:
		_, err = apps.Create(cmd.Context(), x)
		return "created", err
	case err != nil:
		return "", err
	case old.Spec.Version == x.Spec.Version:
		return "unchanged", nil
	}
	old.Spec = x.Spec
	_, err = apps.Update(cmd.Context(), old.Meta.ID, old)
	return "updated", err
}
