package api

import (
	"cmp"
	"time"
)

// CardState is the state of a card on file.
type CardState string

// Card states. A card without one is being opened.
const (
	CardOpening CardState = "Opening"
	CardOpen    CardState = "Open"
	CardSaved   CardState = "Saved"
	CardFailed  CardState = "Failed"
	CardExpired CardState = "Expired"
)

// MaxCards limits the cards of an organization, including those that are being saved,
// since stolen payment cards are tested in bulk.
const MaxCards = 10

// CardPageLife is how long the page on which a card is entered is valid.
const CardPageLife = time.Hour

// Ended reports whether the attempt to save the card ended without success.
func (c Card) Ended() bool { return c.Status.State == CardFailed || c.Status.State == CardExpired }

// Pending reports whether the card may still be entered on its page.
func (c Card) Pending() bool { return !c.Ended() && c.Status.State != CardSaved }

// Usable returns an error unless the card can be charged at a time: it was saved, and the
// month in which it expires has not ended.
func (c Card) Usable(now time.Time) error {
	st := c.Status
	end := time.Date(st.ExpiryYear, time.Month(st.ExpiryMonth)+1, 1, 0, 0, 0, 0, time.UTC)
	switch {
	case st.State != CardSaved:
		return Errorf(CodeState, "card %s: state is %s, want %s", c.Meta.ID, cmp.Or(st.State, CardOpening), CardSaved)
	case !now.Before(end.Add(24 * time.Hour)): // it is still that month in other time zones
		return Errorf(CodeState, "card %s ending %s expired in %04d-%02d", c.Meta.ID, st.LastDigits, st.ExpiryYear, st.ExpiryMonth).WithHint("add another card")
	}
	return nil
}

// Charged returns the status of a checkout that charges the card, before the provider is
// contacted.
func (c Card) Charged() CheckoutStatus {
	return CheckoutStatus{State: CheckoutProcessing, Customer: c.Status.Customer, PaymentMethod: c.Status.PaymentMethod}
}

// DefaultCardClaim returns the claim that the default card of an organization holds, so
// that concurrent writes cannot make two cards the default.
func DefaultCardClaim(org OrganizationID) []string { return []string{"card-default/" + string(org)} }
