package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// TestAlertPages checks that the pages are consistent for every limit, and that each
// reports the total numbers.
func TestAlertPages(t *testing.T) {
	w := newWorld(t)
	for i, state := range []api.NodeState{api.NodeSuspect, api.NodeLost, api.NodeSuspect, api.NodeReady} {
		id := fmt.Sprintf("node-00000000000%d", i)
		w.Apply(t, api.Command{Op: api.OpReport, Kind: api.KindNode, ID: id, Expect: api.AnyRevision, Name: fmt.Sprintf("n%d", i), Data: api.Encode(api.NodeStatus{Vcpus: 8})},
			api.Command{Op: api.OpAssign, Kind: api.KindNode, ID: id, Expect: api.AnyRevision, Data: api.Encode(api.NodeAssignment{State: state})})
	}
	page := func(query string) (p api.AlertList) {
		t.Helper()
		rec := w.call(http.MethodGet, "/v1/alerts?"+query, w.Token, "")
		if rec.Code != http.StatusOK {
			t.Fatalf("list alerts with %s: %d %s, want 200", query, rec.Code, rec.Body)
		}
		if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	want := []string{"node.lost n1", "node.suspect n0", "node.suspect n2"}
	for limit := range 4 {
		var got []string
		for next := ""; ; {
			p := page(fmt.Sprintf("limit=%d&continue=%s", limit, url.QueryEscape(next)))
			if p.Critical != 1 || p.Warning != 2 {
				t.Errorf("limit %d: %d critical alerts and %d warnings, want 1 and 2", limit, p.Critical, p.Warning)
			}
			for _, a := range p.Items {
				got = append(got, string(a.Code)+" "+a.Name)
			}
			if next = p.Continue; next == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: alerts %q, want %q", limit, got, want)
		}
	}
	for _, bad := range []string{"limit=-1", "limit=1001", "continue=" + strings.Repeat("x", 600)} {
		if rec := w.call(http.MethodGet, "/v1/alerts?"+bad, w.Token, ""); rec.Code != http.StatusBadRequest {
			t.Errorf("list alerts with %.40s: %d %s, want 400", bad, rec.Code, rec.Body)
		}
	}
	if p := page(""); time.Since(p.AsOf) > time.Minute || time.Until(p.AsOf) > 0 {
		t.Errorf("alerts as of %v, want a time within the last minute", p.AsOf)
	}
	if p := page("continue=%ff%00"); len(p.Items) != 0 {
		t.Errorf("page after the end has items %+v, want none", p)
	}
}
