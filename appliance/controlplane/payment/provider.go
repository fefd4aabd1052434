package payment

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Provider processes card payments. Errors are ErrUnknown, ErrSignature, a *Refused, or
// mean that the provider could not be reached.
type Provider interface {
	// Open creates the page of a checkout. For the same order, within a day, it returns
	// the same page.
	Open(ctx context.Context, o Order) (Page, error)
	// PageOutcome returns the outcome of a page, or ErrUnknown.
	PageOutcome(ctx context.Context, session string) (Outcome, error)
	// Charge charges a card on file, without its holder. For the same charge, within a
	// day, it charges once and returns the same outcome.
	Charge(ctx context.Context, o Charge) (Outcome, error)
	// ChargeOutcome returns the outcome of a charge by the provider's ID, or ErrUnknown.
	ChargeOutcome(ctx context.Context, charge string) (Outcome, error)
	// FindCharge returns the outcome of a charge whose ID at the provider is not known, or
	// ErrUnknown if there is none.
	FindCharge(ctx context.Context, o Charge) (Outcome, error)
	// OpenCard creates the page on which a card is entered. For the same order, within a
	// day, it returns the same page.
	OpenCard(ctx context.Context, o CardOrder) (Page, error)
	// CardPageOutcome returns the outcome of a card's page, or ErrUnknown.
	CardPageOutcome(ctx context.Context, session string) (CardOutcome, error)
	// Detach removes a stored card, so that it cannot be charged any more; it succeeds
	// if the card was removed before.
	Detach(ctx context.Context, paymentMethod string) error
	// Refund returns a part of a charge to the payer. For the same order, within a day, it
	// returns it once, and the same outcome.
	Refund(ctx context.Context, o RefundOrder) (RefundOutcome, error)
	// RefundOutcome returns the outcome of a refund by the provider's ID, or ErrUnknown.
	RefundOutcome(ctx context.Context, refund string) (RefundOutcome, error)
	// FindRefund returns the outcome of a refund whose ID at the provider is not known, or
	// ErrUnknown if there is none.
	FindRefund(ctx context.Context, o RefundOrder) (RefundOutcome, error)
	// Refunds returns the refunds that were made since a time, at most a thousand, without
	// those that were made by Refund.
	Refunds(ctx context.Context, since time.Time) ([]RefundOutcome, error)
	// Dispute returns a dispute by the provider's ID, or ErrUnknown.
	Dispute(ctx context.Context, dispute string) (DisputeOutcome, error)
	// Disputes returns the disputes that have begun since a time, at most a thousand.
	Disputes(ctx context.Context, since time.Time) ([]DisputeOutcome, error)
	// EventSubject returns what an event is about, which is empty for other events;
	// ErrSignature if the event is not the provider's.
	EventSubject(header http.Header, body []byte) (Subject, error)
}

// Order is what must be paid.
type Order struct {
	Checkout     api.CheckoutID
	Currency     string
	AmountMicros int64
	What         string // description for the payer
	Back         string // where the payer is sent afterwards
	ExpiresAt    time.Time
}

// Charge is a charge of a card on file.
type Charge struct {
	Checkout                api.CheckoutID
	Currency                string
	AmountMicros            int64
	What                    string // description for the payer
	Customer, PaymentMethod string // the provider's IDs
	CreatedAt               time.Time
}

// CardOrder is a card to be entered.
type CardOrder struct {
	Card      api.CardID
	Back      string // where the user is sent afterwards
	ExpiresAt time.Time
}

// CardOutcome is the state of the page of a card.
type CardOutcome struct {
	Card   api.CardID
	State  api.CardState
	Reason api.Reason // why the last attempt was refused
	// The card, if it was saved.
	Customer, PaymentMethod string // the provider's IDs
	Brand, LastDigits       string
	ExpiryMonth, ExpiryYear int
}

// RefundOrder is a refund to be made.
type RefundOrder struct {
	Refund       api.RefundID
	Charge       string // the provider's ID of what was paid
	Currency     string
	AmountMicros int64
}

// RefundOutcome is the state of a refund.
type RefundOutcome struct {
	Refund       api.RefundID // empty: it was not made by Refund
	State        api.RefundState
	Reason       string // why it failed
	ID           string // the provider's; empty: it was refused
	Charge       string // the provider's ID of what was paid
	CreatedAt    time.Time
	Currency     string
	AmountMicros int64
}

// DisputeOutcome is the state of a dispute.
type DisputeOutcome struct {
	ID, Charge      string // the provider's IDs
	State           api.DisputeState
	Reason          string
	Currency        string
	AmountMicros    int64
	WithdrawnMicros int64 // what the bank has, less what it has returned
	FeeMicros       int64 // the provider's fee, less what was returned of it; 0 if it is in another currency
	PaymentMethod   string
	RespondBy       *time.Time
}

// Subject is what an event is about: an object of the cluster, a dispute, or a refund that
// was not made by it.
type Subject struct {
	ID      string // of a checkout, a card or a refund
	Dispute string // the provider's ID
	Refund  string // the provider's ID
}

// Page is the provider's page for a payment or a card.
type Page struct {
	Session string // the provider's ID of it
	URL     string
}

// Outcome is the state of a page, or of a charge of a card on file.
type Outcome struct {
	Checkout api.CheckoutID
	State    api.CheckoutState
	Reason   api.Reason // why the last attempt was refused
	// AuthenticationRequired means that the bank wants the payer to confirm the payment.
	AuthenticationRequired bool
	Charge                 string // the provider's ID of the charge of a card on file
	// The payment, if there was one.
	Currency     string
	AmountMicros int64
	Reference    string // the provider's ID of the charge
}

var (
	// ErrUnknown means that the provider has no such page.
	ErrUnknown = errors.New("the payment provider does not know the checkout")
	// ErrSignature means that an event is not the provider's.
	ErrSignature = errors.New("the signature is not valid")
)

// Refused means that the provider has understood the request and refused it.
type Refused struct{ Reason string }

// Error implements error.
func (r *Refused) Error() string { return "the payment provider refused: " + r.Reason }

// because returns a reason that the payer reads.
func because(text string, code api.CauseCode) api.Reason { return api.PlainReason(text, code, "") }

// unknownCheckout is the reason of what the provider does not know any more.
var unknownCheckout = because(ErrUnknown.Error(), api.CausePaymentSilent)
