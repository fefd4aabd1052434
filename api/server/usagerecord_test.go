package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

var recordsBegin = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// recordOf returns the command that records the i-th minute of an instance.
func recordOf(i int, org, project string) api.Command {
	end := recordsBegin.Add(time.Duration(i+1) * time.Minute)
	return api.Command{Op: api.OpRecord, Kind: api.KindUsageRecord, ID: fmt.Sprintf("use-%012d", i), Organization: org, Project: project,
		Data: api.Encode(api.UsageRecordSpec{Meter: []api.Meter{api.MeterVCPU, api.MeterMemory}[i%2], Resource: fmt.Sprint("ins-", i%3), Start: end.Add(-time.Minute), End: end, Quantity: 60})}
}

// minutes returns the numbers of all records, page by page.
func minutes(t *testing.T, c client.Collection[api.UsageRecord], q client.Query) (out []int) {
	t.Helper()
	for r, err := range c.All(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, int(r.Spec.Start.Sub(recordsBegin)/time.Minute))
	}
	return out
}

// TestUsageRecordsOfEveryRole checks that each role sees the records in its scope, in
// the order of their ends, with every page size.
func TestUsageRecordsOfEveryRole(t *testing.T) {
	w := newWorld(t)
	seller := organization(t, w.op, "seller", api.OrganizationSpec{})
	reseller := w.as(api.RoleReseller, seller.Meta.ID, "")
	one, two := organization(t, reseller, "one", api.OrganizationSpec{}).Meta.ID, organization(t, reseller, "two", api.OrganizationSpec{}).Meta.ID
	owners := [][2]string{{w.acme, w.web}, {w.acme, w.lab}, {w.other, w.theirs}, {one, "prj-1"}, {two, "prj-2"}, {seller.Meta.ID, "prj-3"}}
	of := func(orgs ...string) (out []int) {
		slices.Sort(orgs)
		for _, org := range orgs {
			for i := range 60 {
				if owners[i%len(owners)][0] == org {
					out = append(out, i)
				}
			}
		}
		return out
	}
	inProject := func(n int) (out []int) {
		for i := n; i < 60; i += len(owners) {
			out = append(out, i)
		}
		return out
	}
	for i := range 60 { // in descending order
		n := 59 - i
		w.Apply(t, recordOf(n, owners[n%len(owners)][0], owners[n%len(owners)][1]))
	}
	for who, c := range map[string]struct {
		api  *client.API
		want []int
	}{
		"operator":       {w.op, of(w.acme, w.other, one, two, seller.Meta.ID)},
		"reseller":       {reseller, of(one, two, seller.Meta.ID)},
		"admin":          {w.as(api.RoleAdmin, w.acme, ""), of(w.acme)},
		"billing":        {w.as(api.RoleBilling, w.other, ""), of(w.other)},
		"member":         {w.as(api.RoleMember, w.acme, w.lab), inProject(1)},
		"viewer":         {w.as(api.RoleViewer, w.acme, w.web), inProject(0)},
		"other reseller": {w.as(api.RoleReseller, w.acme, ""), of(w.acme)},
	} {
		for _, limit := range []int{0, 1, 7, 20} {
			if got := minutes(t, client.Of[api.UsageRecord](c.api), client.Query{Limit: limit}); !slices.Equal(got, c.want) {
				t.Errorf("records that %s sees with limit %d = %v, want %v", who, limit, got, c.want)
			}
		}
	}
	if got := minutes(t, client.Of[api.UsageRecord](reseller), client.Query{Organization: "two", Limit: 3}); !slices.Equal(got, of(two)) {
		t.Errorf("records of a customer, read by its reseller = %v, want %v", got, of(two))
	}
	if got := minutes(t, client.Of[api.UsageRecord](w.op), client.Query{Organization: "acme", Project: "lab"}); !slices.Equal(got, inProject(1)) {
		t.Errorf("records of a project = %v, want %v", got, inProject(1))
	}
	query := api.RecordQuery{Meter: api.MeterVCPU, Resource: "ins-0", From: recordsBegin.Add(6 * time.Minute), To: recordsBegin.Add(43 * time.Minute)}
	if got := minutes(t, client.Of[api.UsageRecord](w.op), client.Query{Organization: "acme", Records: query}); !slices.Equal(got, []int{6, 12, 18, 24, 30, 36, 42}) {
		t.Errorf("records selected by meter, resource and time = %v, want every sixth from 6 to 42", got)
	}
	if got := minutes(t, client.Of[api.UsageRecord](w.op), client.Query{Name: "use-000000000017"}); !slices.Equal(got, []int{17}) {
		t.Errorf("record selected by its name = %v, want 17", got)
	}
	if r, err := client.Of[api.UsageRecord](w.op).Page(t.Context(), client.Query{Limit: 1}); err != nil || r.Items[0].Meta.Name != r.Items[0].Meta.ID || r.Items[0].Meta.CreatedAt.IsZero() {
		t.Errorf("first record = %+v, error %v; want its ID as name and a creation time", r, err)
	}
}

// TestForeignUsageRecords checks that records of other organizations are not returned,
// whatever the continue token, and that only lists read records.
func TestForeignUsageRecords(t *testing.T) {
	w := newWorld(t)
	for i := range 10 {
		w.Apply(t, recordOf(i, w.other, w.theirs))
	}
	page, err := client.Of[api.UsageRecord](w.op).Page(t.Context(), client.Query{Organization: "other", Limit: 3})
	if err != nil || page.Continue == "" {
		t.Fatal(page, err)
	}
	for who, key := range map[string]string{"member": w.Key(t, api.Meta{Name: "m", Organization: w.acme, Project: w.web}, api.RoleMember),
		"admin": w.Key(t, api.Meta{Name: "a", Organization: w.acme}, api.RoleAdmin), "reseller": w.Key(t, api.Meta{Name: "r", Organization: w.acme}, api.RoleReseller)} {
		for target, code := range map[string]int{
			"?continue=" + page.Continue:      http.StatusOK,
			"?organization=" + w.other:        http.StatusBadRequest,
			"?project=" + w.theirs:            http.StatusBadRequest,
			"?name=" + page.Items[0].Meta.ID:  http.StatusOK,
			"/" + page.Items[0].Meta.ID:       http.StatusNotFound,
			"?continue=x":                     http.StatusBadRequest,
			"?continue=9/" + w.other + "/%00": http.StatusBadRequest,
			"?limit=1001":                     http.StatusBadRequest,
			"?from=yesterday":                 http.StatusBadRequest,
		} {
			rec := w.call("GET", "/v1/usage-records"+target, key, "")
			if rec.Code != code || strings.Contains(rec.Body.String(), "ins-") {
				t.Errorf("%s lists %s: %d %s, want %d without records", who, target, rec.Code, rec.Body, code)
			}
		}
	}
	if rec := w.call("GET", "/v1/watch?kind=UsageRecord", w.Token, ""); rec.Code != http.StatusBadRequest {
		t.Errorf("watch usage records: %d %s, want 400", rec.Code, rec.Body)
	}
}
