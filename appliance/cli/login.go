package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

func (a *App) loginCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "login", Short: "Sign in, and save the server, defaults and credentials", Args: cobra.NoArgs,
		Long: "With --email, prompts for the password, and for a one-time code if two-factor authentication is on. With --oidc,\n" +
			"prints a URL to open in a browser on this computer, and waits until you have signed in there. Otherwise, verifies\n" +
			"the API key given by --token. The configuration is saved as config.yaml in the user's configuration folder,\n" +
			"readable only by its owner.",
	}
	email := cmd.Flags().String("email", "", "sign in as this user; the password is prompted for, or read from standard input")
	oidc := cmd.Flags().String("oidc", "", "sign in with this identity provider (OpenID Connect or SAML), in a browser on this computer; ORGANIZATION/NAME for one of an organization")
	cmd.MarkFlagsMutuallyExclusive("email", "oidc")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if a.ConfigDir == "" {
			return errors.New("cannot save the configuration: there is no home directory")
		}
		if *oidc != "" {
			return a.oidcSession(cmd.Context(), *oidc)
		}
		if *email != "" {
			return a.session(cmd.Context(), *email)
		}
		if a.config.Token == "" {
			return usagef("--token is required, or --email to sign in with a password")
		}
		return a.saveSession(cmd.Context())
	}
	return cmd
}

// session signs in with a password and saves the session.
func (a *App) session(ctx context.Context, email string) error {
	in := bufio.NewReader(a.In)
	password, err := a.secret(in, "Password: ")
	if err != nil {
		return err
	}
	c := api.Credentials{Email: email, Password: password, Organization: a.config.Organization, Project: a.config.Project}
	s, err := a.api.Login(ctx, c)
	var e *api.Error
	if errors.As(err, &e) && (e.Field == "totp" || e.Field == "passkey") && c.Totp == "" {
		ask := "One-time code: "
		if e.Field == "passkey" { // passkeys work in browsers only
			ask = "Recovery code (your account has passkeys and no one-time codes): "
		}
		if c.Totp, err = a.secret(in, ask); err != nil {
			return err
		}
		s, err = a.api.Login(ctx, c)
	}
	if err != nil {
		return err
	}
	return a.useSession(ctx, s)
}

// useSession continues with a session's token, and saves it.
func (a *App) useSession(ctx context.Context, s api.Session) error {
	a.config.Token = s.Token
	trust, err := a.trust()
	if err == nil {
		a.api, err = client.New(client.Options{Server: a.config.Server, Token: s.Token, TLS: trust})
	}
	if err != nil {
		return err
	}
	return a.saveSession(ctx)
}

func (a *App) saveSession(ctx context.Context) error {
	me, err := a.api.Whoami(ctx)
	if err != nil {
		return err
	}
	if err := a.writeConfig(a.config); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "Signed in to %s as %s (%s).\n", a.config.Server, first(me.Name, me.Key), me.Role)
	return nil
}

func (a *App) logoutCommand() *cobra.Command {
	return &cobra.Command{
		Use: "logout", Short: "Sign out, and remove the saved session", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			saved, err := a.readConfig()
			if err != nil {
				return err
			}
			if saved.Token == "" {
				return usagef("you are not signed in")
			}
			_, err = a.api.Logout(cmd.Context())
			// A session that has already expired, or a key, which a logout does not end, is
			// removed too.
			if code := api.CodeOf(err); err != nil && code != api.CodeUnauthenticated && code != api.CodeState && code != api.CodeInvalid {
				return err
			}
			saved.Token = ""
			if err := a.writeConfig(saved); err != nil {
				return err
			}
			fmt.Fprintf(a.Out, "Signed out of %s.\n", saved.Server)
			return nil
		},
	}
}

func (a *App) passwordCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "password", Short: "Set or change your password"}
	cmd.AddCommand(&cobra.Command{
		Use: "set TOKEN", Short: "Set your password with the token you received", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			password, err := a.secret(bufio.NewReader(a.In), "New password: ")
			if err != nil {
				return err
			}
			whose, err := a.api.SetPassword(cmd.Context(), args[0], password)
			if err != nil {
				return err
			}
			fmt.Fprintf(a.Out, "The password of %s is set: basalt login --email %s\n", whose.Email, whose.Email)
			return nil
		},
	}, &cobra.Command{
		Use: "change", Short: "Change your password; all your other sessions end", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			in := bufio.NewReader(a.In)
			old, err := a.secret(in, "Current password: ")
			if err != nil {
				return err
			}
			to, err := a.secret(in, "New password: ")
			if err != nil {
				return err
			}
			s, err := a.api.ChangePassword(cmd.Context(), old, to)
			if err != nil {
				return err
			}
			return a.useSession(cmd.Context(), s)
		},
	}, a.passwordReset())
	return cmd
}

func (a *App) languageCommand() *cobra.Command {
	return &cobra.Command{
		Use: "language en|de", Short: "Choose the language of mail to you", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.api.ChooseLanguage(cmd.Context(), api.MailLanguage(args[0]))
			if err != nil {
				return err
			}
			return a.print(l, func() table {
				return table{{"LANGUAGE"}, {string(l.Language)}}
			})
		},
	}
}

// secret reads a line that a terminal does not show.
func (a *App) secret(in *bufio.Reader, prompt string) (string, error) {
	if fd, ok := terminal(a.In); ok {
		fmt.Fprint(a.Err, prompt)
		raw, err := term.ReadPassword(fd)
		fmt.Fprintln(a.Err)
		return string(raw), err
	}
	line, err := in.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return "", usagef("%s want a line on standard input", strings.ToLower(prompt))
	}
	return line, nil
}
