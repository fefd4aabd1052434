package client_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server/servertest"
)

// connect returns a client of a server that calls before with every request.
func connect(t *testing.T, e *servertest.Env, before func(http.ResponseWriter, *http.Request) (handled bool)) *client.API {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before == nil || !before(w, r) {
			e.Server.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	c, err := client.New(client.Options{Server: s.URL, Token: e.Token})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func flavor(name string, vcpus int64, labels map[string]string) api.Flavor {
	return api.Flavor{Meta: api.Meta{Name: name, Labels: labels}, Spec: api.FlavorSpec{Vcpus: vcpus, MemoryBytes: 1 << 30}}
}

func TestApply(t *testing.T) {
	flavors := client.Of[api.Flavor](connect(t, servertest.Start(t, nil), nil))
	id := ""
	for _, c := range []struct {
		about         string
		dry           bool
		in            api.Flavor
		want          client.ApplyResult
		before, after int64 // virtual processors
	}{
		{"a dry run of a new object", true, flavor("a", 1, nil), client.ApplyCreated, 0, 1},
		{"a new object", false, flavor("a", 1, nil), client.ApplyCreated, 0, 1},
		{"the same again", false, flavor("a", 1, nil), client.ApplyUnchanged, 1, 1},
		{"a dry run of a new spec", true, flavor("a", 2, nil), client.ApplyUpdated, 1, 2},
		{"a new spec", false, flavor("a", 2, nil), client.ApplyUpdated, 1, 2},
		{"new labels", false, flavor("a", 2, map[string]string{"team": "vision"}), client.ApplyUpdated, 2, 2},
		{"the same labels again", false, flavor("a", 2, map[string]string{"team": "vision"}), client.ApplyUnchanged, 2, 2},
	} {
		in := flavors
		if c.dry {
			in = flavors.DryRun()
		}
		got, err := in.Apply(t.Context(), c.in)
		if err != nil {
			t.Fatalf("apply %s: %v", c.about, err)
		}
		if got.Result != c.want || got.Before.Spec.Vcpus != c.before || got.Object.Spec.Vcpus != c.after {
			t.Errorf("apply %s = %s from %d to %d virtual processors, want %s from %d to %d", c.about, got.Result, got.Before.Spec.Vcpus, got.Object.Spec.Vcpus, c.want, c.before, c.after)
		}
		if c.dry {
			continue
		}
		if id == "" {
			id = got.Object.Meta.ID
		}
		if got.Object.Meta.ID != id {
			t.Errorf("apply %s returned object %s, want %s", c.about, got.Object.Meta.ID, id)
		}
		stored, err := flavors.Get(t.Context(), "a", client.Query{})
		if err != nil || stored.Spec.Vcpus != c.after || len(stored.Meta.Labels) != len(c.in.Meta.Labels) {
			t.Errorf("after applying %s the server has %d virtual processors and labels %v, error %v; want %d and %v", c.about, stored.Spec.Vcpus, stored.Meta.Labels, err, c.after, c.in.Meta.Labels)
		}
	}
}

// TestApplyInProject checks that the name is looked up in the project of the meta.
func TestApplyInProject(t *testing.T) {
	e := servertest.Start(t, nil)
	c := connect(t, e, nil)
	if _, err := client.Of[api.Organization](c).Apply(t.Context(), api.Organization{Meta: api.Meta{Name: "acme"}}); err != nil {
		t.Fatal(err)
	}
	networks := client.Of[api.Network](c)
	ids := map[string]bool{}
	for _, project := range []string{"one", "two"} {
		if _, err := client.Of[api.Project](c).Apply(t.Context(), api.Project{Meta: api.Meta{Name: project, Organization: "acme"}}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []client.ApplyResult{client.ApplyCreated, client.ApplyUnchanged} {
			got, err := networks.Apply(t.Context(), api.Network{Meta: api.Meta{Name: "net", Organization: "acme", Project: project}, Spec: api.NetworkSpec{Cidr4: "10.1.0.0/24"}})
			if err != nil || got.Result != want {
				t.Fatalf("apply network net of project %s = %q, %v; want %s", project, got.Result, err, want)
			}
			ids[got.Object.Meta.ID] = true
		}
	}
	if len(ids) != 2 {
		t.Errorf("network net applied in two projects has %d IDs, want 2", len(ids))
	}
}

// TestApplyAgainstOthers changes the object before the first update arrives, and
// creates it between the first read and the creation.
func TestApplyAgainstOthers(t *testing.T) {
	e := servertest.Start(t, nil)
	other := client.Of[api.Flavor](connect(t, e, nil))
	a, err := other.Create(t.Context(), flavor("a", 1, nil))
	if err != nil {
		t.Fatal(err)
	}
	var puts, gets atomic.Int64
	flavors := client.Of[api.Flavor](connect(t, e, func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Method == http.MethodPut && puts.Add(1) == 1:
			if _, err := other.Patch(t.Context(), a.Meta.ID, map[string]any{"spec": map[string]any{"vcpus": 2}}); err != nil {
				t.Errorf("patch by another client: %v", err)
			}
		case r.URL.Path == "/v1/flavors/b" && gets.Add(1) == 1:
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"code":"not_found","message":"flavor b does not exist"}`))
			if _, err := other.Create(t.Context(), flavor("b", 1, nil)); err != nil {
				t.Errorf("create by another client: %v", err)
			}
			return true
		}
		return false
	}))
	got, err := flavors.Apply(t.Context(), flavor("a", 3, nil))
	if err != nil || got.Result != client.ApplyUpdated || got.Before.Spec.Vcpus != 2 || got.Object.Spec.Vcpus != 3 || puts.Load() != 2 {
		t.Errorf("apply of a changed object = %s from %d to %d virtual processors after %d updates, error %v; want %s from 2 to 3 after 2", got.Result, got.Before.Spec.Vcpus, got.Object.Spec.Vcpus, puts.Load(), err, client.ApplyUpdated)
	}
	got, err = flavors.Apply(t.Context(), flavor("b", 4, nil))
	if err != nil || got.Result != client.ApplyUpdated || got.Object.Spec.Vcpus != 4 {
		t.Errorf("apply of an object that another client has created = %s to %d virtual processors, error %v; want %s to 4", got.Result, got.Object.Spec.Vcpus, err, client.ApplyUpdated)
	}
}

func TestApplyRefuses(t *testing.T) {
	c := connect(t, servertest.Start(t, nil), nil)
	_, unnamed := client.Of[api.Flavor](c).Apply(t.Context(), flavor("", 1, nil))
	_, invalid := client.Of[api.Flavor](c).Apply(t.Context(), flavor("a", -1, nil))
	_, reported := client.Of[api.GPU](c).DryRun().Apply(t.Context(), api.GPU{Meta: api.Meta{Name: "none"}})
	_, listed := client.Of[api.UsageRecord](c).Apply(t.Context(), api.UsageRecord{Meta: api.Meta{Name: "none"}})
	for about, err := range map[string]error{"an object without a name": unnamed, "an invalid spec": invalid, "a usage record": listed} {
		if err == nil || api.CodeOf(err) != api.CodeInvalid {
			t.Errorf("apply of %s = %v, want %s", about, err, api.CodeInvalid)
		}
	}
	if reported == nil {
		t.Error("apply of a GPU that does not exist succeeded, want an error")
	}
}
