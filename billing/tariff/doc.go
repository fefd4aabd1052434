// Package tariff makes charges of use. It is pure: the same use and book give
// the same charges to the micro, and every charge can say which hours of which
// resource it is made of.
//
//	Use (per hour) ─► Meter's rate of that hour ─► commitment, then tiers ─► Charge
//	Charges ─► discounts ─► minimum ─► taxes ─► Statement
//
// A statement is one organization's, of one period. Amounts are micros, whole
// millionths of the currency; each is rounded once, half a micro away from
// zero, and sums are never rounded.
//
// Tiers are graduated: a meter's use of the whole organization counts from the
// period's beginning, hour by hour, and within an hour in the order of projects
// and resources. So what each resource pays is defined, and use that is told
// again, or in other pieces, costs the same.
package tariff
