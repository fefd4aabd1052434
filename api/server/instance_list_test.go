package server_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// TestListInstancesBy checks that the server filters lists by node, GPU and phase
// before it divides them into pages.
func TestListInstancesBy(t *testing.T) {
	w := newWorld(t)
	report := func(kind api.Kind, id, name string, status any) {
		w.Apply(t, api.Command{Op: api.OpReport, Kind: kind, ID: id, Expect: api.AnyRevision, Name: name, Data: api.Encode(status)})
	}
	report(api.KindNode, "node-000000000001", "one", api.NodeStatus{Vcpus: 8})
	report(api.KindNode, "node-000000000002", "two", api.NodeStatus{Vcpus: 8})
	report(api.KindGPU, "gpu-000000000001", "one-card", api.GPUStatus{Node: "node-000000000001"})
	for name, a := range map[string]api.InstanceAssignment{
		"a": {Node: "node-000000000001", Gpu: "gpu-000000000001"}, "b": {Node: "node-000000000001"}, "c": {Node: "node-000000000002", NodeLost: true}, "d": {},
	} {
		in := must(t, ret(client.Of[api.Instance](w.op).Create(t.Context(), api.Instance{Meta: api.Meta{Name: name, Project: w.web}, Spec: api.InstanceSpec{Flavor: "small", Image: "debian"}})))
		w.Apply(t, api.Command{Op: api.OpAssign, Kind: api.KindInstance, ID: in.v.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(a)})
		if a.Node != "" {
			report(api.KindInstance, in.v.Meta.ID, "", api.InstanceStatus{Phase: api.InstanceRunning, Node: a.Node})
		}
	}
	names := func(token, query string) (string, int) {
		var all []string
		for next := ""; ; {
			rec := w.call(http.MethodGet, "/v1/instances?limit=1&"+query+"&continue="+next, token, "")
			if rec.Code != http.StatusOK {
				return rec.Body.String(), rec.Code
			}
			var page api.InstanceList
			if err := json.Unmarshal(rec.Body.Bytes(), &page); err != nil {
				t.Fatal(err)
			}
			for _, i := range page.Items {
				all = append(all, i.Meta.Name)
			}
			if next = page.Continue; next == "" {
				slices.Sort(all)
				return strings.Join(all, " "), rec.Code
			}
		}
	}
	for query, want := range map[string]string{
		"node=one": "a b", "node=node-000000000002": "c", "gpu=one-card": "a", "phase=Running": "a b", "phase=NodeLost": "c", "phase=Pending": "d",
		"node=one&phase=Running&name=b": "b", "node=two&phase=Running": "",
	} {
		if got, code := names(w.Token, query); got != want || code != http.StatusOK {
			t.Errorf("instances with %s = %q (%d), want %q", query, got, code, want)
		}
	}
	if got, code := names(w.Token, "phase=Sleeping"); code != http.StatusBadRequest || !strings.Contains(got, `"field":"phase"`) {
		t.Errorf("list by an unknown phase: %d %s, want 400 at phase", code, got)
	}
	if got, code := names(w.Token, "node=three"); code != http.StatusBadRequest || !strings.Contains(got, `"field":"node"`) {
		t.Errorf("list by an unknown node: %d %s, want 400 at node", code, got)
	}
	// A caller who cannot see nodes does not learn which instances run on one.
	tenant := w.Key(t, api.Meta{Name: "k", Organization: w.acme, Project: w.web}, api.RoleViewer)
	if got, code := names(tenant, "node=one"); code != http.StatusBadRequest {
		t.Errorf("list by node with a project's key: %d %s, want 400", code, got)
	}
	if got, _ := names(tenant, "phase=Running"); got != "a b" {
		t.Errorf("running instances with a project's key = %q, want a and b", got)
	}
}
