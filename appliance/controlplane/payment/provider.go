package payment

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Provider takes cards. Errors are ErrUnknown, ErrSignature, a *Refused, or say that
// the provider could not be asked.
type Provider interface {
	// Open makes the page of a checkout. The same order again, within a day, answers
	// the same page.
	Open(ctx context.Context, o Order) (Page, error)
	// Look returns what became of a page, or ErrUnknown.
	Look(ctx context.Context, session string) (Outcome, error)
	// Notice returns the checkout that an event is about, empty for events that are
	// about none; ErrSignature if it is not the provider's.
	Notice(header http.Header, body []byte) (api.CheckoutID, error)
}

// Order is what is to be paid.
type Order struct {
	Checkout     api.CheckoutID
	Currency     string
	AmountMicros int64
	What         string // what the payer reads
	Back         string // where the page leads when it is left
	ExpiresAt    time.Time
}

// Page is where it is paid.
type Page struct {
	Session string // what the provider calls it
	URL     string
}

// Outcome is what became of a page.
type Outcome struct {
	Checkout api.CheckoutID
	State    api.CheckoutState
	Reason   string // why the last try was refused
	// What was paid, where it was.
	Currency     string
	AmountMicros int64
	Reference    string // what the provider calls the charge
}

var (
	// ErrUnknown means that the provider has no such page.
	ErrUnknown = errors.New("the payment provider does not know the checkout")
	// ErrSignature means that an event is not the provider's.
	ErrSignature = errors.New("the signature is not valid")
)

// Refused means that the provider has understood and will not do it.
type Refused struct{ Reason string }

// Error implements error.
func (r *Refused) Error() string { return "the payment provider refused: " + r.Reason }
