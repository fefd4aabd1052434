package api

import (
	"fmt"
	"time"
	_ "time/tzdata" // nodes may lack a time zone database
)

// BillingMode is how an organization pays.
type BillingMode string

// Modes of billing.
const (
	BillingInvoice BillingMode = "invoice"
	BillingPrepaid BillingMode = "prepaid"
)

// BillingState is the payment status of an organization.
type BillingState string

// Billing states, in ascending order of severity.
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

// Defaults for settings that an organization's terms leave out. A setting of zero is
// not the default: it means at once, or never.
const (
	DefaultDueDays    = 14        // from the issue of an invoice until it is due
	DefaultStopDays   = 7         // by invoice: from the due date until nothing new can be created
	DefaultWarnMicros = 5_000_000 // prepaid: the remaining credit at which a warning is sent

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
	out.TaxID = usualTaxID(out.Country, out.TaxID)
	due, stop, suspend, warn := out.DaysUntilDue(), out.DaysUntilStop(), out.DaysUntilSuspension(), out.WarnBelow()
	out.DueDays, out.SuspendAfterDays = &due, &suspend
	if out.Mode == BillingInvoice {
		out.StopAfterDays = &stop
	} else {
		out.WarnMicros = &warn
	}
	return &out
}

// DaysUntilDue returns the days from the issue of an invoice until it is due.
func (b OrganizationBilling) DaysUntilDue() int64 { return settingOr(b.DueDays, DefaultDueDays) }

// DaysUntilStop returns the days from the due date until nothing new can be created or
// started. It defaults to 0 for prepaid organizations, whose due date is when their
// credit runs out.
func (b OrganizationBilling) DaysUntilStop() int64 {
	if b.Mode != BillingInvoice {
		return settingOr(b.StopAfterDays, 0)
	}
	return settingOr(b.StopAfterDays, DefaultStopDays)
}

// DaysUntilSuspension returns the days from the due date, or from the end of prepaid
// credit, until instances are stopped.
func (b OrganizationBilling) DaysUntilSuspension() int64 {
	days := int64(defaultSuspendPrepaidDays)
	if b.Mode == BillingInvoice {
		days = defaultSuspendDays
	}
	return settingOr(b.SuspendAfterDays, max(days, b.DaysUntilStop()))
}

// WarnBelow returns the remaining prepaid credit, in millionths, below which a warning
// is sent; 0 warns only when the credit is used up.
func (b OrganizationBilling) WarnBelow() int64 { return settingOr(b.WarnMicros, DefaultWarnMicros) }

// Setting returns a pointer to n, which sets n explicitly even if it is 0.
func Setting(n int64) *int64 { return &n }

// settingOr returns the setting, or otherwise if it is not set.
func settingOr(setting *int64, otherwise int64) int64 {
	if setting == nil {
		return otherwise
	}
	return *setting
}

// ValidateBilling checks the payment terms of an organization.
func ValidateBilling(b *OrganizationBilling) *Error {
	if b == nil {
		return nil
	}
	var bad faults
	if _, err := b.Zone(); err != nil || b.TimeZone == "Local" {
		bad.note(invalid("spec.billing.timeZone", "%q is not a valid time zone", clip(b.TimeZone)).WithHint("use an IANA name, e.g. Europe/Berlin"))
	}
	bad.note(address("spec.billing.address", b.Address), oneOf("spec.billing.mode", b.Mode, BillingInvoice, BillingPrepaid),
		between("spec.billing.dueDays", b.DaysUntilDue(), 0, maxDueDays, " days"), text("spec.billing.taxId", b.TaxID), text("spec.billing.region", b.Region),
		taxID("spec.billing.country", "spec.billing.taxId", b.Country, b.TaxID),
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

// Zone returns the time zone that determines the months that are invoiced.
func (b OrganizationBilling) Zone() (*time.Location, error) {
	zone, err := time.LoadLocation(b.TimeZone)
	if err != nil {
		return nil, fmt.Errorf("load billing time zone: %w", err)
	}
	return zone, nil
}
