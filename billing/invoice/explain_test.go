package invoice

import (
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/pricebook"
)

// TestExplain checks that the hours of all lines add up to the usage, and those of a
// line to its quantity.
func TestExplain(t *testing.T) {
	spec := pricebook.Default()
	spec.Prices[0].Tiers = []api.PriceTier{{UpTo: 1}, {UpTo: 2, PriceMicros: 7}}
	spec.Commitments = []api.Commitment{{Meter: api.MeterGPU, Quantity: 1, Per: 5}}
	var all []api.Use
	for h := range 5 {
		for _, m := range []api.Meter{api.MeterGPU, api.MeterVCPU} {
			all = append(all, useAt(october.Add(time.Duration(h)*time.Hour), "ins-1", m, 2000))
		}
	}
	p := invoice(t, spec, october, november, all)
	if len(p.Lines) != 6 {
		t.Fatalf("invoice has %d lines, want 6: %+v", len(p.Lines), p.Lines)
	}
	for _, l := range p.Lines {
		e, err := NewDetailedRating(api.InvoiceQuestion{Organization: "org-1", From: october, To: november, Line: l.ID}, Whole(october, november), pricebook.Always(spec))
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range all {
			if err := e.Add(u); err != nil {
				t.Fatal(err)
			}
		}
		got, err := e.Explanation()
		sum := api.Quantity{}
		for _, h := range got.Hours {
			sum = sum.Plus(h.Quantity)
		}
		if err != nil || got.Line != l || l.Kind == api.LineUsage && (sum != l.Quantity || !got.Hours[0].Hour.Equal(l.From)) || l.Kind != api.LineUsage && len(got.Hours) > 0 {
			t.Errorf("explanation of line %+v = %+v, %v; want hours that add up to it", l, got, err)
		}
	}
	e, err := NewDetailedRating(api.InvoiceQuestion{From: october, To: november, Line: "line-x"}, Whole(october, november), pricebook.Always(spec))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Explanation(); api.CodeOf(err) != api.CodeNotFound {
		t.Error(err)
	}
}
