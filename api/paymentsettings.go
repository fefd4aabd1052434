package api

import (
	"cmp"
	"regexp"
)

// The payment settings are stored as two objects, for the same reason as the mail
// settings.
const (
	PaymentSettingsID = "paysettings-000000000000"
	PaymentStatusID   = "paysettings-000000000001" // its status; its spec is empty
)

// PaymentProvider is the service that processes card payments for the cluster's
// operator.
type PaymentProvider string

// PaymentStripe is https://stripe.com.
const PaymentStripe PaymentProvider = "stripe"

// Limits of one checkout unless the settings set others.
const (
	defaultMinCheckout = 5_000_000
	defaultMaxCheckout = 10_000_000_000
	// microsPerCent is the unit of checkout amounts: a part of a cent cannot be
	// charged.
	microsPerCent = 10_000
)

// PaymentSettingsSpec is the settings in the form that the store keeps.
type PaymentSettingsSpec struct {
	Enabled       bool            `json:"enabled,omitempty"`
	Provider      PaymentProvider `json:"provider,omitempty"`
	SecretKey     string          `json:"secretKey,omitempty"`     // sealed
	WebhookSecret string          `json:"webhookSecret,omitempty"` // sealed
	PortalURL     string          `json:"portalURL,omitempty"`
	MinMicros     int64           `json:"minMicros,omitempty"`
	MaxMicros     int64           `json:"maxMicros,omitempty"`
	// ChargeDisputeFees reports whether the provider's fees for disputes are charged.
	ChargeDisputeFees bool `json:"chargeDisputeFees,omitempty"`
}

// StoredPaymentSettings is either of the two objects. The leader writes the status of
// the second.
type StoredPaymentSettings struct {
	Kind   Kind
	Meta   Meta
	Spec   PaymentSettingsSpec
	Status PaymentProviderStatus
}

// View returns what operators may read: everything except the secrets.
func (p StoredPaymentSettings) View(status PaymentProviderStatus) PaymentSettings {
	s := p.Spec
	return PaymentSettings{Revision: p.Meta.Revision, Enabled: s.Enabled, Provider: s.Provider, HasSecretKey: s.SecretKey != "", HasWebhookSecret: s.WebhookSecret != "",
		PortalURL: s.PortalURL, MinMicros: s.MinMicros, MaxMicros: s.MaxMicros, ChargeDisputeFees: s.ChargeDisputeFees, Status: status}
}

// Spec returns the settings in a client's request, with defaults for what it left out.
func (s PaymentSettings) Spec() PaymentSettingsSpec {
	return PaymentSettingsSpec{Enabled: s.Enabled, Provider: cmp.Or(s.Provider, PaymentStripe), SecretKey: s.SecretKey, WebhookSecret: s.WebhookSecret, PortalURL: s.PortalURL,
		MinMicros: cmp.Or(s.MinMicros, defaultMinCheckout), MaxMicros: cmp.Or(s.MaxMicros, defaultMaxCheckout), ChargeDisputeFees: s.ChargeDisputeFees}
}

// Stripe's keys begin with sk_ or, restricted, rk_; the secrets of its webhooks with
// whsec_ (docs.stripe.com/keys, docs.stripe.com/webhooks).
var (
	stripeKey    = regexp.MustCompile(`^(sk|rk)_[A-Za-z0-9_]{8,240}$`)
	stripeSecret = regexp.MustCompile(`^whsec_[A-Za-z0-9+/=_-]{8,240}$`)
)

// ValidatePaymentSecrets checks the given secrets before they are sealed.
func ValidatePaymentSecrets(s PaymentSettingsSpec) error {
	var bad faults
	if s.SecretKey != "" && !stripeKey.MatchString(s.SecretKey) {
		bad.note(invalid("secretKey", "not a secret key of Stripe").WithHint("it begins with sk_ or rk_; the publishable key (pk_) is another one"))
	}
	if s.WebhookSecret != "" && !stripeSecret.MatchString(s.WebhookSecret) {
		bad.note(invalid("webhookSecret", "not a signing secret of Stripe").WithHint("it begins with whsec_ and is shown with the webhook endpoint in Stripe's dashboard"))
	}
	return bad.err()
}

// ValidatePaymentSettings checks settings that Spec returned.
func ValidatePaymentSettings(s PaymentSettingsSpec) error {
	var bad faults
	given := func(field, value string) bool {
		if value == "" && s.Enabled {
			bad.note(invalid(field, "must not be empty while payments are enabled"))
		}
		return value != ""
	}
	if s.Provider != PaymentStripe {
		bad.note(invalid("provider", "%q is not supported", clip(string(s.Provider))).WithHint("want stripe"))
	}
	given("secretKey", s.SecretKey)
	given("webhookSecret", s.WebhookSecret)
	if given("portalURL", s.PortalURL) {
		bad.note(validatePortalURL(s.PortalURL))
	}
	bad.note(between("minMicros", s.MinMicros, microsPerCent, maxPriceMicros, " millionths"), between("maxMicros", s.MaxMicros, microsPerCent, maxPriceMicros, " millionths"))
	if s.MaxMicros < s.MinMicros {
		bad.note(invalid("maxMicros", "must not be less than minMicros (%d)", s.MinMicros))
	}
	return bad.err()
}
