package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
)

func (a *App) users() *kind[api.User] {
	k := &kind[api.User]{
		app: a, noun: "user", about: "Users; NAME is an e-mail address",

		refs:    []api.Kind{api.KindOrganization, api.KindProject},
		columns: []string{"DISPLAY NAME", "GRANTS", "STATE", "LAST SIGN-IN"},
		row: func(u api.User) []string {
			login := "never"
			if u.Status.LastLoginAt != nil {
				login = formatTime(*u.Status.LastLoginAt)
			}
			return []string{u.Spec.DisplayName, a.grantWords(u.Spec.Grants), userState(u), login}
		},
		secret: true,
		made: func(u api.User) {
			if a.flags.output == "table" && u.Link != nil {
				a.showLink(*u.Link)
			}
		},
		flags: func(f *pflag.FlagSet) func(*api.User) error {
			display := f.String("display-name", "", "display name")
			language := f.String("language", "", "language of mail to the user: en or de")
			grants := f.StringArray("grant", nil, "ROLE, ROLE@ORGANIZATION or ROLE@ORGANIZATION/PROJECT; replaces the previous ones; repeatable")
			disable := f.Bool("disable", false, "disable sign-in and end all sessions")
			enable := f.Bool("enable", false, "enable sign-in")
			return func(u *api.User) error {
				u.Spec.DisplayName = first(*display, u.Spec.DisplayName)
				u.Spec.Language = cmp.Or(api.MailLanguage(*language), u.Spec.Language)
				if *disable || *enable {
					u.Spec.Disabled = *disable
				}
				if len(*grants) > 0 {
					u.Spec.Grants = nil
				}
				for _, g := range *grants {
					u.Spec.Grants = append(u.Spec.Grants, grantOf(g))
				}
				return nil
			}
		},
	}
	k.more = []*cobra.Command{a.resetCommand(k), a.inviteCommand(k)}
	return k
}

// grantOf parses ROLE[@ORGANIZATION[/PROJECT]].
func grantOf(text string) api.Grant {
	role, where, _ := strings.Cut(text, "@")
	organization, project, _ := strings.Cut(where, "/")
	return api.Grant{Role: api.Role(role), Organization: organization, Project: project}
}

func (a *App) resetCommand(k *kind[api.User]) *cobra.Command {
	cmd := &cobra.Command{
		Use: "reset NAME|ID", Short: "Reset a user's password, end their sessions, and create a token for a new password", Args: cobra.ExactArgs(1),
	}
	totp := cmd.Flags().Bool("totp", false, "also disable two-factor authentication")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		u, err := k.get(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		link, err := a.api.ResetUser(cmd.Context(), u.Meta.ID, *totp)
		if err != nil {
			return err
		}
		if a.flags.output == "table" {
			a.showLink(link)
			return nil
		}
		return a.print(link, nil)
	}
	return cmd
}

func (a *App) showLink(l api.PasswordLink) {
	fmt.Fprintf(a.Out, "token: %s\nSave it now: it is not shown again. It is valid until %s: basalt password set TOKEN\n", l.Token, formatTime(l.ExpiresAt))
	if server, _, _ := strings.Cut(a.config.Server, ","); strings.HasPrefix(server, "http") {
		fmt.Fprintf(a.Out, "or, in the portal: %s/#/password?token=%s\n", server, l.Token)
	}
	fmt.Fprintln(a.Out)
}

func (a *App) grantWords(grants []api.Grant) string {
	words := make([]string, len(grants))
	for i, g := range grants {
		words[i] = string(g.Role)
		if g.Organization != "" {
			words[i] += "@" + a.named(g.Organization)
		}
		if g.Project != "" {
			words[i] += "/" + a.named(g.Project)
		}
	}
	return strings.Join(words, ", ")
}

func userState(u api.User) string {
	switch {
	case u.Spec.Disabled:
		return "disabled"
	case !u.Status.HasPassword:
		return "no password yet"
	case u.Status.Totp:
		return "active, two-factor"
	}
	return "active"
}
