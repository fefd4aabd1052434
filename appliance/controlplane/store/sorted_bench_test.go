package store

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// BenchmarkSorted measures the portal's request for the first 25 of 20,000 instances, in
// descending order of each field that they can be sorted by, for which the store has no index.
// "any" is all of these requests together, and "indexed" the one in ascending order of names.
//
//	p99-ms  duration of one request
func BenchmarkSorted(b *testing.B) {
	s := open(b, Options{})
	apply := func(cmds ...api.Command) {
		b.Helper()
		if _, err := s.Apply(b.Context(), api.Batch{Commands: cmds}); err != nil {
			b.Fatal(err)
		}
	}
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for n := 0; n < 20_000; n += 250 {
		var cmds []api.Command
		for i := n; i < n+250; i++ {
			started := began.Add(time.Duration(i) * time.Second)
			id, node := fmt.Sprintf("ins-%012x", i*7919%20_000), api.NodeID(fmt.Sprintf("node-%012x", i%200))
			spec := api.InstanceSpec{Flavor: api.FlavorID(fmt.Sprintf("flv-%012x", i%20)), Image: api.ImageID(fmt.Sprintf("img-%012x", i%30)), Power: api.PowerRunning,
				Vgpu: &api.VGPUSpec{VramBytes: 8 << 30, SharePercent: 25}}
			cmds = append(cmds, api.Command{Op: api.OpPutSpec, Kind: api.KindInstance, ID: id, Name: fmt.Sprintf("train-%05d", i),
				Organization: fmt.Sprintf("org-%d", i%100), Project: fmt.Sprintf("prj-%d", i%200), Data: api.Encode(spec)},
				api.Command{Op: api.OpAssign, Kind: api.KindInstance, ID: id, Expect: api.AnyRevision, Data: api.Encode(api.InstanceAssignment{Node: node, Epoch: 1,
					Vcpus: int64(1 + i%64), MemoryBytes: int64(1+i%64) << 30, Gpu: api.GPUID(fmt.Sprintf("gpu-%012x", i%1000)), VgpuVramBytes: 8 << 30,
					Ports: []api.InstancePort{{Network: "net-000000000001", Address4: fmt.Sprintf("10.0.%d.%d", i/250, i%250)}}})},
				api.Command{Op: api.OpReport, Kind: api.KindInstance, ID: id, Expect: api.AnyRevision, Data: api.Encode(api.InstanceStatus{Phase: api.InstanceRunning, Node: node, Epoch: 1,
					StartedAt: &started})})
		}
		apply(cmds...)
	}
	key, token := auth.NewAPIKey(api.Meta{Name: "portal"}, api.APIKeySpec{Role: api.RoleOperator})
	apply(key)
	srv, err := server.New(server.Options{Store: s, KeyRate: 1e12})
	if err != nil {
		b.Fatal(err)
	}
	request := func(b *testing.B, sort string) time.Duration {
		b.Helper()
		r := httptest.NewRequest(http.MethodGet, "/v1/instances?limit=25&sort="+sort, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		rec := httptest.NewRecorder()
		begun := time.Now()
		srv.ServeHTTP(rec, r)
		took := time.Since(begun)
		if n := strings.Count(rec.Body.String(), `"kind":"Instance"`); rec.Code != http.StatusOK || n != 25 {
			b.Fatalf("GET %s: status %d with %d instances, want 200 with 25", r.URL, rec.Code, n)
		}
		return took
	}
	p99 := func(b *testing.B, took []time.Duration) {
		b.ReportMetric(float64(percentile(took, 99).Microseconds())/1000, "p99-ms")
	}
	var all []time.Duration
	for _, field := range api.KindInstance.Fields() {
		b.Run(field, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				took = append(took, request(b, "-"+field))
			}
			p99(b, took)
			all = append(all, took...)
		})
	}
	b.Run("indexed", func(b *testing.B) {
		var took []time.Duration
		for b.Loop() {
			took = append(took, request(b, "name"))
		}
		p99(b, took)
	})
	if len(all) > 0 {
		b.Run("any", func(b *testing.B) {
			for b.Loop() { // the requests were made above
			}
			p99(b, all)
		})
	}
}
