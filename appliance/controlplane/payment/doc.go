// Package payment accepts card payments through a payment provider. A checkout
// (api.Checkout) is one payment, on a page of the provider:
//
//	Opening ─► page created ─► Open ─► paid ─► Paid, with an api.Payment in the same batch
//	   │                        ├────► Processing ─► Paid or Failed
//	   └─► no page in time      └────► not paid ─► Expired
//	       ─► Failed
//
// The object is written before the provider is asked for a page, and the page's address
// is returned after the provider's ID for it was written: no page can be paid that is
// not recorded. The outcome of a page is only what the provider returns when it is
// asked. Its events are only a reason to ask at once, so it does not matter when they
// arrive, how often, and in which order; without them, the leader asks from time to
// time (Collector). The payment claims the provider's ID of the charge
// (api.PaymentClaim), so that the ledger has it once, whichever nodes ask, and how
// many.
package payment
