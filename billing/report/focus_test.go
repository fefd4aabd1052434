package report

import (
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/invoice"
	"github.com/basalt-gpu/basalt/billing/pricebook"
	"github.com/basalt-gpu/basalt/billing/tariff"
)

// rich returns a price book that results in all kinds of lines.
func rich() api.PriceBookSpec {
	s := pricebook.Default()
	s.Seller = api.Party{Name: "Quarry GmbH"}
	s.MinimumMicros = 900_000_000
	s.Discounts = []api.Discount{{Meters: []api.Meter{api.MeterMemory, api.MeterGPUShare}, BasisPoints: 1234}}
	s.Commitments = []api.Commitment{{Meter: api.MeterVCPU, Quantity: 100, Per: 3600, PriceMicros: 3333}, {Meter: api.MeterVCPU, Quantity: 7, Per: 3600, PriceMicros: 1},
		{Meter: api.MeterVRAM, Quantity: 1, Per: gibHours, PriceMicros: 77_777}}
	s.Prices = append(s.Prices, api.Price{Meter: api.MeterGPU, Where: api.PriceSelector{Model: "NVIDIA H100", Pool: "big"}, PriceMicros: 1, Per: 7777, Unit: "odd"})
	return s
}

var taxes = []tariff.Tax{{Name: "VAT", BasisPoints: 1900}, {Name: "@Levy", BasisPoints: 33}}

const gibHours = 3600 << 30

// someUse returns random usage of an organization.
func someUse(r *rand.Rand, n int) (all []api.Use) {
	for i := range n {
		m := api.Meters()[r.IntN(len(api.Meters()))]
		u := useAt(october.AddDate(0, 0, i), []string{"ins-1", "ins-2", "vol-1"}[r.IntN(3)], m, 1+r.Int64N(1<<r.IntN(50)))
		if r.IntN(2) == 0 {
			u.Attributes = api.PriceSelector{Model: "NVIDIA H100", Pool: "big", Tier: "premium"}
		}
		if r.IntN(4) == 0 { // of a reseller's customer
			u.Customer, u.CustomerName = "org-shop", "shop"
		}
		all = append(all, u)
	}
	all[0].ResourceName = "=HYPERLINK(1)"
	return all
}

// someDocuments returns an invoice, a later one with late lines of it, a credit note,
// and an open month.
func someDocuments(t *testing.T, r *rand.Rand) []FOCUSDocument {
	t.Helper()
	spec, all := rich(), someUse(r, 28)
	first := invoiceOf(t, spec, all[:20], taxes...)
	inv := api.Invoice{Meta: api.Meta{ID: "inv-1"}, Spec: api.InvoiceSpec{Number: "INV-000001", Currency: first.Currency, From: first.From, To: first.To,
		Lines: first.Lines, TotalMicros: first.TotalMicros, Prices: spec}}
	late := invoice.LateLines(inv, nil, invoiceOf(t, spec, all, taxes...))
	note, err := invoice.Credit(api.CreditNoteSpec{Number: "CN-000001", Reason: "an outage"}, inv, nil)
	if err != nil {
		t.Fatal(err)
	}
	base := FOCUSDocument{Seller: "Quarry GmbH", Customer: "Acme", Prices: spec.Prices, Projects: map[api.ProjectID]string{"prj-1": "web"},
		Invoices: map[api.InvoiceID]api.InvoiceSpec{"inv-1": inv.Spec}}
	issued, next, open := base, base, base
	issued.InvoicePreview, issued.Number = first, "INV-000001"
	next.Number, next.Credits = "INV-000002", []api.CreditNoteSpec{note}
	next.InvoicePreview = api.InvoicePreview{Organization: "org-1", Currency: "EUR", From: november, To: november.AddDate(0, 1, 0), Lines: late}
	for _, l := range late {
		next.TotalMicros += l.AmountMicros
	}
	open.InvoicePreview = invoiceOf(t, spec, all, taxes...)
	return []FOCUSDocument{issued, next, open}
}

func written(t *testing.T, docs []FOCUSDocument) string {
	t.Helper()
	var out strings.Builder
	if err := WriteFOCUS(&out, docs...); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func microsOf(t *testing.T, s string) int64 {
	t.Helper()
	n, ok := new(big.Rat).SetString(s)
	if !ok || !n.Mul(n, big.NewRat(1_000_000, 1)).IsInt() {
		t.Fatalf("amount %q is not a whole number of micros", s)
	}
	return n.Num().Int64()
}

// TestFOCUSIsValid checks, for random usage and purchases, that an export satisfies the
// rules of FOCUS, that its BilledCost is the total of each document to the micro, and
// that the costs of commitments are fully contained in the EffectiveCost of what they
// pay for.
func TestFOCUSIsValid(t *testing.T) {
	for seed := range uint64(60) {
		docs := someDocuments(t, rand.New(rand.NewPCG(seed, 1)))
		table := readFOCUS(t, written(t, docs))
		broken, tried := table.broken()
		if len(broken) > 0 || tried < 300 {
			t.Fatalf("seed %d: %d rules tried, want at least 300 and none broken:\n%s", seed, tried, strings.Join(broken, "\n"))
		}
		billed := map[string]int64{}
		var paid, amortized, billedInAll, effective int64
		for _, row := range table.rows {
			b, e := microsOf(t, row["BilledCost"]), microsOf(t, row["EffectiveCost"])
			billed[row["InvoiceId"]] += b
			billedInAll, effective = billedInAll+b, effective+e
			if row["CommitmentDiscountId"] == "" || row["ChargeClass"] != "" {
				if row["CommitmentDiscountStatus"] != "" && row["CommitmentDiscountId"] == "" {
					t.Fatalf("seed %d: row has a commitment's status but no commitment: %v", seed, row)
				}
				continue
			}
			wantStatus := row["ChargeCategory"] == "Usage"
			if got := row["CommitmentDiscountStatus"]; (got == "Used" || got == "Unused") != wantStatus {
				t.Fatalf("seed %d: CommitmentDiscountStatus of %s = %q, want Used or Unused: %v", seed, row["ChargeCategory"], got, wantStatus)
			}
			if wantStatus {
				amortized += e
			} else {
				paid += b
			}
		}
		for _, d := range docs {
			if billed[d.Number] != d.TotalMicros {
				t.Fatalf("seed %d: BilledCost of %q = %d, want its total %d", seed, d.Number, billed[d.Number], d.TotalMicros)
			}
		}
		if note := docs[1].Credits[0]; billed[note.Number] != -note.TotalMicros {
			t.Fatalf("seed %d: BilledCost of %s = %d, want %d", seed, note.Number, billed[note.Number], -note.TotalMicros)
		}
		if paid == 0 || amortized != paid || billedInAll != effective {
			t.Fatalf("seed %d: %d paid for commitments and %d amortized, %d billed and %d effective; want equal pairs above 0", seed, paid, amortized, billedInAll, effective)
		}
	}
}

// TestFOCUSRulesDetectErrors checks that the rules are evaluated: a wrong cell breaks the rule
// about it.
func TestFOCUSRulesDetectErrors(t *testing.T) {
	for _, c := range []struct {
		rule, column, value string
	}{
		{"BilledCost-C-003-M", "BilledCost", ""},
		{"BilledCost-C-002-M", "BilledCost", "1,5"},
		{"BillingAccountType-C-005-C", "BillingAccountType", ""},
		{"BillingPeriodEnd-C-002-M", "BillingPeriodEnd", "2026-11-01T00:00:00+01:00"},
		{"ChargeCategory-C-003-M", "ChargeCategory", "Fee"},
		{"ChargeFrequency-C-004-C", "ChargeFrequency", "Usage-Based"},
		{"CommitmentDiscountCategory-C-004-C", "CommitmentDiscountCategory", ""},
		{"CommitmentDiscountUnit-C-006-C", "CommitmentDiscountUnit", ""},
		{"ContractedUnitPrice-C-011-C", "ContractedCost", "1234567"},
		{"EffectiveCost-C-005-C", "EffectiveCost", "1"},
		{"ListUnitPrice-C-010-C", "ListCost", "7654321"},
		{"PricingUnit-C-003-O", "PricingUnit", "GiB hour, of memory"},
		{"ResourceType-C-005-C", "ResourceType", ""},
		{"ServiceSubcategory-C-004-M", "ServiceSubcategory", "Bots"},
		{"SkuPriceId-C-008-M", "SkuId", "other"},
		{"SubAccountName-C-005-C", "SubAccountName", ""},
	} {
		table := readFOCUS(t, written(t, someDocuments(t, rand.New(rand.NewPCG(1, 1)))))
		for i, row := range table.rows {
			if row[c.column] != "" && (c.rule != "SkuPriceId-C-008-M" || i%2 == 0) {
				row[c.column] = c.value
			}
		}
		broken, _ := table.broken()
		if !strings.Contains(strings.Join(broken, "\n"), c.rule+":") {
			t.Errorf("%s = %q breaks %d rules, want %s among them", c.column, c.value, len(broken), c.rule)
		}
	}
	table := readFOCUS(t, written(t, nil))
	table.columns = table.columns[1:]
	if broken, _ := table.broken(); len(broken) != 1 || !strings.HasPrefix(broken[0], "CostAndUsage-D-006-M: ") {
		t.Errorf("rules broken without column BilledCost = %q, want CostAndUsage-D-006-M", broken)
	}
}

func TestFOCUSUnits(t *testing.T) {
	for _, c := range []struct {
		meter    api.Meter
		per      int64
		want     string
		one      string
		consumed string
	}{
		{api.MeterVCPU, 3600, "vCPU-Hours", "3600", "vCPU-Seconds"},
		{api.MeterVCPU, 86400, "vCPU-Days", "86400", "vCPU-Seconds"},
		{api.MeterVCPU, 17, "vCPU-Seconds", "1", "vCPU-Seconds"},
		{api.MeterMemory, 3600 << 30, "GiB-Hours", "3865470566400", "B-Seconds"},
		{api.MeterVolume, 30 * 24 * 3600 << 30, "GiB-Months", "2783138807808000", "B-Seconds"},
		{api.MeterVolume, 3600e9, "GB-Hours", "3600000000000", "B-Seconds"},
		{api.MeterEgress, 1 << 40, "TiB", "1099511627776", "B"},
		{api.MeterGPU, 3600e9, "GPU-Hours", "3600000000000", "GPU-Seconds"},
		{api.MeterGPUShare, 360_000, "GPU-Hours", "360000", "GPU-Seconds"},
		{api.MeterGPUShare, 7, "GPU-Seconds", "100", "GPU-Seconds"},
		{api.MeterLaunch, 1e6, "1000000 Launches", "1000000", "Launches"},
		{api.MeterAddress, 3600, "Address-Hours", "3600", "Address-Seconds"},
	} {
		got := pricingUnit(c.meter, c.per)
		if got.name != c.want || got.of.RatString() != c.one || consumedUnit(c.meter).name != c.consumed {
			t.Errorf("%s by %d: %s of %s, consumed in %s; want %s of %s, %s", c.meter, c.per, got.name, got.of.RatString(), consumedUnit(c.meter).name, c.want, c.one, c.consumed)
		}
	}
	for _, m := range api.Meters() {
		if _, ok := measures[m]; !ok {
			t.Errorf("meter %s has no unit in measures", m)
		}
	}
}
