package invoicing

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
)

// Costs are computed by the prices of the invoice preview, and a project that still
// exists has its name.
func TestCosts(t *testing.T) {
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice})
	w.put(api.Command{Op: api.OpPutSpec, Kind: api.KindProject, ID: "prj-1", Name: "web", Organization: "org-1", Data: []byte(`{}`)})
	day := march.AddDate(0, 0, 3)
	for i, project := range []string{"prj-1", "prj-1", "prj-gone"} {
		w.put(api.Command{Op: api.OpRecord, Kind: api.KindUsageRecord, ID: "use-00000000000" + string(rune('1'+i)), Organization: "org-1", Project: project,
			Data: api.Encode(api.UsageRecordSpec{Meter: api.MeterVCPU, Resource: "ins-" + project, Start: day.AddDate(0, 0, i), End: day.AddDate(0, 0, i).Add(time.Hour), Quantity: int64(3600 * (i + 1))})})
	}
	cent := int64(10_000)
	q := api.CostQuery{Organization: "org-1", From: march, To: march.AddDate(0, 1, 0), By: api.CostByProject, Step: api.CostDay, Limit: 100}
	got, err := Billing{w.Store}.Costs(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	at := func(i int) (from, to time.Time) { return day.AddDate(0, 0, i), day.AddDate(0, 0, i+1) }
	row := func(i int, key, name string) api.Cost {
		from, to := at(i)
		return api.Cost{From: from, To: to, Key: key, Name: name, AmountMicros: int64(i+1) * cent}
	}
	want := []api.Cost{row(0, "prj-1", "web"), row(1, "prj-1", "web"), row(2, "prj-gone", "")}
	if d := cmp.Diff(want, got.Items); d != "" {
		t.Errorf("costs by project (-want +got):\n%s", d)
	}
	if total := w.total(march, march.AddDate(0, 1, 0)); got.TotalMicros != total || got.UsageMicros != 6*cent {
		t.Errorf("total = %d and usage = %d micros, want %d and %d", got.TotalMicros, got.UsageMicros, total, 6*cent)
	}
}
