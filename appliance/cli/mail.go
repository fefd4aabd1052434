package cli

import (
	"bufio"
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

func (a *App) mailCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "mail", Short: "Mail server that the cluster sends through"}
	cmd.AddCommand(&cobra.Command{
		Use: "show", Short: "Show the mail settings and how sending goes", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.api.MailSettings(cmd.Context())
			if err != nil {
				return err
			}
			return a.printMail(s)
		},
	}, a.mailSet(), a.mailTest())
	return cmd
}

// mailFlags declares the settings that a command line changes.
func mailFlags(f *pflag.FlagSet) func(*api.MailSettings) {
	server, port := f.String("smtp-server", "", "host name or address of the mail server"), f.Int("port", 0, "default: 587, or 465 with tls")
	security := f.String("security", "", "starttls, tls or none; default: starttls")
	user := f.String("user", "", "user to sign in to the mail server as; empty: none")
	sender, portal := f.String("sender", "", "e-mail address that mail comes from"), f.String("portal-url", "", "where the portal is, for links")
	language := f.String("language", "", "en or de, where a recipient's language is not known")
	perMinute := f.Int("per-minute", 0, "the most messages a minute; default: 60")
	alertsTo := f.StringSlice("alerts-to", nil, "e-mail addresses that are sent the cluster's alerts; replaces the previous ones")
	enable, disable := f.Bool("enable", false, "send mail"), f.Bool("disable", false, "send no mail")
	return func(s *api.MailSettings) {
		for flag, set := range map[string]func(){
			"smtp-server": func() { s.Server = *server }, "port": func() { s.Port = *port }, "user": func() { s.User = *user },
			"security": func() { s.Security = api.MailSecurity(*security) }, "sender": func() { s.Sender = *sender },
			"portal-url": func() { s.PortalURL = *portal }, "language": func() { s.Language = api.MailLanguage(*language) },
			"per-minute": func() { s.PerMinute = *perMinute }, "alerts-to": func() { s.AlertsTo = *alertsTo },
		} {
			if f.Changed(flag) {
				set()
			}
		}
		if *enable || *disable {
			s.Enabled = *enable
		}
	}
}

// bouncesFlags declares the settings of the mailbox of returned mail.
func bouncesFlags(f *pflag.FlagSet) func(*api.MailSettings) {
	server, port := f.String("bounces-server", "", "host name or address of the IMAP server with the mailbox of returned mail"), f.Int("bounces-port", 0, "default: 993, or 143 with starttls")
	security := f.String("bounces-security", "", "tls or starttls; default: tls")
	user := f.String("bounces-user", "", "user to sign in to the IMAP server as")
	mailbox := f.String("bounces-mailbox", "", "name of the mailbox; default: INBOX")
	none := f.Bool("no-bounces", false, "do not read returned mail")
	return func(s *api.MailSettings) {
		if *none {
			s.Bounces = nil
			return
		}
		b, changed := api.MailBounces{}, false
		if s.Bounces != nil {
			b = *s.Bounces
		}
		if f.Changed("bounces-security") && !f.Changed("bounces-port") && b.Security != api.MailSecurity(*security) {
			b.Port = 0 // the default port of the new security
		}
		for flag, set := range map[string]func(){
			"bounces-server": func() { b.Server = *server }, "bounces-port": func() { b.Port = *port }, "bounces-user": func() { b.User = *user },
			"bounces-security": func() { b.Security = api.MailSecurity(*security) }, "bounces-mailbox": func() { b.Mailbox = *mailbox },
		} {
			if f.Changed(flag) {
				set()
				changed = true
			}
		}
		if changed {
			s.Bounces = &b
		}
	}
}

func (a *App) mailSet() *cobra.Command {
	cmd := &cobra.Command{Use: "set", Short: "Change the mail settings; others are kept", Args: cobra.NoArgs,
		Long: "With --password or --bounces-password the password is asked for, or read from a pipe. It has to be given again after a change of server, port,\n" +
			"security or user. For operators.",
		Example: "  basalt mail set --enable --smtp-server smtp.example.com --user basalt --password --sender cloud@example.com --portal-url https://cloud.example.com"}
	change, changeBounces := mailFlags(cmd.Flags()), bouncesFlags(cmd.Flags())
	password := cmd.Flags().Bool("password", false, "ask for the password of the user")
	bouncesPassword := cmd.Flags().Bool("bounces-password", false, "ask for the password of the mailbox")
	cmd.MarkFlagsMutuallyExclusive("enable", "disable")
	for _, flag := range []string{"bounces-server", "bounces-port", "bounces-security", "bounces-user", "bounces-mailbox", "bounces-password"} {
		cmd.MarkFlagsMutuallyExclusive("no-bounces", flag)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := a.api.MailSettings(cmd.Context())
		if err != nil {
			return err
		}
		was := s
		if change(&s); cmd.Flags().Changed("security") && !cmd.Flags().Changed("port") && s.Security != was.Security {
			s.Port = 0 // the default port of the new security
		}
		changeBounces(&s)
		in := bufio.NewReader(a.In)
		if *password {
			if s.Password, err = a.secret(in, "Password of "+s.User+": "); err != nil {
				return err
			}
		}
		if *bouncesPassword {
			if s.Bounces == nil {
				return api.Errorf(api.CodeInvalid, "--bounces-password: there is no mailbox of returned mail").WithHint("give --bounces-server and --bounces-user")
			}
			b := *s.Bounces
			if b.Password, err = a.secret(in, "Password of the mailbox of "+b.User+": "); err != nil {
				return err
			}
			s.Bounces = &b
		}
		if s, err = a.api.PatchMailSettings(cmd.Context(), client.MergePatch(was, s)); err != nil {
			return err
		}
		return a.printMail(s)
	}
	return cmd
}

func (a *App) mailTest() *cobra.Command {
	cmd := &cobra.Command{Use: "test", Short: "Send a test message, to yourself unless --to is given", Args: cobra.NoArgs}
	to := cmd.Flags().String("to", "", "e-mail address; needed with an API key")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		m, err := a.api.TestMail(cmd.Context(), *to)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.Err, "a message to %s is on its way: basalt mail-message get %s\n", m.Spec.To, m.Meta.ID)
		return nil
	}
	return cmd
}

func (a *App) printMail(s api.MailSettings) error {
	return a.print(s, func() table {
		state := "disabled"
		switch {
		case s.Enabled && s.Status.Attempts > 0:
			state = fmt.Sprintf("retrying (%d)", s.Status.Attempts)
		case s.Enabled:
			state = "enabled"
		}
		server := ""
		if s.Server != "" {
			server = s.Server + ":" + strconv.Itoa(s.Port)
		}
		returned, note := "", s.Status.LastError
		if b := s.Status.Bounces; b != nil && s.Bounces != nil {
			returned = strconv.FormatInt(b.Bounced, 10)
			if note == "" && b.LastError != "" {
				note = "returned mail: " + b.LastError
			}
		}
		return table{{"STATE", "SERVER", "SECURITY", "USER", "SENDER", "PORTAL", "LANGUAGE", "ALERTS TO", "SENT", "FAILED", "RETURNED", "NOTE"},
			{state, server, string(s.Security), s.User, s.Sender, s.PortalURL, string(s.Language), strings.Join(s.AlertsTo, ","),
				strconv.FormatInt(s.Status.Sent, 10), strconv.FormatInt(s.Status.Failed, 10), returned, note}}
	})
}

// mailMessages describes the messages in the outbox.
func (a *App) mailMessages() *kind[api.MailMessage] {
	k := &kind[api.MailMessage]{
		app: a, noun: "mail-message", about: "Messages that the cluster sends",

		columns: []string{"TYPE", "TO", "STATE", "NOTE"},
		row: func(m api.MailMessage) []string {
			return []string{string(m.Spec.Type), m.Spec.To, mailState(m), m.Status.LastError}
		},
	}
	k.more = []*cobra.Command{k.deleteCommand()}
	return k
}

func mailState(m api.MailMessage) string {
	state := strings.ToLower(string(cmp.Or(m.Status.State, api.MailWaiting)))
	if !m.Done() && m.Status.Attempts > 0 {
		state = fmt.Sprintf("retrying (%d)", m.Status.Attempts)
	}
	return state
}

func (a *App) inviteCommand(k *kind[api.User]) *cobra.Command {
	return &cobra.Command{
		Use: "invite NAME|ID", Short: "Send a user a link by e-mail that sets a password", Args: cobra.ExactArgs(1),
		Long: "Who follows the link has proved that the e-mail address is his.",
		RunE: func(cmd *cobra.Command, args []string) error {
			u, err := k.get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			m, err := a.api.InviteUser(cmd.Context(), u.Meta.ID)
			if err != nil {
				return err
			}
			fmt.Fprintf(a.Err, "a link is on its way to %s\n", m.Spec.To)
			return nil
		},
	}
}

func (a *App) passwordReset() *cobra.Command {
	return &cobra.Command{
		Use: "reset EMAIL", Short: "Ask for a link by e-mail that sets a new password", Args: cobra.ExactArgs(1),
		Long: "A user of an organization names it with --organization, as when signing in.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := a.api.RequestPasswordReset(cmd.Context(), api.PasswordResetRequest{Email: args[0], Organization: a.flags.organization}); err != nil {
				return err
			}
			fmt.Fprintf(a.Err, "if %s has a password here, a link is on its way to it\n", args[0])
			return nil
		},
	}
}
