// Package tariff computes charges for usage. It is pure: the same usage and book give
// the same charges to the micro, and every charge can be traced to the hours of the
// resource that it consists of.
//
//	Use (per hour) ─► Meter's rate of that hour ─► commitment, then tiers ─► Charge
//	Charges ─► discounts ─► minimum ─► taxes ─► Statement
//
// A statement covers one organization and one period. Amounts are micros, whole
// millionths of the currency; each is rounded once, half a micro away from zero, and
// sums are never rounded.
//
// Tiers are graduated: the whole organization's usage of a meter counts from the
// beginning of the period, hour by hour, and within an hour in the order of projects
// and resources. This defines what each resource pays, and usage that is reported
// again, or in other pieces, costs the same.
package tariff
