package server_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

func TestSamples(t *testing.T) {
	w := newWorld(t)
	in, err := w.instance(w.as(api.RoleMember, w.acme, w.web), "demo")
	if err != nil {
		t.Fatal(err)
	}
	w.Apply(t, api.Command{Op: api.OpReport, Kind: api.KindGPU, ID: "gpu-1", Name: "card", Data: api.Encode(api.GPUStatus{Node: "node-1"})},
		api.Command{Op: api.OpReport, Kind: api.KindNode, ID: "node-1", Name: "n1", Data: api.Encode(api.NodeStatus{})})
	ctx, viewer := t.Context(), w.as(api.RoleViewer, w.acme, w.web)
	q := api.SampleQuery{From: time.Now().Add(-time.Hour), Step: time.Minute}
	got, err := viewer.InstanceSamples(ctx, in.Meta.ID, q)
	if err != nil || got.StepSeconds != 60 || len(got.Series) == 0 {
		t.Fatalf("samples of the instance = %+v, %v; want series with a step of 60 s", got, err)
	}
	cpu := got.Series[0]
	if cpu.Name != api.SampleCPU || cpu.Unit != api.UnitPercent || len(cpu.Values) != 3 || cpu.Values[1] != nil || *cpu.Values[2] != 30 {
		t.Errorf("first series = %+v, want three values of %s in %s with a gap", cpu, api.SampleCPU, api.UnitPercent)
	}
	if last, ok := cpu.Last(); !ok || last != 30 {
		t.Errorf("last value = %v, %v; want 30", last, ok)
	}
	if got, err := viewer.InstanceSamples(ctx, in.Meta.ID, api.SampleQuery{}); err != nil || got.StepSeconds != 5 {
		t.Errorf("samples without parameters = %+v, %v; want a step of 5 s", got, err)
	}
	_, err = viewer.InstanceSamples(ctx, in.Meta.ID, api.SampleQuery{Step: 48 * time.Hour})
	wantErr(t, err, api.CodeInvalid, "step")
	_, err = viewer.InstanceSamples(ctx, in.Meta.ID, api.SampleQuery{Step: 7 * time.Second})
	wantErr(t, err, api.CodeInvalid, "step")
	_, err = w.as(api.RoleViewer, w.other, w.theirs).InstanceSamples(ctx, in.Meta.ID, q)
	wantErr(t, err, api.CodeNotFound, "")
	// Samples of nodes and GPUs are restricted to operators.
	_, err = viewer.NodeSamples(ctx, "n1", q)
	wantErr(t, err, api.CodeForbidden, "")
	if got, err := w.op.NodeSamples(ctx, "n1", q); err != nil || len(got.Series) == 0 {
		t.Errorf("samples of the node = %+v, %v; want series", got, err)
	}
	if got, err := w.op.GPUSamples(ctx, "card", q); err != nil || len(got.Series) == 0 {
		t.Errorf("samples of the GPU = %+v, %v; want series", got, err)
	}
	if got, err := w.op.GPUTenants(ctx, "card"); err != nil || len(got.Items) != 1 || got.Items[0].VramResidentBytes != 1<<30 {
		t.Errorf("tenants of the GPU = %+v, %v; want one with 1 GiB of resident VRAM", got, err)
	}
	_, err = w.op.GPUTenants(ctx, "none")
	wantErr(t, err, api.CodeNotFound, "")
}

// TestSamplesAreAskedOfTheirNode checks that requests for what only one node knows are
// forwarded to that node.
func TestSamplesAreAskedOfTheirNode(t *testing.T) {
	asked := []string{}
	s := memstore.New()
	srv, err := server.New(server.Options{Store: s, Elsewhere: func(node api.NodeID) http.Handler {
		if node == "node-1" {
			return nil // this one
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked = append(asked, string(node)+" "+r.URL.Path) })
	}})
	if err != nil {
		t.Fatal(err)
	}
	key, token := auth.NewAPIKey(api.Meta{Name: "k"}, api.APIKeySpec{Role: api.RoleOperator})
	_, err = s.Apply(t.Context(), api.Batch{At: time.Now(), Commands: []api.Command{key,
		{Op: api.OpPutSpec, Kind: api.KindInstance, ID: "ins-1", Name: "a", Organization: "o", Project: "p", Data: []byte(`{}`)},
		{Op: api.OpAssign, Kind: api.KindInstance, ID: "ins-1", Expect: api.AnyRevision, Data: api.Encode(api.InstanceAssignment{Node: "node-2"})},
		{Op: api.OpReport, Kind: api.KindGPU, ID: "gpu-3", Name: "g", Data: api.Encode(api.GPUStatus{Node: "node-3"})},
		{Op: api.OpReport, Kind: api.KindNode, ID: "node-4", Name: "n", Data: api.Encode(api.NodeStatus{})},
		{Op: api.OpReport, Kind: api.KindNode, ID: "node-1", Name: "n1", Data: api.Encode(api.NodeStatus{})}}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"node-2 /v1/instances/ins-1/samples", "node-3 /v1/gpus/gpu-3/samples", "node-3 /v1/gpus/gpu-3/tenants", "node-4 /v1/nodes/node-4/samples"}
	for _, path := range []string{"/v1/instances/ins-1/samples", "/v1/gpus/gpu-3/samples", "/v1/gpus/gpu-3/tenants", "/v1/nodes/node-4/samples", "/v1/nodes/node-1/samples"} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		rec := httptest.NewRecorder()
		srv.ServeHTTP(rec, r)
		if path == "/v1/nodes/node-1/samples" && rec.Code != http.StatusServiceUnavailable { // answered by this node, which has no runtime
			t.Errorf("GET %s: %d %s, want 503", path, rec.Code, rec.Body)
		}
	}
	if len(asked) != len(want) {
		t.Fatalf("forwarded to %q, want %q", asked, want)
	}
	for i := range want {
		if asked[i] != want[i] {
			t.Errorf("request %d was forwarded to %q, want %q", i, asked[i], want[i])
		}
	}
}
