package dunning

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// dueAgain returns since when an organization owes what it had paid: a payment that was
// refunded or disputed opens an invoice again whose due date may be long past, and is due
// from the day on which the money was returned. open are the open invoices, the oldest
// first. It returns zero if nothing was returned after the due date of the oldest one.
func dueAgain(payments []api.Payment, currency string, open []api.OpenInvoice) (since time.Time) {
	if len(open) == 0 {
		return since
	}
	owed := int64(0)
	for _, o := range open {
		owed += o.LeftMicros
	}
	var returned int64
	for _, p := range payments {
		if p.Spec.Currency != currency || !p.Meta.CreatedAt.After(open[0].DueAt) {
			continue
		}
		switch typ := p.Spec.Type; {
		case typ.Outgoing():
			returned += p.Spec.AmountMicros
			if p.Meta.CreatedAt.After(since) {
				since = p.Meta.CreatedAt
			}
		case typ == api.PaymentRefundReversal || typ == api.PaymentDisputeReversal:
			returned -= p.Spec.AmountMicros
		}
	}
	if returned <= 0 {
		return time.Time{}
	}
	// What is owed beyond it was never paid, and belongs to the most recent invoices.
	never := owed - returned
	for i := len(open) - 1; i >= 0 && never > 0; i-- {
		if never -= open[i].LeftMicros; never <= 0 && open[i].DueAt.Before(since) {
			since = open[i].DueAt
		}
	}
	return since
}

// unpaidSince returns since when the oldest open invoice is due.
func (s Balance) unpaidSince() time.Time {
	if s.DueAgain.After(s.Open[0].DueAt) {
		return s.DueAgain
	}
	return s.Open[0].DueAt
}
