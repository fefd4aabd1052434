package cli

import (
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
)

// samlFlags declares the flags of a SAML provider; the function that it returns sets the given
// ones.
func samlFlags(f *pflag.FlagSet) func(*api.IdentityProviderSpec) error {
	metadata := f.String("saml-metadata", "", "file with the provider's metadata (XML): use SAML 2.0 instead of OpenID Connect, or replace the certificates")
	domains := f.StringSlice("email-domain", nil, "SAML: domains whose e-mail addresses the provider may confirm")
	format := f.String("name-id-format", "", "SAML: what identifies a user, persistent or emailAddress; default: persistent")
	email := f.String("email-attribute", "", "SAML: attribute with the e-mail address; has a default")
	name := f.String("name-attribute", "", "SAML: attribute with the displayed name")
	base := f.String("base-url", "", "SAML: address of this service in browsers, e.g. https://cloud.example; default: that of the first --redirect, or, with --organization, of the portal")
	return func(p *api.IdentityProviderSpec) error {
		s := api.SAMLProvider{}
		if p.SAML != nil {
			s = *p.SAML
		}
		changed := false
		for flag, set := range map[string]func(){
			"email-domain":    func() { s.EmailDomains = *domains },
			"name-id-format":  func() { s.NameIDFormat = api.NameIDFormat(*format) },
			"email-attribute": func() { s.EmailAttribute = *email },
			"name-attribute":  func() { s.NameAttribute = *name },
			"base-url":        func() { s.BaseURL = strings.TrimSuffix(*base, "/") },
		} {
			if f.Changed(flag) {
				set()
				changed = true
			}
		}
		if *metadata != "" {
			raw, err := os.ReadFile(*metadata)
			if err != nil {
				return err
			}
			s.Metadata, changed = string(raw), true
		}
		if changed {
			p.SAML = &s
		}
		return nil
	}
}

// samlDetail returns what an identity provider must be told about this service.
func samlDetail(p api.IdentityProvider) (d detail) {
	s := p.Spec.SAML
	if s == nil {
		return nil
	}
	d.add("Entity ID (audience), metadata", s.EntityID(p.AddressName()))
	d.add("ACS URL (reply URL, recipient)", s.ACSURL(p.AddressName()))
	d.add("NameID format", string(s.NameIDFormat))
	d.add("E-mail attribute", s.EmailAttribute)
	d.add("E-mail domains", strings.Join(s.EmailDomains, ", "))
	d.add("Sign-on address", s.SignOnURL)
	for _, text := range s.Certificates {
		if c, err := api.SAMLCertificate(text); err == nil {
			d.add("Signing certificate", "valid until "+c.NotAfter.UTC().Format(time.DateOnly))
		}
	}
	return d
}

func (a *App) samlMetadataCommand() *cobra.Command {
	return &cobra.Command{Use: "metadata NAME|ID", Short: "Print the metadata of this service for a SAML provider", Args: cobra.ExactArgs(1),
		Long: "The identity provider reads the entity ID of this service and the address for its responses from it.",
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.identityProviders().get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.api.SAMLMetadata(cmd.Context(), p.AddressName(), a.Out)
		}}
}
