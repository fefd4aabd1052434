package api

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// SignUpSettingsID is the ID of the settings of the cluster's portal; SignUpSettingsIDOf
// returns that of a reseller's.
const SignUpSettingsID = "signupsettings-000000000000"

// SignUpSettingsIDOf returns the ID of the settings of a reseller; empty: of the cluster.
func SignUpSettingsIDOf(reseller string) string {
	if reseller == "" {
		return SignUpSettingsID
	}
	_, rest, _ := strings.Cut(reseller, "-")
	return KindSignUpSettings.Info().IDPrefix + "-" + rest
}

// SignUpLife is how long the link in a sign-up message is valid.
const SignUpLife = 24 * time.Hour

// Limits of the sign-up messages that wait in the outbox: of all portals, and of those of
// one reseller and the resellers below it.
const (
	MaxPendingSignUps         = 500
	MaxPendingResellerSignUps = 100
)

// SignUpCreditReference is the reference of the payment that grants the sign-up credit,
// of which an organization has one.
const SignUpCreditReference = "sign-up credit"

// CaptchaProvider is the provider of the captcha. All providers verify tokens in the
// same way.
type CaptchaProvider string

// Providers of captchas.
const (
	CaptchaHCaptcha  CaptchaProvider = "hcaptcha"
	CaptchaTurnstile CaptchaProvider = "turnstile"
	CaptchaReCAPTCHA CaptchaProvider = "recaptcha"
)

// The URLs that verify tokens: docs.hcaptcha.com, developers.cloudflare.com/turnstile,
// developers.google.com/recaptcha/docs/verify.
var captchaVerify = map[CaptchaProvider]string{
	CaptchaHCaptcha:  "https://api.hcaptcha.com/siteverify",
	CaptchaTurnstile: "https://challenges.cloudflare.com/turnstile/v0/siteverify",
	CaptchaReCAPTCHA: "https://www.google.com/recaptcha/api/siteverify",
}

// SignUpSettingsSpec is the settings in the form that the store keeps.
type SignUpSettingsSpec struct {
	Enabled        bool            `json:"enabled,omitempty"`
	TermsURL       string          `json:"termsURL,omitempty"`
	TermsVersion   string          `json:"termsVersion,omitempty"`
	AllowedDomains []string        `json:"allowedDomains,omitempty"`
	BlockedDomains []string        `json:"blockedDomains,omitempty"`
	PriceBook      PriceBookID     `json:"priceBook,omitempty"`
	CreditMicros   int64           `json:"creditMicros,omitempty"`
	Currency       string          `json:"currency,omitempty"`
	Quota          Amounts         `json:"quota,omitempty"`
	Captcha        CaptchaProvider `json:"captcha,omitempty"`
	SiteKey        string          `json:"siteKey,omitempty"`
	VerifyURL      string          `json:"verifyURL,omitempty"`
	CaptchaSecret  string          `json:"captchaSecret,omitempty"` // sealed
	Resellers      bool            `json:"resellers,omitempty"`     // may resellers directly below have sign-up
}

// StoredSignUpSettings is the stored settings object.
type StoredSignUpSettings struct {
	Kind Kind
	Meta Meta
	Spec SignUpSettingsSpec
}

// View returns what operators may read: everything except the secret.
func (p StoredSignUpSettings) View() SignUpSettings {
	s := p.Spec
	return SignUpSettings{Revision: p.Meta.Revision, Enabled: s.Enabled, TermsURL: s.TermsURL, TermsVersion: s.TermsVersion, AllowedDomains: s.AllowedDomains,
		BlockedDomains: s.BlockedDomains, PriceBook: s.PriceBook, CreditMicros: s.CreditMicros, Currency: s.Currency, Quota: s.Quota,
		Captcha: s.Captcha, SiteKey: s.SiteKey, VerifyURL: s.VerifyURL, HasCaptchaSecret: s.CaptchaSecret != "", Resellers: s.Resellers}
}

// Spec returns the settings in a client's request, with defaults for what it left out.
func (s SignUpSettings) Spec() SignUpSettingsSpec {
	out := SignUpSettingsSpec{Enabled: s.Enabled, TermsURL: s.TermsURL, TermsVersion: s.TermsVersion, PriceBook: s.PriceBook, CreditMicros: s.CreditMicros, Currency: s.Currency,
		Quota: s.Quota, Captcha: s.Captcha, SiteKey: s.SiteKey, VerifyURL: cmp.Or(s.VerifyURL, captchaVerify[s.Captcha]), CaptchaSecret: s.CaptchaSecret,
		Resellers: s.Resellers}
	for _, d := range s.AllowedDomains {
		out.AllowedDomains = append(out.AllowedDomains, Login(d))
	}
	for _, d := range s.BlockedDomains {
		out.BlockedDomains = append(out.BlockedDomains, Login(d))
	}
	return out
}

var mailDomainPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$`)

// ValidateSignUpSettings checks settings that Spec returned.
func ValidateSignUpSettings(s SignUpSettingsSpec) error {
	var bad faults
	if s.TermsURL != "" {
		bad.note(validateWebAddress("termsURL", s.TermsURL))
	}
	if (s.TermsURL == "") != (s.TermsVersion == "") {
		bad.note(invalid("termsVersion", "termsURL and termsVersion must be given together").WithHint("the version is recorded with everybody who accepts it, e.g. 2026-03"))
	}
	bad.note(text("termsVersion", s.TermsVersion), text("siteKey", s.SiteKey), domains("allowedDomains", s.AllowedDomains), domains("blockedDomains", s.BlockedDomains))
	if s.CreditMicros != 0 {
		bad.note(between("creditMicros", s.CreditMicros, 0, maxPriceMicros, " millionths"))
		if !currencyPattern.MatchString(s.Currency) {
			bad.note(invalid("currency", "%q is not a valid currency", clip(s.Currency)).WithHint("that of the price book, e.g. EUR"))
		}
	}
	if err := ValidateQuota(s.Quota); err != nil {
		bad.note(err.At(strings.Replace(err.Field, "spec.", "", 1)))
	}
	return Join(bad.err(), validateCaptcha(s))
}

func validateCaptcha(s SignUpSettingsSpec) error {
	var bad faults
	switch {
	case s.Captcha == "":
		if s.SiteKey != "" || s.VerifyURL != "" || s.CaptchaSecret != "" {
			bad.note(invalid("captcha", "must not be empty when there is a siteKey, verifyURL or captchaSecret").WithHint("want hcaptcha, turnstile or recaptcha"))
		}
		return bad.err()
	case captchaVerify[s.Captcha] == "":
		bad.note(invalid("captcha", "%q is not supported", clip(string(s.Captcha))).WithHint("want hcaptcha, turnstile or recaptcha"))
	}
	if s.VerifyURL != "" {
		bad.note(validateWebAddress("verifyURL", s.VerifyURL))
	}
	if s.SiteKey == "" {
		bad.note(invalid("siteKey", "must not be empty when there is a captcha"))
	}
	if s.CaptchaSecret == "" {
		bad.note(invalid("captchaSecret", "must not be empty when there is a captcha"))
	}
	return bad.err()
}

// ValidateCaptchaSecret checks a secret before it is sealed.
func ValidateCaptchaSecret(secret string) error {
	const most = 256
	if len(secret) > most || hasControl(secret) {
		return invalid("captchaSecret", "must have at most %d bytes and no control characters", most)
	}
	return nil
}

func validateWebAddress(field, s string) error {
	u, err := url.Parse(s)
	if err != nil || len(s) > maxSupportURL || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || hasControl(s) {
		return invalid(field, "%q is not a valid address", clip(s)).WithHint("e.g. https://example.com/terms")
	}
	return nil
}

func domains(field string, all []string) error {
	const most = 256
	if len(all) > most {
		return invalid(field, "must have at most %d domains", most)
	}
	for i, d := range all {
		if len(d) > most || !mailDomainPattern.MatchString(d) {
			return invalid(fmt.Sprintf("%s[%d]", field, i), "%q is not a valid domain", clip(d)).WithHint("e.g. example.com")
		}
	}
	return nil
}

// AllowsAddress reports whether an e-mail address may sign up: neither its domain nor a
// parent domain is blocked, and one of them is allowed if there is a list of allowed
// domains.
func (s SignUpSettingsSpec) AllowsAddress(email string) bool {
	_, domain, _ := strings.Cut(email, "@")
	in := func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) }
	return !slices.ContainsFunc(s.BlockedDomains, in) && (len(s.AllowedDomains) == 0 || slices.ContainsFunc(s.AllowedDomains, in))
}

// SellsBy reports whether a reseller's customers may pay by a price book: the reseller's
// own, or one of the cluster's that is named default, that the reseller itself pays by, or
// that it may offer.
func (o Organization) SellsBy(b PriceBook) bool {
	if b.Meta.Organization != "" {
		return b.Meta.Organization == o.Meta.ID
	}
	id := PriceBookID(b.Meta.ID)
	return b.Meta.Name == DefaultPriceBook || id == o.Spec.PriceBook || slices.Contains(o.Spec.Offers, id)
}
