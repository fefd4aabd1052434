package api

import "time"

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

// DefaultCardClaim returns the claim that the default card of an organization holds, so
// that concurrent writes cannot make two cards the default.
func DefaultCardClaim(org OrganizationID) []string { return []string{"card-default/" + string(org)} }
