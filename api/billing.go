package api

import (
	"time"
	_ "time/tzdata" // a node need not have time zones
)

// BillingMode is how an organization pays.
type BillingMode string

// Modes of billing.
const (
	BillingInvoice BillingMode = "invoice"
	BillingPrepaid BillingMode = "prepaid"
)

// BillingState is how an organization stands with what it owes.
type BillingState string

// States of billing, each worse than the one before.
const (
	BillingOK        BillingState = "ok"
	BillingWarn      BillingState = "warn"
	BillingStop      BillingState = "stop"
	BillingSuspended BillingState = "suspended"
	BillingDeleteDue BillingState = "deleteDue"
)

const (
	maxAddress  = 8
	maxDueDays  = 366
	maxKeepDays = 3660
	// DefaultDueDays are from the issue of an invoice until it is due.
	DefaultDueDays = 14
)

// DefaultBilling fills in what was left out.
func DefaultBilling(old, b *OrganizationBilling, now time.Time) *OrganizationBilling {
	if b == nil {
		return nil
	}
	out := *b
	if out.Since.IsZero() && old != nil {
		out.Since = old.Since
	}
	if out.Since.IsZero() {
		out.Since = now.UTC().Truncate(time.Second)
	}
	if out.TimeZone == "" {
		out.TimeZone = "UTC"
	}
	if out.DueDays == 0 {
		out.DueDays = DefaultDueDays
	}
	if out.StopAfterDays == 0 && out.Mode == BillingInvoice {
		out.StopAfterDays = 7
	}
	if out.SuspendAfterDays == 0 {
		out.SuspendAfterDays = 1
		if out.Mode == BillingInvoice {
			out.SuspendAfterDays = max(14, out.StopAfterDays)
		}
	}
	return &out
}

// ValidateBilling checks how an organization pays.
func ValidateBilling(b *OrganizationBilling) *Error {
	if b == nil {
		return nil
	}
	if _, err := b.Zone(); err != nil || b.TimeZone == "Local" {
		return invalid("spec.billing.timeZone", "%q is no time zone", clip(b.TimeZone)).WithHint("an IANA name, as Europe/Berlin")
	}
	for _, err := range []*Error{address("spec.billing.address", b.Address), oneOf("spec.billing.mode", b.Mode, BillingInvoice, BillingPrepaid),
		between("spec.billing.dueDays", b.DueDays, 0, maxDueDays, " days"), text("spec.billing.taxId", b.TaxID),
		between("spec.billing.warnMicros", b.WarnMicros, 0, maxPriceMicros, " millionths"), between("spec.billing.creditMicros", b.CreditMicros, 0, maxPriceMicros, " millionths"),
		between("spec.billing.stopAfterDays", b.StopAfterDays, 0, maxDueDays, " days"), between("spec.billing.suspendAfterDays", b.SuspendAfterDays, b.StopAfterDays, maxDueDays, " days"),
		between("spec.billing.deleteAfterDays", b.DeleteAfterDays, 0, maxKeepDays, " days")} {
		if err != nil {
			return err
		}
	}
	return nil
}

func address(field string, lines []string) *Error {
	if len(lines) > maxAddress {
		return invalid(field, "%d lines, at most %d", len(lines), maxAddress)
	}
	for _, line := range lines {
		if err := text(field, line); err != nil {
			return err
		}
	}
	return nil
}

// Zone whose months are invoiced.
func (b OrganizationBilling) Zone() (*time.Location, error) { return time.LoadLocation(b.TimeZone) }
