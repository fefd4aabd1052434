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
	// Look returns the outcome of a page, or ErrUnknown.
	Look(ctx context.Context, session string) (Outcome, error)
	// Notice returns the checkout that an event is about, empty for other events;
	// ErrSignature if the event is not the provider's.
	Notice(header http.Header, body []byte) (api.CheckoutID, error)
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

// Page is the provider's page for a payment.
type Page struct {
	Session string // the provider's ID of it
	URL     string
}

// Outcome is the state of a page.
type Outcome struct {
	Checkout api.CheckoutID
	State    api.CheckoutState
	Reason   string // why the last attempt was refused
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
