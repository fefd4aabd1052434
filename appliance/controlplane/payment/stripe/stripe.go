// Package stripe accepts cards through Stripe's Checkout
// (docs.stripe.com/payments/checkout): each payment is made on a page of Stripe, so
// this program never sees a card number.
package stripe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
	"unicode"

	stripego "github.com/stripe/stripe-go/v84"
	"github.com/stripe/stripe-go/v84/webhook"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/outbound"
	"github.com/basalt-gpu/basalt/appliance/controlplane/payment"
)

const (
	requestTime = 10 * time.Second
	maxAnswer   = 1 << 20
	maxReason   = 256 // bytes
	// tolerance is how old an event's signature may be: Stripe signs each delivery
	// separately.
	tolerance = 5 * time.Minute
	// The metadata keys in which Stripe stores the ID of the checkout, the card or the
	// refund.
	label       = "basalt_checkout"
	cardLabel   = "basalt_card"
	refundLabel = "basalt_refund"
)

// NewClient returns the HTTP client for Stripe.
func NewClient(policy outbound.Policy) *http.Client {
	return outbound.NewClient(outbound.Options{Policy: policy, MaxBody: maxAnswer, Connect: 5 * time.Second, Header: requestTime, Silence: requestTime, Total: requestTime, Keep: true})
}

// Provider is an account at Stripe.
type Provider struct {
	client *stripego.Client
	secret string // signs events
}

// New returns the provider for settings whose secrets are decrypted. url replaces the
// API's address in tests; empty means Stripe's.
func New(s api.PaymentSettingsSpec, client *http.Client, url string) *Provider {
	config := &stripego.BackendConfig{HTTPClient: client, LeveledLogger: &stripego.LeveledLogger{Level: stripego.LevelNull},
		EnableTelemetry: stripego.Bool(false), MaxNetworkRetries: stripego.Int64(0)} // the caller retries
	if url != "" {
		config.URL = &url
	}
	b := stripego.GetBackendWithConfig(stripego.APIBackend, config)
	return &Provider{client: stripego.NewClient(s.SecretKey, stripego.WithBackends(&stripego.Backends{API: b, Connect: b, Uploads: b, MeterEvents: b})), secret: s.WebhookSecret}
}

// Open implements payment.Provider.
func (p *Provider) Open(ctx context.Context, o payment.Order) (payment.Page, error) {
	amount, err := minor(o.Currency, o.AmountMicros)
	if err != nil {
		return payment.Page{}, &payment.Refused{Reason: err.Error()}
	}
	id := string(o.Checkout)
	params := &stripego.CheckoutSessionCreateParams{
		Mode: stripego.String("payment"), PaymentMethodTypes: []*string{stripego.String("card")}, ClientReferenceID: &id,
		SuccessURL: &o.Back, CancelURL: &o.Back, ExpiresAt: stripego.Int64(o.ExpiresAt.Unix()),
		LineItems: []*stripego.CheckoutSessionCreateLineItemParams{{Quantity: stripego.Int64(1), PriceData: &stripego.CheckoutSessionCreateLineItemPriceDataParams{
			Currency: stripego.String(strings.ToLower(o.Currency)), UnitAmount: &amount,
			ProductData: &stripego.CheckoutSessionCreateLineItemPriceDataProductDataParams{Name: &o.What}}}},
		PaymentIntentData: &stripego.CheckoutSessionCreatePaymentIntentDataParams{Metadata: map[string]string{label: id}, Description: &o.What},
		Metadata:          map[string]string{label: id},
	}
	params.SetIdempotencyKey("basalt-" + id)
	return p.open(ctx, params)
}

// PageOutcome implements payment.Provider.
func (p *Provider) PageOutcome(ctx context.Context, session string) (payment.Outcome, error) {
	params := &stripego.CheckoutSessionRetrieveParams{}
	params.AddExpand("payment_intent")
	s, err := p.client.V1CheckoutSessions.Retrieve(ctx, session, params)
	if err != nil {
		return payment.Outcome{}, convertError(err)
	}
	if s.ID != session {
		return payment.Outcome{}, fmt.Errorf("answer of Stripe is about session %q, want %q", clean(s.ID), session)
	}
	return outcome(s)
}

// outcome returns the outcome of a session. Only cards are accepted, for which Stripe
// knows at once whether they were charged; slower states are handled nonetheless.
func outcome(s *stripego.CheckoutSession) (payment.Outcome, error) {
	o := payment.Outcome{Checkout: api.CheckoutID(s.ClientReferenceID)}
	if pi := s.PaymentIntent; pi != nil && pi.LastPaymentError != nil {
		o.Reason = reasonOf(pi.LastPaymentError)
	}
	switch {
	case s.Status == stripego.CheckoutSessionStatusOpen:
		o.State = api.CheckoutOpen
	case s.Status == stripego.CheckoutSessionStatusExpired:
		o.State = api.CheckoutExpired
	case s.Status != stripego.CheckoutSessionStatusComplete:
		return o, fmt.Errorf("session %s has unknown status %q", s.ID, clean(string(s.Status)))
	case s.PaymentStatus == stripego.CheckoutSessionPaymentStatusPaid && s.PaymentIntent != nil:
		o.State, o.Currency, o.Reference = api.CheckoutPaid, strings.ToUpper(string(s.Currency)), s.PaymentIntent.ID
		o.AmountMicros = micros(o.Currency, s.AmountTotal)
	case s.PaymentIntent != nil && (s.PaymentIntent.Status == stripego.PaymentIntentStatusRequiresPaymentMethod || s.PaymentIntent.Status == stripego.PaymentIntentStatusCanceled):
		o.State = api.CheckoutFailed
	default:
		o.State = api.CheckoutProcessing
	}
	return o, nil
}

// EventSubject implements payment.Provider.
func (p *Provider) EventSubject(header http.Header, body []byte) (payment.Subject, error) {
	if p.secret == "" {
		return payment.Subject{}, payment.ErrSignature
	}
	// Verified in constant time, on the body as it was received
	// (docs.stripe.com/webhooks/signature).
	if err := webhook.ValidatePayloadWithTolerance(body, header.Get("Stripe-Signature"), p.secret, tolerance); err != nil {
		return payment.Subject{}, payment.ErrSignature
	}
	return subjectOf(body)
}

// labels are the metadata keys by the kind of the object whose ID they store.
var labels = map[string]api.Kind{label: api.KindCheckout, cardLabel: api.KindCard, refundLabel: api.KindRefund}

// providerID is the form of Stripe's IDs of disputes and refunds.
var providerID = regexp.MustCompile(`^[a-z]{2,4}_[A-Za-z0-9_]{1,64}$`)

// subjectOf returns the checkout, the card, the refund or the dispute that an event names, of
// a refund that the cluster did not make the ID at Stripe,
// or nothing for other events. Nothing else is read from an event.
func subjectOf(body []byte) (payment.Subject, error) {
	var e struct {
		Object string `json:"object"`
		Data   struct {
			Object struct {
				ID       any            `json:"id"`
				Object   string         `json:"object"`
				Metadata map[string]any `json:"metadata"`
			} `json:"object"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return payment.Subject{}, fmt.Errorf("decode event of Stripe: %w", err)
	}
	if e.Object != "event" {
		return payment.Subject{}, nil
	}
	switch o := e.Data.Object; o.Object {
	case "dispute":
		if id, _ := o.ID.(string); providerID.MatchString(id) {
			return payment.Subject{Dispute: id}, nil
		}
	case "checkout.session", "payment_intent", "setup_intent", "refund":
		for key, want := range labels {
			id, _ := o.Metadata[key].(string)
			if kind, ok := api.KindOfID(id); ok && kind == want && api.LooksLikeID(id) {
				return payment.Subject{ID: id}, nil
			}
		}
		if id, _ := o.ID.(string); o.Object == "refund" && o.Metadata[refundLabel] == nil && providerID.MatchString(id) {
			return payment.Subject{Refund: id}, nil
		}
	}
	return payment.Subject{}, nil
}

// convertError converts an error: what Stripe refuses, what it does not know, and everything
// else, which may succeed later.
func convertError(err error) error {
	var e *stripego.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("ask Stripe: %w", err)
	}
	why := fmt.Errorf("Stripe responded with status %d, %s: %s (request %s)", e.HTTPStatusCode, clean(string(e.Type)), clean(e.Msg), clean(e.RequestID)) //nolint:staticcheck // a name
	switch e.HTTPStatusCode {
	case http.StatusNotFound:
		return fmt.Errorf("%w: %w", payment.ErrUnknown, why)
	case http.StatusBadRequest, http.StatusPaymentRequired:
		return &payment.Refused{Reason: why.Error()}
	}
	return why
}

// causes are those of the errors and declines that a payer can do something about
// (docs.stripe.com/error-codes, docs.stripe.com/declines/codes).
var causes = map[string]api.CauseCode{
	"authentication_required": api.CauseCardAuthentication, "insufficient_funds": api.CauseCardFunds, "expired_card": api.CauseCardExpired,
	"incorrect_number": api.CauseCardDetails, "incorrect_cvc": api.CauseCardDetails, "incorrect_zip": api.CauseCardDetails, "incorrect_address": api.CauseCardDetails,
	"invalid_number": api.CauseCardDetails, "invalid_cvc": api.CauseCardDetails, "invalid_expiry_month": api.CauseCardDetails, "invalid_expiry_year": api.CauseCardDetails,
}

// reasonOf returns the reason for the last error of a payment: a decline says more than
// the code of the error, which is card_declined for most of them.
func reasonOf(e *stripego.Error) api.Reason {
	code := cmp.Or(causes[string(e.DeclineCode)], causes[string(e.Code)], api.CauseCardDeclined)
	return api.PlainReason(cmp.Or(clean(e.Msg), "the card was declined"), code, "")
}

// clean returns a text of Stripe's as one short line.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, s)
	return strings.ToValidUTF8(s[:min(len(s), maxReason)], "")
}
