package invoice

import (
	"fmt"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/pricebook"
)

// BenchmarkRating rates a month of an organization with the given number of instances
// and four meters each: one operation is the whole invoice.
func BenchmarkRating(b *testing.B) {
	const instances = 100
	from := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	to := from.AddDate(0, 1, 0)
	meters := []api.Meter{api.MeterGPU, api.MeterMemory, api.MeterVCPU, api.MeterVRAM} // in the order of meters
	names := make([]string, instances)
	for i := range names {
		names[i] = fmt.Sprintf("ins-%012d", i)
	}
	rows := 0
	for range b.N {
		r, err := NewRating("org-1", pricebook.Always(pricebook.Default()), Whole(from, to))
		if err != nil {
			b.Fatal(err)
		}
		for h := from; h.Before(to); h = h.Add(time.Hour) {
			for _, m := range meters {
				for _, n := range names {
					if err := r.Add(api.Use{Hour: h, Meter: m, Project: "prj-1", Resource: n, ResourceName: n, NamedAt: h, Quantity: 3600}); err != nil {
						b.Fatal(err)
					}
					rows++
				}
			}
		}
		inv, err := r.Invoice()
		if err != nil || len(inv.Lines) != instances*len(meters) {
			b.Fatalf("invoice has %d lines, error %v; want %d", len(inv.Lines), err, instances*len(meters))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(rows), "ns/row")
}
