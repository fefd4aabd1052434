package api

import (
	"crypto/sha256"
	"strconv"
	"time"
)

// DisputeState is the state of a dispute.
type DisputeState string

// States of disputes.
const (
	DisputeInquiry       DisputeState = "Inquiry"
	DisputeNeedsResponse DisputeState = "NeedsResponse"
	DisputeUnderReview   DisputeState = "UnderReview"
	DisputeWon           DisputeState = "Won"
	DisputeLost          DisputeState = "Lost"
	DisputeClosed        DisputeState = "Closed"
)

// Types of the webhook events of disputes: when money is taken back, and when the dispute
// has ended.
const (
	EventDisputed      = "billing.disputed"
	EventDisputeClosed = "billing.dispute_closed"
)

// DisputeNotice is the data of an event of type EventDisputed or EventDisputeClosed.
type DisputeNotice struct {
	Dispute      DisputeID    `json:"dispute"`
	Payment      PaymentID    `json:"payment"`
	Currency     string       `json:"currency"`
	AmountMicros int64        `json:"amountMicros"`
	Reason       string       `json:"reason"`
	State        DisputeState `json:"state"`
}

// DisputeIDOf returns the ID of the dispute with an ID of the provider.
func DisputeIDOf(provider string) DisputeID {
	sum := sha256.Sum256([]byte(provider))
	return DisputeID(NewID(KindDispute, sum[:]))
}

// Ended reports whether the bank has decided about a dispute.
func (s DisputeState) Ended() bool {
	return s == DisputeWon || s == DisputeLost || s == DisputeClosed
}

// Blocks reports whether a card with such a dispute is not charged automatically. A lost
// dispute means that its holder did not agree to a charge.
func (s DisputeState) Blocks() bool { return s != DisputeWon && s != DisputeClosed }

// Done reports whether the provider is not asked about the dispute any more: it has ended,
// and what was won has been returned.
func (d Dispute) Done() bool {
	return d.Status.State.Ended() && (d.Status.State != DisputeWon || d.Status.WithdrawnMicros == 0)
}

// Notice returns the data of an event about the dispute in a state.
func (d Dispute) Notice(state DisputeState) DisputeNotice {
	return DisputeNotice{Dispute: DisputeID(d.Meta.ID), Payment: d.Spec.Payment, Currency: d.Spec.Currency, AmountMicros: d.Spec.AmountMicros, Reason: d.Spec.Reason, State: state}
}

// DisputeEntry returns the ledger's entry for a change of what a dispute, or its fee, takes
// off the balance. n is the number of the entry among those of the dispute.
func DisputeEntry(id DisputeID, typ PaymentType, currency string, change int64, n int64, at time.Time) PaymentSpec {
	s := PaymentSpec{Type: typ, Currency: currency, AmountMicros: change, ReceivedAt: at, Note: string(typ), Reference: string(id) + " " + strconv.FormatInt(n, 10)}
	if change < 0 {
		s.Type, s.AmountMicros, s.Note = PaymentDisputeReversal, -change, string(typ)+" returned"
	}
	return s
}
