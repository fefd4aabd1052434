package report

import (
	"encoding/csv"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/invoice"
	"github.com/basalt-gpu/basalt/billing/pricebook"
	"github.com/basalt-gpu/basalt/billing/tariff"
)

var (
	october  = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	november = october.AddDate(0, 1, 0)
	december = october.AddDate(0, 2, 0)
)

const gibMonths = 1 << 30 * 3600 * 24 * 30 // byte-seconds

func useAt(hour time.Time, resource string, m api.Meter, q int64) api.Use {
	return api.Use{Hour: hour, Project: "prj-1", Resource: resource, ResourceName: "name of " + resource, NamedAt: hour, Meter: m, Quantity: q}
}

// invoiceOf returns the invoice for October.
func invoiceOf(t *testing.T, spec api.PriceBookSpec, all []api.Use, taxes ...tariff.Tax) api.InvoicePreview {
	t.Helper()
	r, err := invoice.NewRating("org-1", pricebook.Always(spec), invoice.Whole(october, november))
	if err != nil {
		t.Fatal(err)
	}
	r.SetTaxation(invoice.Taxation{Taxes: taxes})
	for _, u := range all {
		if err := r.Add(u); err != nil {
			t.Fatal(err)
		}
	}
	p, err := r.Invoice()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func usesOf(all []api.Use, to time.Time) Uses {
	return func(from time.Time) iter.Seq2[api.Use, error] {
		return func(yield func(api.Use, error) bool) {
			for _, u := range all {
				if (api.UseQuery{From: from, To: to}).Has(u) && !yield(u, nil) {
					return
				}
			}
		}
	}
}

// TestUsage checks, for every grouping and page size, that the sums cover all usage, in
// order and each once.
func TestUsage(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	begin := time.Date(2028, 2, 27, 5, 0, 0, 0, time.UTC)
	end := time.Date(2028, 3, 2, 7, 30, 0, 0, time.UTC)
	var all []api.Use
	total := int64(0)
	for h := -3; h < 110; h++ {
		for _, m := range []api.Meter{api.MeterGPU, api.MeterVCPU} {
			for i := range 3 {
				u := useAt(begin.Add(time.Duration(h)*time.Hour), fmt.Sprint("ins-", i), m, random.Int64N(1000))
				all = append(all, u)
				if !u.Hour.Before(begin) && u.Hour.Before(end) {
					total += u.Quantity
				}
			}
		}
	}
	for by, want := range map[api.UsageBy]int{api.ByHour: 6 * (4*24 + 3), api.ByDay: 6 * 5, api.ByMonth: 6 * 2, api.ByTotal: 6} {
		var whole []api.UsageSum
		for _, limit := range []int{1000, 1, 5, 6, 7} {
			q := api.UsageQuery{From: begin, To: end, By: by, Limit: limit}
			var got []api.UsageSum
			for {
				page, err := Usage(q, usesOf(all, end))
				if err != nil || len(page.Items) > limit {
					t.Fatalf("page has %d items, error %v; want at most %d", len(page.Items), err, limit)
				}
				got = append(got, page.Items...)
				if q.Continue = page.Continue; q.Continue == "" {
					break
				}
			}
			sum := api.Quantity{}
			for _, s := range got {
				sum = sum.Plus(s.Quantity)
				if s.From.Before(begin) || s.To.After(end) && by != api.ByHour || !s.From.Before(s.To) {
					t.Fatalf("sum by %s = %+v, want it within the period", by, s)
				}
			}
			if sum != api.Units(total) || len(got) != want || whole != nil && !slices.Equal(got, whole) {
				t.Errorf("by %s, limit %d: %d sums with a total of %s, want %d with %d", by, limit, len(got), sum, want, total)
			}
			whole = got
		}
	}
	page, err := Usage(api.UsageQuery{From: begin, To: end, By: api.ByTotal, Limit: 9, Meter: api.MeterGPU, Resource: "ins-1"}, usesOf(all, end))
	if err != nil || len(page.Items) != 1 || page.Items[0].Resource != "ins-1" || page.Items[0].ResourceName != "name of ins-1" {
		t.Errorf("sum for one meter and resource = %+v, error %v; want one item for ins-1", page, err)
	}
	for _, q := range []api.UsageQuery{{By: "week"}, {By: api.ByDay, Continue: "?"}} {
		q.From, q.To, q.Limit = begin, end, 1
		if _, err := Usage(q, usesOf(all, end)); api.CodeOf(err) != api.CodeInvalid {
			t.Errorf("Usage(%+v) = %v, want %s", q, err, api.CodeInvalid)
		}
	}
	lost := errors.New("lost")
	if _, err := Usage(api.UsageQuery{From: begin, To: end, By: api.ByDay, Limit: 1}, func(time.Time) iter.Seq2[api.Use, error] {
		return func(yield func(api.Use, error) bool) { yield(api.Use{}, lost) }
	}); !errors.Is(err, lost) {
		t.Error(err)
	}
}

// FuzzContinue parses page tokens; an accepted token must encode to the same place.
func FuzzContinue(f *testing.F) {
	f.Add(api.PageToken(place{october, api.MeterGPU, "prj-1", "ins-1"}))
	f.Add("bnVsbA")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := api.FromPageToken[place](s)
		if err != nil || p.From.Year() < 0 || p.From.Year() > 9999 {
			return
		}
		if q, err := api.FromPageToken[place](api.PageToken(p)); err != nil || p.compare(q) != 0 {
			t.Errorf("place %+v encoded and parsed = %+v, error %v", p, q, err)
		}
	})
}

func TestExports(t *testing.T) {
	all := []api.Use{useAt(october, "ins-1", api.MeterVCPU, 5400), useAt(october, "vol-1", api.MeterVolume, gibMonths)}
	all[0].ResourceName = "=HYPERLINK(1)"
	var hours strings.Builder
	if err := WriteUse(&hours, "org-1", usesOf(all, november)(october)); err != nil {
		t.Fatal(err)
	}
	want := "hour,organization,project,resource,resourceName,meter,quantity\n" +
		"2026-10-01T00:00:00Z,org-1,prj-1,ins-1,'=HYPERLINK(1),vcpu-seconds,5400\n" +
		fmt.Sprintf("2026-10-01T00:00:00Z,org-1,prj-1,vol-1,name of vol-1,volume-byte-seconds,%d\n", int64(gibMonths))
	if hours.String() != want {
		t.Errorf("export by the hour = %s, want %s", hours.String(), want)
	}
	spec := pricebook.Default()
	var out strings.Builder
	if err := WriteFOCUS(&out, FOCUSDocument{InvoicePreview: invoiceOf(t, spec, all, tariff.Tax{Name: "@VAT", BasisPoints: 1900})}); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
	if err != nil || len(rows) != 4 || !slices.IsSorted(rows[0]) {
		t.Fatalf("FOCUS export = %q, error %v; want 4 rows and sorted columns", rows, err)
	}
	column := func(row int, name string) string { return rows[row][slices.Index(rows[0], name)] }
	for _, c := range []struct {
		row        int
		name, want string
	}{
		{1, "BilledCost", "0.015"}, {2, "BilledCost", "0.05"}, {3, "BilledCost", "0.01235"},
		{1, "ChargeCategory", "Usage"}, {3, "ChargeCategory", "Tax"}, {1, "ChargePeriodEnd", "2026-10-01T01:00:00Z"}, {3, "ChargePeriodEnd", "2026-11-01T00:00:00Z"},
		{1, "PricingQuantity", "1.5"}, {1, "PricingUnit", "vCPU-Hours"}, {3, "PricingUnit", ""}, {1, "ConsumedQuantity", "5400"}, {3, "ConsumedQuantity", ""},
		{1, "ResourceName", "'=HYPERLINK(1)"}, {3, "ChargeDescription", "'@VAT"}, {2, "ServiceCategory", "Storage"}, {1, "SubAccountId", "prj-1"}, {1, "BillingCurrency", "EUR"},
	} {
		if got := column(c.row, c.name); got != c.want {
			t.Errorf("row %d, column %s = %q, want %q", c.row, c.name, got, c.want)
		}
	}
}
