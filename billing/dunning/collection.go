package dunning

import (
	"cmp"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

const (
	// chargeWithin is how long the charge of a new invoice, or one that is repeated, may
	// take to begin.
	chargeWithin = time.Hour
	// chargeTakes is the longest time that the outcome of a charge is waited for.
	chargeTakes = 24 * time.Hour
)

// Collection is what the automatic payment by a card on file does about the open invoices.
// The times are zero if it does nothing.
type Collection struct {
	ChargingUntil time.Time // a charge is in progress, or begins; ends at the latest then
	RetryUntil    time.Time // the last charge failed, and is repeated until then
	// Waits: the open invoices amount to less than is charged at once, and are charged with
	// a later one.
	Waits bool
}

// CollectionOf returns the collection of the open invoices, the oldest first; issued is when
// the last of them was.
func CollectionOf(t api.StoredAutoPay, open []api.OpenInvoice, currency string, issued time.Time) Collection {
	if len(open) == 0 {
		return Collection{}
	}
	i := t.Status.Of(open[0].Invoice)
	sum := int64(0)
	for _, o := range open {
		sum += o.LeftMicros
	}
	switch {
	case t.Status.Checkout != "" && t.Status.Since != nil: // of whichever invoice: payments count for the oldest
		return Collection{ChargingUntil: t.Status.Since.Add(chargeTakes)}
	case !t.Spec.Enabled:
	case api.Chargeable(currency, sum) < api.LeastCharge(currency):
		return Collection{Waits: true}
	case i.NextAt != nil:
		return Collection{RetryUntil: i.NextAt.Add(chargeWithin)}
	case i.Failures == 0:
		return Collection{ChargingUntil: issued.Add(chargeWithin)}
	}
	return Collection{}
}

// postpones reports whether a status is not to follow the previous one yet: nothing gets
// worse during a charge, and no reminder is sent before a charge is repeated, since each
// failure was announced already. Resources are stopped in time nonetheless.
func (c Collection) postpones(now time.Time, next, was api.BillingStatus) bool {
	worsens := worse(next.State, cmp.Or(was.State, api.BillingOK)) || next.DeleteWarnedAt != nil && was.DeleteWarnedAt == nil
	return worsens && (now.Before(c.ChargingUntil) || now.Before(c.RetryUntil) && next.State == api.BillingWarn)
}
