package offers

import (
	"slices"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// BenchmarkOffers requests a page of 100 offers in a cluster with 1,000 GPUs on 125 nodes,
// each time after a change: of slices of GPUs, and of whole instances of a flavor. In a cluster
// with 8 GPUs on one node it requests the same slices.
//
//	p50-ms, p99-ms  duration of one request
func BenchmarkOffers(b *testing.B) {
	for _, c := range []struct {
		name  string
		nodes int
		q     api.OfferQuery
	}{
		{"slices", 125, api.OfferQuery{Limit: 100}},
		{"instances", 125, api.OfferQuery{Limit: 100, Flavor: "flv-1"}},
		{"one-node", 1, api.OfferQuery{Limit: 100}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := open(b)
			s.stock(c.nodes, 8)
			s.list(c.q, func(l api.OfferList) bool { return len(l.Items) >= 24 })
			var took []time.Duration
			for b.Loop() {
				s.now = s.now.Add(maxAge)
				began := time.Now()
				if _, err := s.service.Offers(b.Context(), c.q); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2])/1e6, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100])/1e6, "p99-ms")
		})
	}
}
