package api

import (
	"fmt"
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
)

// What holds where an organization's terms say nothing. Zero is no such word: it
// means at once, or never.
const (
	DefaultDueDays    = 14        // from the issue of an invoice until it is due
	DefaultStopDays   = 7         // by invoice: from the due date until nothing new is made
	DefaultWarnMicros = 5_000_000 // prepaid: what is left when it is warned

	defaultSuspendDays        = 14
	defaultSuspendPrepaidDays = 1
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
	due, stop, suspend, warn := out.DaysUntilDue(), out.DaysUntilStop(), out.DaysUntilSuspension(), out.WarnBelow()
	out.DueDays, out.SuspendAfterDays = &due, &suspend
	if out.Mode == BillingInvoice {
		out.StopAfterDays = &stop
	} else {
		out.WarnMicros = &warn
	}
	return &out
}

// DaysUntilDue are from the issue of an invoice until it is due.
func (b OrganizationBilling) DaysUntilDue() int64 { return said(b.DueDays, DefaultDueDays) }

// DaysUntilStop are from the due date until nothing new is made or started. Who
// pays in advance has none: the end of what was paid is the due date.
func (b OrganizationBilling) DaysUntilStop() int64 {
	if b.Mode != BillingInvoice {
		return said(b.StopAfterDays, 0)
	}
	return said(b.StopAfterDays, DefaultStopDays)
}

// DaysUntilSuspension are from the due date, or the end of what was paid in
// advance, until instances stop.
func (b OrganizationBilling) DaysUntilSuspension() int64 {
	days := int64(defaultSuspendPrepaidDays)
	if b.Mode == BillingInvoice {
		days = defaultSuspendDays
	}
	return said(b.SuspendAfterDays, max(days, b.DaysUntilStop()))
}

// WarnBelow is what is left of what was paid in advance when it is warned; 0: it is
// not before all is used up.
func (b OrganizationBilling) WarnBelow() int64 { return said(b.WarnMicros, DefaultWarnMicros) }

// Setting returns a setting that says n, also where n is 0.
func Setting(n int64) *int64 { return &n }

// said is what a setting says, or what holds when it says nothing.
func said(setting *int64, otherwise int64) int64 {
	if setting == nil {
		return otherwise
	}
	return *setting
}

// ValidateBilling checks how an organization pays.
func ValidateBilling(b *OrganizationBilling) *Error {
	if b == nil {
		return nil
	}
	var bad faults
	if _, err := b.Zone(); err != nil || b.TimeZone == "Local" {
		bad.note(invalid("spec.billing.timeZone", "%q is not a valid time zone", clip(b.TimeZone)).WithHint("use an IANA name, e.g. Europe/Berlin"))
	}
	bad.note(address("spec.billing.address", b.Address), oneOf("spec.billing.mode", b.Mode, BillingInvoice, BillingPrepaid),
		between("spec.billing.dueDays", b.DaysUntilDue(), 0, maxDueDays, " days"), text("spec.billing.taxId", b.TaxID),
		between("spec.billing.warnMicros", b.WarnBelow(), 0, maxPriceMicros, " millionths"), between("spec.billing.creditMicros", b.CreditMicros, 0, maxPriceMicros, " millionths"),
		between("spec.billing.stopAfterDays", b.DaysUntilStop(), 0, maxDueDays, " days"), between("spec.billing.suspendAfterDays", b.DaysUntilSuspension(), b.DaysUntilStop(), maxDueDays, " days"),
		between("spec.billing.deleteAfterDays", b.DeleteAfterDays, 0, maxKeepDays, " days"))
	return bad.one()
}

func address(field string, lines []string) *Error {
	if len(lines) > maxAddress {
		return invalid(field, "has %d lines, want at most %d", len(lines), maxAddress)
	}
	for _, line := range lines {
		if err := text(field, line); err != nil {
			return err
		}
	}
	return nil
}

// Zone whose months are invoiced.
func (b OrganizationBilling) Zone() (*time.Location, error) {
	zone, err := time.LoadLocation(b.TimeZone)
	if err != nil {
		return nil, fmt.Errorf("load billing time zone: %w", err)
	}
	return zone, nil
}
