// Package billing turns usage records and a price book into an invoice, and an
// invoice into double entries. All of it is pure: the same records give the
// same invoice to the micro, in whatever order and however often they come.
//
//	meter ─► UsageRecord ─► Rate ─► Line ─► Invoice ─► Transaction ─► Ledger
//
// Amounts are integers in millionths of the currency ("micros"). A line's
// amount is quantity × price / per with 128 bits between, rounded once, half a
// micro up; totals are sums of lines, never rounded.
package billing
