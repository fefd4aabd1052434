package api

import (
	"crypto/sha256"
	"time"
)

// RefundState is the state of a refund.
type RefundState string

// States of refunds.
const (
	RefundPending   RefundState = "Pending"
	RefundSucceeded RefundState = "Succeeded"
	RefundFailed    RefundState = "Failed"
)

// MaxRefunds limits the refunds of one payment, including those that failed.
const MaxRefunds = 100

// RefundFailsWithin is how long after its creation a refund that has succeeded may still
// fail, because the bank of the card returns the money
// (docs.stripe.com/refunds, "Handle failed refunds").
const RefundFailsWithin = 30 * 24 * time.Hour

// Types of the webhook events of refunds, about which the organization's payers get mail.
const (
	EventRefunded     = "billing.refunded"
	EventRefundFailed = "billing.refund_failed"
)

// RefundNotice is the data of an event of type EventRefunded or EventRefundFailed.
type RefundNotice struct {
	Refund       RefundID  `json:"refund"`
	Payment      PaymentID `json:"payment"`
	Currency     string    `json:"currency"`
	AmountMicros int64     `json:"amountMicros"`
	Reason       string    `json:"reason"`
	ByCard       bool      `json:"byCard,omitempty"`
}

// Left returns the part of the payment that can be refunded, in millionths.
func (p Payment) Left() int64 {
	if p.Spec.Type != PaymentIn {
		return 0
	}
	return max(0, p.Spec.AmountMicros-p.Status.RefundedMicros-p.Status.DisputedMicros)
}

// Done reports whether the provider is not asked about the refund any more.
func (r Refund) Done(now time.Time) bool {
	switch r.Status.State {
	case RefundFailed:
		return true
	case RefundSucceeded:
		return r.Spec.Manual || now.Sub(r.Meta.CreatedAt) > RefundFailsWithin
	}
	return false
}

// ValidateRefund checks a spec in a client's request.
func ValidateRefund(s RefundSpec) error {
	var bad faults
	if s.Payment == "" {
		bad.note(invalid("spec.payment", "a payment is required"))
	}
	if s.Reason == "" {
		bad.note(invalid("spec.reason", "a reason is required").WithHint("the customer reads it"))
	}
	bad.note(between("spec.amountMicros", s.AmountMicros, 0, maxPriceMicros, " millionths"), text("spec.reason", s.Reason), text("spec.reference", s.Reference))
	return bad.err()
}

// RefundOf returns the spec of a refund of a payment, with what was left out, or why the
// payment cannot be refunded so.
func RefundOf(s RefundSpec, p Payment) (RefundSpec, error) {
	left := p.Left()
	s.Payment, s.Currency, s.Manual = PaymentID(p.Meta.ID), p.Spec.Currency, s.Manual || !p.Spec.ByCard()
	if s.AmountMicros == 0 {
		s.AmountMicros = left
	}
	step := chargeStep(s.Currency)
	switch {
	case p.Spec.Type != PaymentIn:
		return s, Errorf(CodeState, "payment %s: type is %s, want %s", p.Meta.ID, p.Spec.Type, PaymentIn).At("spec.payment").WithHint("only money that was received can be refunded")
	case p.Status.Refunds >= MaxRefunds:
		return s, Errorf(CodeState, "payment %s has %d refunds, at most %d are allowed", p.Meta.ID, p.Status.Refunds, MaxRefunds).At("spec.payment")
	case left == 0:
		return s, Errorf(CodeState, "payment %s is refunded or disputed already", p.Meta.ID).At("spec.payment")
	case s.AmountMicros > left:
		return s, invalid("spec.amountMicros", "payment %s has %d millionths left to refund, got %d", p.Meta.ID, left, s.AmountMicros)
	case !s.Manual && s.AmountMicros%step != 0:
		return s, invalid("spec.amountMicros", "must be a multiple of %d millionths, the least that is refunded in %s", step, clip(s.Currency))
	case !s.Manual && s.Reference != "":
		return s, invalid("spec.reference", "the payment provider makes this refund").WithHint("set manual if the money was returned without it")
	case s.Manual && s.Reference == "":
		return s, invalid("spec.reference", "a reference is required").WithHint("its name outside of Basalt, e.g. the bank's transaction number of the transfer")
	}
	return s, nil
}

// Entry returns the ledger's entry of a refund.
func (r Refund) Entry(at time.Time) PaymentSpec {
	s := PaymentSpec{Type: PaymentOut, Currency: r.Spec.Currency, AmountMicros: r.Spec.AmountMicros, Reference: r.Spec.Reference, ReceivedAt: at, Note: r.Spec.Reason}
	if s.Reference == "" {
		s.Reference = r.Meta.ID
	}
	return s
}

// Reversal returns the ledger's entry that takes back a refund that failed.
func (r Refund) Reversal(at time.Time) PaymentSpec {
	s := r.Entry(at)
	s.Type, s.Reference = PaymentRefundReversal, r.Meta.ID+" failed"
	return s
}

// Notice returns the data of an event about the refund.
func (r Refund) Notice() RefundNotice {
	return RefundNotice{Refund: RefundID(r.Meta.ID), Payment: r.Spec.Payment, Currency: r.Spec.Currency, AmountMicros: r.Spec.AmountMicros, Reason: r.Spec.Reason, ByCard: !r.Spec.Manual}
}

// FoundRefundIDOf returns the ID of a refund that was made at the provider, by the
// provider's ID.
func FoundRefundIDOf(provider string) RefundID {
	sum := sha256.Sum256([]byte("provider\x00" + provider))
	return RefundID(NewID(KindRefund, sum[:]))
}

// RefundIDOf returns the ID of the refund that a request with an Idempotency-Key creates,
// or a random one without a key.
func RefundIDOf(key string) RefundID {
	if key == "" {
		return RefundID(RandomID(KindRefund))
	}
	sum := sha256.Sum256([]byte(key))
	return RefundID(NewID(KindRefund, sum[:]))
}
