package invoice

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/pricebook"
	"github.com/basalt-gpu/basalt/billing/report"
)

// TestEgressIsCharged checks that outgoing traffic is charged per GiB beyond the
// included amount, whichever resource sent it, and counts as networking.
func TestEgressIsCharged(t *testing.T) {
	all := []api.Use{useAt(october, "fip-1", api.MeterEgress, 80*gib), useAt(october, "rtr-1", api.MeterEgress, 40*gib+gib/2)}
	p := invoice(t, pricebook.Default(), october, november, all)
	if want := int64(20.5 * cent / 2); p.TotalMicros != want {
		t.Errorf("total = %d micros, want %d", p.TotalMicros, want)
	}
	var out strings.Builder
	if err := report.WriteFOCUS(&out, report.FOCUSDocument{InvoicePreview: p}); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
	if err != nil || len(rows) != 4 {
		t.Fatalf("exported %d rows, error %v; want 4: %q", len(rows), err, rows)
	}
	last := func(name string) string { return rows[3][slices.Index(rows[0], name)] }
	for name, want := range map[string]string{"BilledCost": "0.1025", "ServiceCategory": "Networking", "PricingUnit": "GiB", "PricingQuantity": "20.5",
		"ResourceId": "rtr-1", "SkuId": "egress-bytes", "ConsumedUnit": "B"} {
		if got := last(name); got != want {
			t.Errorf("column %s of the last row = %q, want %q", name, got, want)
		}
	}
}
