package invoice

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
)

// TestSums checks that a long invoice has one line per project and price; different
// prices, and different customers of a reseller, stay separate.
func TestSums(t *testing.T) {
	line := func(resource, project, model string, micros int64) api.InvoiceLine {
		return api.InvoiceLine{ID: resource, Kind: api.LineUsage, Project: api.ProjectID(project), Resource: resource, Meter: api.MeterGPU,
			Per: 1, PriceMicros: 7, Where: api.PriceSelector{Model: model}, AmountMicros: micros}
	}
	type sum struct {
		Project, Resource, Model string
		Micros                   int64
	}
	var got []sum
	for _, l := range sums([]api.InvoiceLine{line("ins-1", "prj-1", "", 1), line("ins-2", "prj-1", "", 2), line("ins-3", "prj-1", "NVIDIA L4", 4),
		line("ins-4", "prj-2", "", 8), line("org-a", "", "", 16), line("org-b", "", "", 32), line("ins-5", "prj-1", "NVIDIA L4", 64)}) {
		got = append(got, sum{string(l.Project), l.Resource, l.Where.Model, l.AmountMicros})
	}
	want := []sum{{"prj-1", "", "", 3}, {"prj-1", "", "NVIDIA L4", 68}, {"prj-2", "", "", 8}, {"", "org-a", "", 16}, {"", "org-b", "", 32}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("sums: mismatch (-want +got):\n%s", d)
	}
}
