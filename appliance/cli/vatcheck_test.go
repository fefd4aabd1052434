package cli

import (
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// The reason of an invoice's tax states the evidence for the reverse charge.
func TestTaxTextVerified(t *testing.T) {
	v := api.VATVerification{Number: "FR40303265045", CheckedAt: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)}
	tax := api.InvoiceTax{Reason: api.TaxReverseCharge, Country: "FR", Note: "Reverse charge", Verification: &v}
	const plain = "Reverse charge: to be accounted for by the customer; FR40303265045 confirmed by VIES at 2026-03-01 10:00:00 UTC"
	if got := taxText(&tax); got != plain {
		t.Errorf("taxText = %q, want %q", got, plain)
	}
	v.Consultation = "WAPI1"
	if got, want := taxText(&tax), plain+", consultation number WAPI1"; got != want {
		t.Errorf("taxText = %q, want %q", got, want)
	}
}

// A row of a verification that has no answer yet shows why.
func TestVATCheckRow(t *testing.T) {
	k := (&App{}).vatChecks()
	row := k.row(api.VATCheck{Spec: api.VATCheckSpec{Number: "FR40303265045"}, Status: api.VATCheckStatus{Attempts: 3, LastError: "MS_UNAVAILABLE"}})
	if len(row) != len(k.columns) || row[2] != "Pending" || row[3] != "-" || row[6] != "MS_UNAVAILABLE" {
		t.Errorf("row = %q, want %d columns with Pending, - and MS_UNAVAILABLE", row, len(k.columns))
	}
}
