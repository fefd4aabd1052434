package pdf

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

func sample(name string, lines int) api.Invoice {
	at := time.Date(2026, 4, 1, 2, 0, 0, 0, time.UTC)
	inv := api.Invoice{Meta: api.Meta{ID: "inv-1"}, Spec: api.InvoiceSpec{Number: "INV-000042", Currency: "EUR", TimeZone: "Europe/Berlin", IssuedAt: at, DueAt: at, From: at, To: at, TotalMicros: -1,
		Customer: api.Party{Name: name, Address: []string{"Straße 1", name}, TaxID: "DE1"}, Prices: api.PriceBookSpec{Seller: api.Party{Name: "Βασάλτης ΑΕ", Address: []string{"Москва"}}}}}
	for range lines {
		inv.Spec.Lines = append(inv.Spec.Lines, api.InvoiceLine{ID: "a", Kind: api.LineUsage, Meter: api.MeterGPU, ResourceName: name, Quantity: api.Units(7), Per: 3, Unit: "GPU hour", PriceMicros: 1, AmountMicros: 1 << 62},
			api.InvoiceLine{Kind: api.LineTax, Name: name, BasisPoints: 1950}, api.InvoiceLine{Kind: api.LineLate, Name: "VAT", AmountMicros: -1 << 63}, api.InvoiceLine{Kind: api.LineMinimum}, api.InvoiceLine{Kind: api.LineCommitment})
	}
	return inv
}

// TestDocuments prints names in various scripts, and lines over many pages; the bytes must
// be the same each time.
func TestDocuments(t *testing.T) {
	for _, name := range []string{"Æthelß Größe Ελλάς Ёлка Łódź", "東京 😀", "", strings.Repeat("long name ", 40), "bad \xff\x00 bytes"} {
		inv := sample(name, 60)
		a, err := Invoice(inv)
		if err != nil {
			t.Fatalf("invoice for %q: %v", name, err)
		}
		b, err := Invoice(inv)
		if err != nil || !bytes.Equal(a, b) || !bytes.HasPrefix(a, []byte("%PDF-")) || bytes.Count(a, []byte("/Type /Page\n")) < 4 {
			t.Errorf("invoices for %q have %d and %d bytes, error %v; want the same PDF of several pages", name, len(a), len(b), err)
		}
		n, err := CreditNote(api.CreditNote{Spec: api.CreditNoteSpec{Number: "CN-000001", Reason: name, Lines: []api.CreditLine{{Line: "a", AmountMicros: 5}, {Line: "gone"}}}}, inv)
		if err != nil || !bytes.HasPrefix(n, []byte("%PDF-")) {
			t.Errorf("credit note for %q: %v", name, err)
		}
	}
}

func TestKnown(t *testing.T) {
	s, err := begin("x", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.known("Größe Łódź Ελλάς Ёлка 東\xff"); got != "Größe Łódź Ελλάς Ёлка ??" {
		t.Errorf("known text = %q, want unknown characters as ??", got)
	}
}
