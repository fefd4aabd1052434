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

// Pages hold together whatever their size, and each says how many there are in all.
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
			t.Fatalf("%s: %d %s", query, rec.Code, rec.Body)
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
				t.Errorf("limit %d: %d and %d", limit, p.Critical, p.Warning)
			}
			for _, a := range p.Items {
				got = append(got, string(a.Code)+" "+a.Name)
			}
			if next = p.Continue; next == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: %q, want %q", limit, got, want)
		}
	}
	for _, bad := range []string{"limit=-1", "limit=1001", "continue=" + strings.Repeat("x", 600)} {
		if rec := w.call(http.MethodGet, "/v1/alerts?"+bad, w.Token, ""); rec.Code != http.StatusBadRequest {
			t.Errorf("%.40s: %d %s", bad, rec.Code, rec.Body)
		}
	}
	if p := page(""); time.Since(p.AsOf) > time.Minute || time.Until(p.AsOf) > 0 {
		t.Errorf("as of %v", p.AsOf)
	}
	if p := page("continue=%ff%00"); len(p.Items) != 0 {
		t.Errorf("after the end: %+v", p)
	}
}
