// Package payment takes money by card through a payment provider. A checkout
// (api.Checkout) is one payment, on a page of the provider's:
//
//	Opening ─► page made ─► Open ─► paid ─► Paid, with an api.Payment in the same batch
//	   │                     ├────► Processing ─► Paid or Failed
//	   └─► no page in time   └────► nobody paid ─► Expired
//	       ─► Failed
//
// The object is written before the provider is asked for a page, and the page's
// address is shown after the provider's name for it was written: there is no page that
// can be paid and that nobody knows of. What becomes of a page only the provider says,
// when it is asked. Its events are no more than a reason to ask at once, so that it does
// not matter when they come, how often, and in which order; without any, the leader
// asks from time to time (Collector). The payment claims the provider's name of the
// charge (api.PaymentClaim), so that the ledger has it once whoever asks, and how many.
package payment
