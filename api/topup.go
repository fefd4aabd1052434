package api

import (
	"strings"
	"time"
)

// TopUpState is the state of an organization's automatic top-up.
type TopUpState string

// Top-up states.
const (
	TopUpOff      TopUpState = "Off"
	TopUpReady    TopUpState = "Ready"
	TopUpCharging TopUpState = "Charging"
	TopUpRetrying TopUpState = "Retrying"
	TopUpLimited  TopUpState = "Limited"
	TopUpStopped  TopUpState = "Stopped"
)

// EventTopUpFailed is the type of the webhook event of a top-up that failed.
const EventTopUpFailed = "billing.top_up_failed"

// TopUpFailure is the data of an event of type EventTopUpFailed.
type TopUpFailure struct {
	Checkout               CheckoutID `json:"checkout,omitempty"` // empty: nothing was tried
	Currency               string     `json:"currency"`
	AmountMicros           int64      `json:"amountMicros"`
	Error                  string     `json:"error"`
	AuthenticationRequired bool       `json:"authenticationRequired,omitempty"`
	NextAt                 *time.Time `json:"nextAt,omitempty"` // not set: it was switched off
}

// TopUpSpec is the settings in the form that the store keeps.
type TopUpSpec struct {
	Enabled            bool   `json:"enabled,omitempty"`
	Currency           string `json:"currency,omitempty"`
	BelowMicros        int64  `json:"belowMicros,omitempty"`
	AmountMicros       int64  `json:"amountMicros,omitempty"`
	MonthlyLimitMicros int64  `json:"monthlyLimitMicros,omitempty"`
	Card               CardID `json:"card,omitempty"`
}

// StoredTopUp is the stored settings of an organization. The API writes the spec, and
// the leader the status; both are one object, so that each charge is decided by the
// settings of its revision.
type StoredTopUp struct {
	Kind   Kind
	Meta   Meta
	Spec   TopUpSpec
	Status TopUpStatus
}

// TopUpID returns the ID of the settings of an organization.
func TopUpID(org OrganizationID) string {
	_, random, _ := strings.Cut(string(org), "-")
	return KindTopUp.Info().IDPrefix + "-" + random
}

// View returns the settings in the form of the API.
func (t StoredTopUp) View() TopUp {
	s := t.Spec
	out := TopUp{Organization: OrganizationID(t.Meta.Organization), Revision: t.Meta.Revision, Enabled: s.Enabled, Currency: s.Currency, BelowMicros: s.BelowMicros,
		AmountMicros: s.AmountMicros, MonthlyLimitMicros: s.MonthlyLimitMicros, Card: s.Card, Status: t.Status}
	switch {
	case t.Status.Checkout != "":
		out.Status.State = TopUpCharging
	case !s.Enabled:
		out.Status.State = TopUpOff
	case t.Status.State == "":
		out.Status.State = TopUpReady
	}
	return out
}

// Spec returns the settings in a client's request, in the form of the store.
func (t TopUp) Spec() TopUpSpec {
	return TopUpSpec{Enabled: t.Enabled, Currency: t.Currency, BelowMicros: t.BelowMicros, AmountMicros: t.AmountMicros, MonthlyLimitMicros: t.MonthlyLimitMicros, Card: t.Card}
}

// Saved returns the status after the settings were saved: failures are forgotten, and
// what was charged is not.
func (s TopUpStatus) Saved() TopUpStatus {
	return TopUpStatus{Month: s.Month, ChargedMicros: s.ChargedMicros, Checkout: s.Checkout, LastCheckout: s.LastCheckout}
}

// ValidateTopUp checks settings whose currency is known. limits are those of one
// payment; they apply to settings that are enabled.
func ValidateTopUp(s TopUpSpec, limits CardPayments) error {
	var bad faults
	bad.note(between("belowMicros", s.BelowMicros, 0, maxPriceMicros, " millionths"), between("amountMicros", s.AmountMicros, 0, maxPriceMicros, " millionths"),
		between("monthlyLimitMicros", s.MonthlyLimitMicros, 0, maxPriceMicros, " millionths"))
	if !s.Enabled {
		return bad.err()
	}
	switch {
	case s.AmountMicros < limits.MinMicros || s.AmountMicros > limits.MaxMicros:
		bad.note(invalid("amountMicros", "must be between %d and %d millionths, got %d", limits.MinMicros, limits.MaxMicros, s.AmountMicros))
	case s.AmountMicros%chargeStep(s.Currency) != 0:
		bad.note(invalid("amountMicros", "must be a multiple of %d millionths, the least that is charged in %s", chargeStep(s.Currency), clip(s.Currency)))
	}
	if s.MonthlyLimitMicros < s.AmountMicros {
		bad.note(invalid("monthlyLimitMicros", "must be at least the amount of one charge, %d millionths, got %d", s.AmountMicros, s.MonthlyLimitMicros))
	}
	return bad.err()
}
