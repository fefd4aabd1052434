package api

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// PaymentType is the direction of a payment.
type PaymentType string

// Types of payments.
const (
	PaymentIn  PaymentType = "payment"
	PaymentOut PaymentType = "refund"
	// PaymentRefundReversal returns the amount of a refund that failed.
	PaymentRefundReversal PaymentType = "refund-reversal"
	// PaymentDispute takes back a payment that was disputed, PaymentDisputeFee the
	// provider's fee for that, and PaymentDisputeReversal returns either.
	PaymentDispute         PaymentType = "dispute"
	PaymentDisputeFee      PaymentType = "dispute-fee"
	PaymentDisputeReversal PaymentType = "dispute-reversal"
)

// Outgoing reports whether the amount is taken off the organization's balance.
func (t PaymentType) Outgoing() bool {
	return t == PaymentOut || t == PaymentDispute || t == PaymentDisputeFee
}

// Signed returns the amount with which the payment changes the organization's balance.
func (s PaymentSpec) Signed() int64 {
	if s.Type.Outgoing() {
		return -s.AmountMicros
	}
	return s.AmountMicros
}

// ByCard reports whether the payment was made at the payment provider, which then can
// refund it. The reference of such a payment is the provider's ID of the charge
// (docs.stripe.com/api/payment_intents).
func (s PaymentSpec) ByCard() bool {
	return s.Type == PaymentIn && strings.HasPrefix(s.Reference, "pi_")
}

// DefaultPayment fills in what was left out.
func DefaultPayment(s PaymentSpec) PaymentSpec {
	if s.Type == "" {
		s.Type = PaymentIn
	}
	return s
}

// ValidatePayment checks a spec.
func ValidatePayment(s PaymentSpec) error {
	var bad faults
	if s.Reference == "" {
		bad.note(invalid("spec.reference", "a reference is required").WithHint("its name outside of Basalt, e.g. the bank's transaction number: recording it twice has then no effect"))
	}
	bad.note(oneOf("spec.type", s.Type, PaymentIn, PaymentOut), currency(s.Currency),
		between("spec.amountMicros", s.AmountMicros, 1, maxPriceMicros, " millionths"),
		text("spec.reference", s.Reference), text("spec.note", s.Note))
	return bad.err()
}

// SamePayment reports whether both describe the same transfer. The time of receipt is
// ignored, since the server fills it in.
func SamePayment(a, b PaymentSpec) bool {
	return a.Type == b.Type && a.Currency == b.Currency && a.AmountMicros == b.AmountMicros && a.Reference == b.Reference
}

// PaymentClaim returns the claim that makes a reference unique within an organization.
func PaymentClaim(org OrganizationID, s PaymentSpec) []string {
	sum := sha256.Sum256([]byte(s.Reference))
	return []string{"payment/" + string(org) + "/" + hex.EncodeToString(sum[:])}
}

// PutPayment returns the command that records a payment, whose reference is claimed.
func PutPayment(id PaymentID, org string, s PaymentSpec) Command {
	return Command{Op: OpPutSpec, Kind: KindPayment, ID: string(id), Organization: org, Claims: PaymentClaim(OrganizationID(org), s), Data: Encode(s)}
}

// ReportPayment returns the command for the status of a payment, which is valid for the
// payment as it was read.
func ReportPayment(p Payment, st PaymentStatus) Command {
	return Command{Op: OpReport, Kind: KindPayment, ID: p.Meta.ID, Expect: p.Meta.Revision, Data: Encode(st)}
}
