package store

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// BenchmarkAlerts measures the portal's alerts request, with 20,000 instances on 200
// nodes: "cached" is one of many callers within a moment, "computed" is a caller for whom
// the alerts are computed because the cluster has changed.
func BenchmarkAlerts(b *testing.B) {
	s := open(b, Options{})
	apply := func(cmds ...api.Command) {
		b.Helper()
		if _, err := s.Apply(b.Context(), api.Batch{Commands: cmds}); err != nil {
			b.Fatal(err)
		}
	}
	node := func(n int) string { return fmt.Sprintf("node-%012x", n%200) }
	spec := api.Encode(api.InstanceSpec{Flavor: "flv-000000000001", Image: "img-000000000001", Vgpu: &api.VGPUSpec{VramBytes: 8 << 30, SharePercent: 25}})
	for n := 0; n < 20_000; n += 250 {
		var cmds []api.Command
		for i := n; i < n+250; i++ {
			id := fmt.Sprintf("ins-%012x", i)
			cmds = append(cmds, api.Command{Op: api.OpPutSpec, Kind: api.KindInstance, ID: id, Name: fmt.Sprintf("train-%05d", i), Organization: "org-1", Project: "prj-1", Data: spec},
				api.Command{Op: api.OpAssign, Kind: api.KindInstance, ID: id, Expect: api.AnyRevision, Data: api.Encode(api.InstanceAssignment{Node: api.NodeID(node(i)), Epoch: 1, Vcpus: 8, MemoryBytes: 32 << 30,
					Ports: []api.InstancePort{{Network: "net-000000000001", Address4: fmt.Sprintf("10.0.%d.%d", i/250, i%250)}}})},
				api.Command{Op: api.OpReport, Kind: api.KindInstance, ID: id, Expect: api.AnyRevision, Data: api.Encode(api.InstanceStatus{Phase: api.InstanceRunning, Node: api.NodeID(node(i)), Epoch: 1})})
		}
		apply(cmds...)
	}
	report := func(n int, at time.Time) {
		apply(api.Command{Op: api.OpReport, Kind: api.KindNode, ID: node(n), Name: node(n), Expect: api.AnyRevision, Data: api.Encode(api.NodeStatus{Vcpus: 64, SeenAt: at})})
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for n := range 200 {
		report(n, now)
	}
	key, token := auth.NewAPIKey(api.Meta{Name: "bell"}, api.APIKeySpec{Role: api.RoleOperator})
	apply(key)
	srv, err := server.New(server.Options{Store: s, KeyRate: 1e12, Now: func() time.Time { return now }})
	if err != nil {
		b.Fatal(err)
	}
	for name, between := range map[string]time.Duration{"cached": 0, "computed": time.Minute} {
		b.Run(name, func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				b.StopTimer()
				if now = now.Add(between); between > 0 {
					report(n, now)
				}
				r := httptest.NewRequest(http.MethodGet, "/v1/alerts?limit=5", nil)
				r.Header.Set("Authorization", "Bearer "+token)
				rec := httptest.NewRecorder()
				b.StartTimer()
				if srv.ServeHTTP(rec, r); rec.Code != http.StatusOK {
					b.Fatalf("GET /v1/alerts: status %d, want 200: %s", rec.Code, rec.Body)
				}
			}
		})
	}
}
