// Package billing computes an invoice from usage and a price book, and double entries
// from an invoice. All of it is pure: the same usage gives the same invoice to the
// micro, in whatever order and however often its records arrived.
//
//	meter ─► UsageRecord ─► Use by the hour ─► tariff ─► invoice ─► ledger ─► dunning
//	                        (the store's sums)
//
// Amounts are integers in millionths of the currency ("micros"). A line's
// amount is rounded once, half a micro up, and so is its discount; totals are
// sums of lines, never rounded.
package billing
