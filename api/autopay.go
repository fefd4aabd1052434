package api

import (
	"slices"
	"strings"
	"time"
)

// AutoPayState is the state of an organization's automatic payment of invoices.
type AutoPayState string

// States of automatic payments.
const (
	AutoPayOff      AutoPayState = "Off"
	AutoPayReady    AutoPayState = "Ready"
	AutoPayCharging AutoPayState = "Charging"
	AutoPayRetrying AutoPayState = "Retrying"
	AutoPayStopped  AutoPayState = "Stopped"
)

// EventAutoPayFailed is the type of the webhook event of an automatic payment that failed.
const EventAutoPayFailed = "billing.auto_pay_failed"

// AutoPayFailure is the data of an event of type EventAutoPayFailed.
type AutoPayFailure struct {
	Invoice                InvoiceID  `json:"invoice"`
	Number                 string     `json:"number"`
	Checkout               CheckoutID `json:"checkout,omitempty"` // empty: nothing was tried
	Currency               string     `json:"currency"`
	AmountMicros           int64      `json:"amountMicros"`
	Error                  string     `json:"error"`
	AuthenticationRequired bool       `json:"authenticationRequired,omitempty"`
	NextAt                 *time.Time `json:"nextAt,omitempty"` // not set: it was the last attempt
}

// AutoPaySpec is the settings in the form that the store keeps. The last consent is kept
// while they are disabled.
type AutoPaySpec struct {
	Enabled   bool       `json:"enabled,omitempty"`
	Card      CardID     `json:"card,omitempty"`
	ConsentBy string     `json:"consentBy,omitempty"`
	ConsentAt *time.Time `json:"consentAt,omitempty"`
}

// StoredAutoPay is the stored settings of an organization. The API writes the spec, and
// the leader the status; both are one object, so that each charge is decided by the
// settings of its revision.
type StoredAutoPay struct {
	Kind   Kind
	Meta   Meta
	Spec   AutoPaySpec
	Status AutoPayStatus
}

// AutoPayID returns the ID of the settings of an organization.
func AutoPayID(org OrganizationID) string {
	_, random, _ := strings.Cut(string(org), "-")
	return KindAutoPay.Info().IDPrefix + "-" + random
}

// View returns the settings in the form of the API.
func (t StoredAutoPay) View() AutoPay {
	out := AutoPay{Organization: OrganizationID(t.Meta.Organization), Revision: t.Meta.Revision, Enabled: t.Spec.Enabled, Card: t.Spec.Card,
		Consent: t.Spec.Enabled, ConsentBy: t.Spec.ConsentBy, ConsentAt: t.Spec.ConsentAt, Status: t.Status}
	given := func(i AutoPayInvoice) bool { return i.Failures > 0 && i.NextAt == nil }
	switch invoices := t.Status.Invoices; {
	case t.Status.Checkout != "":
		out.Status.State = AutoPayCharging
	case !t.Spec.Enabled:
		out.Status.State = AutoPayOff
	case slices.ContainsFunc(invoices, given):
		out.Status.State = AutoPayStopped
	case slices.ContainsFunc(invoices, func(i AutoPayInvoice) bool { return i.NextAt != nil }):
		out.Status.State = AutoPayRetrying
	default:
		out.Status.State = AutoPayReady
	}
	return out
}

// Saved returns the status after the settings were saved: failures are forgotten, and a
// charge that is in progress is not.
func (s AutoPayStatus) Saved() AutoPayStatus {
	return AutoPayStatus{Checkout: s.Checkout, Invoice: s.Invoice, Since: s.Since}
}

// Of returns what the status records about an invoice; without failures if nothing.
func (s AutoPayStatus) Of(id InvoiceID) AutoPayInvoice {
	for _, i := range s.Invoices {
		if i.Invoice == id {
			return i
		}
	}
	return AutoPayInvoice{Invoice: id}
}

// ValidateAutoPay checks settings in a client's request.
func ValidateAutoPay(s AutoPay) error {
	if s.Enabled && !s.Consent {
		return invalid("consent", "must be true to enable automatic payments").WithHint("whoever pays must agree that invoices are charged to the card")
	}
	return nil
}
