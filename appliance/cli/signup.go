package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

func (a *App) signUpSettingsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "sign-up-settings", Short: "How people create accounts by themselves"}
	cmd.AddCommand(a.signUpSettingsShow(), a.signUpSettingsSet())
	return cmd
}

const signUpReseller = "the settings of this organization's portal, which has customers; default: of the cluster's"

func (a *App) signUpSettingsShow() *cobra.Command {
	cmd := &cobra.Command{Use: "show", Short: "Show the sign-up settings, without the captcha's secret", Args: cobra.NoArgs}
	reseller := cmd.Flags().String("reseller", "", signUpReseller)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := a.signUpOf(cmd.Context(), *reseller)
		if err != nil {
			return err
		}
		return a.printSignUp(s)
	}
	return cmd
}

// signUpOf returns the settings of a reseller's portal, or of the cluster's if it is empty.
func (a *App) signUpOf(ctx context.Context, reseller string) (api.SignUpSettings, error) {
	if reseller == "" {
		return a.api.SignUpSettings(ctx)
	}
	return a.api.OrganizationSignUpSettings(ctx, reseller)
}

// patchSignUp changes the settings of a reseller's portal, or of the cluster's if it is empty.
func (a *App) patchSignUp(ctx context.Context, reseller string, changes map[string]any) (api.SignUpSettings, error) {
	if reseller == "" {
		return a.api.PatchSignUpSettings(ctx, changes)
	}
	return a.api.PatchOrganizationSignUpSettings(ctx, reseller, changes)
}

func (a *App) signUpSettingsSet() *cobra.Command {
	cmd := &cobra.Command{Use: "set", Short: "Change the sign-up settings; others are kept", Args: cobra.NoArgs,
		Long: "Mail has to be enabled too: basalt mail set. With --captcha-secret the secret of the captcha is asked for, or read from a pipe.\n" +
			"An empty value removes a setting. For operators; resellers set those of their own portal with --reseller,\n" +
			"once their provider permits that with --allow-resellers.",
		Example: "  basalt sign-up-settings set --enable --terms-url https://example.com/terms --terms-version 2026-03 --credit '10 EUR' --quota instances=2,vcpus=8"}
	change := signUpFlags(cmd.Flags())
	reseller := cmd.Flags().String("reseller", "", signUpReseller)
	secret := cmd.Flags().Bool("captcha-secret", false, "ask for the secret of the captcha")
	cmd.MarkFlagsMutuallyExclusive("enable", "disable")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := a.signUpOf(cmd.Context(), *reseller)
		if err != nil {
			return err
		}
		was := s
		if err := change(&s); err != nil {
			return err
		}
		if *secret {
			if s.CaptchaSecret, err = a.secret(bufio.NewReader(a.In), "Secret of the captcha: "); err != nil {
				return err
			}
		}
		if s, err = a.patchSignUp(cmd.Context(), *reseller, client.MergePatch(was, s)); err != nil {
			return err
		}
		return a.printSignUp(s)
	}
	return cmd
}

func signUpFlags(f *pflag.FlagSet) func(*api.SignUpSettings) error {
	enable, disable := f.Bool("enable", false, "let people sign up"), f.Bool("disable", false, "let nobody sign up")
	url, version := f.String("terms-url", "", "where the terms are"), f.String("terms-version", "", "version of the terms, recorded with who accepts them")
	allowed, blocked := f.StringSlice("allow-domain", nil, "mail domains that can sign up; default: all"), f.StringSlice("block-domain", nil, "mail domains that cannot sign up")
	book, credit := f.String("price-book", "", "price book of new organizations; default: the one named default"), f.String("credit", "", "credit of new organizations, e.g. '10 EUR'")
	quota := f.StringToInt64("quota", nil, "quota of new organizations, e.g. instances=2,vcpus=8")
	captcha, key := f.String("captcha", "", "hcaptcha, turnstile or recaptcha"), f.String("site-key", "", "what the captcha's provider calls the site")
	resellers := f.Bool("allow-resellers", false, "whether resellers directly below may let people sign up in their own portals")
	verify := f.String("verify-url", "", "where tokens of the captcha are verified; default: at the provider")
	return func(s *api.SignUpSettings) error {
		if *enable || *disable {
			s.Enabled = *enable
		}
		for name, set := range map[string]func(){
			"terms-url": func() { s.TermsURL = *url }, "terms-version": func() { s.TermsVersion = *version },
			"allow-domain": func() { s.AllowedDomains = withoutEmpty(*allowed) }, "block-domain": func() { s.BlockedDomains = withoutEmpty(*blocked) },
			"price-book": func() { s.PriceBook = api.PriceBookID(*book) }, "quota": func() { s.Quota = *quota },
			"captcha":  func() { s.Captcha, s.VerifyURL = api.CaptchaProvider(*captcha), "" },
			"site-key": func() { s.SiteKey = *key }, "allow-resellers": func() { s.Resellers = *resellers },
		} {
			if f.Changed(name) {
				set()
			}
		}
		if f.Changed("captcha") && *captcha == "" {
			s.SiteKey = ""
		}
		if f.Changed("verify-url") {
			s.VerifyURL = *verify
		}
		if !f.Changed("credit") {
			return nil
		}
		s.CreditMicros, s.Currency = 0, ""
		amount, currency, _ := strings.Cut(strings.TrimSpace(*credit), " ")
		if amount == "" {
			return nil
		}
		var err error
		s.Currency = strings.ToUpper(strings.TrimSpace(currency))
		s.CreditMicros, err = parseMicros(amount)
		return err
	}
}

// withoutEmpty returns the list without empty strings; a list of only those clears a setting.
func withoutEmpty(all []string) (out []string) {
	for _, s := range all {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

func (a *App) printSignUp(s api.SignUpSettings) error {
	return a.print(s, func() table {
		state := "disabled"
		switch {
		case s.Enabled && s.Allowed:
			state = "enabled"
		case s.Enabled:
			state = "not permitted" // by a provider above
		}
		credit := ""
		if s.CreditMicros > 0 {
			credit = formatMicros(s.CreditMicros) + " " + s.Currency
		}
		domains := cmp.Or(strings.Join(s.AllowedDomains, ","), "all")
		if len(s.BlockedDomains) > 0 {
			domains += fmt.Sprintf(" (%d blocked)", len(s.BlockedDomains))
		}
		return table{{"STATE", "TERMS", "VERSION", "DOMAINS", "CREDIT", "QUOTAS", "CAPTCHA", "RESELLERS"},
			{state, s.TermsURL, s.TermsVersion, domains, credit, strconv.Itoa(len(s.Quota)), cmp.Or(string(s.Captcha), "none"), onOff(s.Resellers)}}
	})
}
