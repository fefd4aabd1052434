package invoicing

import (
	"encoding/csv"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// focusRows returns a period's export of costs, with the rows as maps by column.
func (w *fixture) focusRows(from, to time.Time) (rows []map[string]string) {
	w.t.Helper()
	var out strings.Builder
	if err := (Billing{w.Store}).Export(w.t.Context(), "org-1", from, to, api.ExportFOCUS, &out); err != nil {
		w.t.Fatal(err)
	}
	all, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range all[1:] {
		row := map[string]string{}
		for i, c := range all[0] {
			row[c] = r[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// An export names the invoice or credit note of each row, the payer and the project,
// and its rows add up to the documents' totals to the micro; months without an invoice
// are a billing period each.
func TestExportOfDocuments(t *testing.T) {
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice})
	w.put(api.Command{Op: api.OpPutSpec, Kind: api.KindProject, ID: "prj-1", Name: "web", Organization: "org-1", Data: []byte(`{}`)})
	april, may, june := march.AddDate(0, 1, 0), march.AddDate(0, 2, 0), march.AddDate(0, 3, 0)
	w.used(march.Add(time.Hour), api.MeterVCPU, 3599)
	w.job().Step(t.Context(), april.Add(3*time.Hour))
	w.used(march.Add(7*time.Hour), api.MeterVCPU, 1234) // late
	w.used(april.Add(time.Hour), api.MeterVRAM, 1<<40)
	w.job().Step(t.Context(), may.Add(3*time.Hour))
	all := w.invoices()
	if len(all) != 2 {
		t.Fatalf("invoices = %d, want 2", len(all))
	}
	cmds, err := Billing{w.Store}.DraftCreditNote(t.Context(), api.NewID(api.KindCreditNote, []byte{1, 2, 3, 4, 5, 6}),
		api.CreditNoteSpec{Invoice: api.InvoiceID(all[0].Meta.ID), IssuedAt: april.AddDate(0, 0, 4), Reason: "an outage"}, all[0])
	if err != nil {
		t.Fatal(err)
	}
	w.put(cmds...)
	w.used(may.AddDate(0, 0, 2), api.MeterVCPU, 7200)
	w.used(june.AddDate(0, 0, 2), api.MeterVCPU, 3600)

	billed, periods, classes := map[string]int64{}, map[string]bool{}, map[string]string{}
	for _, row := range w.focusRows(march, june.AddDate(0, 0, 10)) {
		amount, ok := new(big.Rat).SetString(row["BilledCost"])
		if !ok {
			t.Fatalf("BilledCost = %q, want a number", row["BilledCost"])
		}
		billed[row["InvoiceId"]] += new(big.Int).Quo(new(big.Int).Mul(amount.Num(), big.NewInt(1_000_000)), amount.Denom()).Int64()
		periods[row["BillingPeriodStart"]+" "+row["BillingPeriodEnd"]] = true
		classes[row["InvoiceId"]+" "+row["ChargeCategory"]+" "+row["ChargePeriodStart"]] = row["ChargeClass"]
		if row["BillingAccountName"] != "acme" || row["SubAccountName"] != "web" || row["SubAccountId"] != "prj-1" || row["BillingAccountId"] != "org-1" {
			t.Errorf("row names %q, %q of %q: %v; want acme and web of prj-1", row["BillingAccountName"], row["SubAccountName"], row["SubAccountId"], row)
		}
	}
	want := map[string]int64{"INV-000001": all[0].Spec.TotalMicros, "INV-000002": all[1].Spec.TotalMicros, "CN-000001": -all[0].Spec.TotalMicros, "": 30_000}
	for id, micros := range want {
		if billed[id] != micros || micros == 0 {
			t.Errorf("BilledCost of document %q = %d micros, want %d", id, billed[id], micros)
		}
	}
	if len(billed) != len(want) {
		t.Errorf("documents = %v, want %v", billed, want)
	}
	for _, p := range []string{"2026-03-01T00:00:00Z 2026-04-01T00:00:00Z", "2026-04-01T00:00:00Z 2026-05-01T00:00:00Z", "2026-05-01T00:00:00Z 2026-06-01T00:00:00Z",
		"2026-06-01T00:00:00Z 2026-06-11T00:00:00Z"} {
		if !periods[p] {
			t.Errorf("billing periods = %v, want %s among them", periods, p)
		}
	}
	for row, class := range map[string]string{"INV-000001 Usage 2026-03-01T00:00:00Z": "", "INV-000002 Usage 2026-03-01T00:00:00Z": "Correction",
		"CN-000001 Credit 2026-03-01T00:00:00Z": "Correction", "INV-000002 Usage 2026-04-01T00:00:00Z": ""} {
		if got, ok := classes[row]; !ok || got != class {
			t.Errorf("ChargeClass of %s = %q, present %t; want %q", row, got, ok, class)
		}
	}
}
