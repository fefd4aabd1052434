package ui_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/servertest"
	"github.com/basalt-gpu/basalt/appliance/store"
	"github.com/basalt-gpu/basalt/installer/dev/portaltest"
	"github.com/basalt-gpu/basalt/ui"
)

// BenchmarkPortal measures the portal in Chromium on this machine, over the real
// store with 20,000 instances: what e2e/bench.mjs prints. The API is the real
// one; there are no nodes, and the instances say what this test made them say.
func BenchmarkPortal(b *testing.B) {
	s, err := store.Open(store.Options{Dir: b.TempDir(), NodeID: "node-a"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	// Its own operator's key is in its own store.
	env := servertest.StartWith(b, func(o *server.Options) { o.Store = s })
	web := httptest.NewServer(ui.Handler(env.Server))
	b.Cleanup(web.Close)
	fillForBench(b, s, web.URL)
	b.Cleanup(change(s))
	for range b.N {
		portaltest.Tell(b, "bench.mjs", func() string { return "" }, "PORTAL="+web.URL, "EMAIL=ann@example.com")
	}
}

const benchInstances = 20_000

func benchID(n int) string { return fmt.Sprintf("ins-%012x", n) }

// fillForBench makes a project with many instances, and Ann, who administers it.
func fillForBench(b *testing.B, s *store.Store, url string) {
	b.Helper()
	ctx := b.Context()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	key, token := server.NewAPIKey(api.Meta{Name: "operator"}, api.APIKeySpec{Role: api.RoleOperator})
	_, err := s.Apply(ctx, api.Batch{Commands: []api.Command{key}})
	must(err)
	op, err := client.New(client.Options{Server: url, Token: token})
	must(err)
	org, err := op.Organizations().Create(ctx, api.Organization{Meta: api.Meta{Name: "acme"}})
	must(err)
	p, err := op.Projects().Create(ctx, api.Project{Meta: api.Meta{Name: "render", Organization: org.Meta.ID}})
	must(err)
	u, err := op.Users().Create(ctx, api.User{Meta: api.Meta{Name: "ann@example.com", Organization: org.Meta.ID},
		Spec: api.UserSpec{Grants: []api.Grant{{Role: api.RoleAdmin, Organization: org.Meta.ID}}}})
	must(err)
	resp, err := http.Post(url+"/v1/password/link", "application/json", strings.NewReader(`{"token":"`+u.Link.Token+`","password":"`+secret+`"}`))
	must(err)
	_ = resp.Body.Close()
	spec := api.Encode(api.InstanceSpec{Flavor: "flv-000000000001", Image: "img-000000000001", Vgpu: &api.VGPUSpec{VramBytes: 8 << 30, SharePercent: 25}})
	for n := 0; n < benchInstances; n += 250 {
		var batch api.Batch
		for i := n; i < n+250; i++ {
			address := fmt.Sprintf("10.%d.%d.%d", i/62500, i/250%250, i%250)
			a := api.InstanceAssignment{Node: "nod-000000000001", Vcpus: 8, MemoryBytes: 32 << 30, Ports: []api.InstancePort{{Network: "net-000000000001", Address4: address}}}
			batch.Commands = append(batch.Commands,
				api.Command{Op: api.OpPutSpec, Kind: api.KindInstance, ID: benchID(i), Name: fmt.Sprintf("train-%05d", i), Organization: org.Meta.ID, Project: p.Meta.ID, Data: spec},
				api.Command{Op: api.OpAssign, Kind: api.KindInstance, ID: benchID(i), Expect: api.AnyRevision, Data: api.Encode(a), Claims: []string{"ip/net-000000000001/" + address}},
				api.Command{Op: api.OpReport, Kind: api.KindInstance, ID: benchID(i), Expect: api.AnyRevision, Data: api.Encode(api.InstanceStatus{Phase: api.InstanceRunning, Node: "nod-000000000001"})})
		}
		_, err := s.Apply(ctx, batch)
		must(err)
	}
}

// change the first 500 instances, 100 a second, until it is stopped.
func change(s *store.Store) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			var batch api.Batch
			for range 10 {
				batch.Commands = append(batch.Commands, api.Command{Op: api.OpReport, Kind: api.KindInstance, ID: benchID(n % 500), Expect: api.AnyRevision,
					Data: api.Encode(api.InstanceStatus{Phase: api.InstanceRunning, Node: "nod-000000000001", Step: fmt.Sprint("step ", n)})})
				n++
			}
			if _, err := s.Apply(ctx, batch); err != nil {
				return
			}
		}
	}()
	return func() { cancel(); <-done }
}
