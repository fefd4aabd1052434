package ui_test

import (
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/auth"
	"github.com/basalt-gpu/basalt/api/server/servertest"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
	"github.com/basalt-gpu/basalt/appliance/test/kit/portaltest"
	"github.com/basalt-gpu/basalt/ui"
)

// BenchmarkPortal measures the portal in Chromium on this machine, over the real store with
// 20,000 instances. Each measurement that e2e/bench.mjs prints is a benchmark of its own. The
// API is the real one; there are no nodes, and this test writes the instances' status.
func BenchmarkPortal(b *testing.B) {
	s, err := store.Open(store.Options{Dir: b.TempDir(), NodeID: "node-a"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	// The key of the test server is not in this store, so fillForBench creates one.
	env := servertest.StartWith(b, func(o *server.Options) { o.Store = s })
	web := httptest.NewServer(ui.Handler(env.Server))
	b.Cleanup(web.Close)
	fillForBench(b, s, web.URL)
	changes := httptest.NewServer(&changer{store: s})
	b.Cleanup(changes.Close)
	out := portaltest.RunStory(b, "bench.mjs", func() string { return "" }, "PORTAL="+web.URL, "EMAIL=ann@example.com", "CHANGES="+changes.URL)
	for line := range strings.Lines(out) {
		name, values, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			b.Fatalf("line of bench.mjs = %q, want NAME: VALUES", line)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportMetric(0, "ns/op") // the duration of this function is meaningless
			for value, unit := range pairs(b, values) {
				b.ReportMetric(value, unit)
			}
		})
	}
}

// pairs iterates over values and their units, as in "12.5 ms 3 kB".
func pairs(b *testing.B, text string) iter.Seq2[float64, string] {
	return func(yield func(float64, string) bool) {
		for pair := range slices.Chunk(strings.Fields(text), 2) {
			value, err := strconv.ParseFloat(pair[0], 64)
			if err != nil || len(pair) != 2 {
				b.Fatalf("%q is not a value and its unit", pair)
			}
			if !yield(value, pair[1]) {
				return
			}
		}
	}
}

const benchInstances = 20_000

func benchID(n int) string { return fmt.Sprintf("ins-%012x", n) }

// fillForBench creates a project with many instances, and Ann, who administers it.
func fillForBench(b *testing.B, s *store.Store, url string) {
	b.Helper()
	ctx := b.Context()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	key, token := auth.NewAPIKey(api.Meta{Name: "operator"}, api.APIKeySpec{Role: api.RoleOperator})
	_, err := s.Apply(ctx, api.Batch{Commands: []api.Command{key}})
	must(err)
	op, err := client.New(client.Options{Server: url, Token: token})
	must(err)
	org, err := client.Of[api.Organization](op).Create(ctx, api.Organization{Meta: api.Meta{Name: "acme"}})
	must(err)
	p, err := client.Of[api.Project](op).Create(ctx, api.Project{Meta: api.Meta{Name: "render", Organization: org.Meta.ID}})
	must(err)
	u, err := client.Of[api.User](op).Create(ctx, api.User{Meta: api.Meta{Name: "ann@example.com", Organization: org.Meta.ID},
		Spec: api.UserSpec{Grants: []api.Grant{{Role: api.RoleAdmin, Organization: org.Meta.ID}}}})
	must(err)
	portaltest.SetPassword(b, url, u.Link.Token)
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

// changer changes the first 500 instances, 20 per second, while a request is open. Each step
// has a new text, as writing the same status again is not a change.
type changer struct {
	store *store.Store
	steps atomic.Int64
}

func (c *changer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	tick := time.NewTicker(time.Second / 20)
	defer tick.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
		n := int(c.steps.Add(1))
		status := api.InstanceStatus{Phase: api.InstanceRunning, Node: "nod-000000000001", Step: fmt.Sprint("step ", n)}
		report := api.Command{Op: api.OpReport, Kind: api.KindInstance, ID: benchID(n % 500), Expect: api.AnyRevision, Data: api.Encode(status)}
		if _, err := c.store.Apply(r.Context(), api.Batch{Commands: []api.Command{report}}); err != nil {
			return
		}
	}
}
