package server_test

import (
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// faultsOf returns the fields that the error response to a request names, in order.
func faultsOf(t *testing.T, w *world, method, path, body string) string {
	t.Helper()
	p, _ := asked[api.Problem](t, w, 400, method, path, body)
	var fields []string
	for _, e := range p.Errors {
		if e.Detail == "" {
			t.Errorf("%s %s: error at %s has no detail", method, path, e.Field)
		}
		fields = append(fields, e.Field)
	}
	return strings.Join(fields, " ")
}

// TestAllFaultsOfABody checks that unknown fields and wrong types are all reported at
// once.
func TestAllFaultsOfABody(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ body, want string }{
		{`{"metta": {}, "meta": {"nam": "a", "name": "b"}, "spec": {"vcpu": 1, "memory": 2}}`, "meta.nam metta spec.memory spec.vcpu"},
		{`{"meta": {"name": 7}, "spec": {"vcpus": "two", "memoryBytes": 1.5, "rootBytes": [], "gpus": 1}}`, "meta.name spec.gpus spec.memoryBytes spec.rootBytes spec.vcpus"},
		{`{"meta": {"labels": {"a": 1, "b": "x", "c": {}}}, "spec": []}`, "meta.labels.a meta.labels.c spec"},
		{`{"meta": null, "spec": {"vcpus": null, "x": null}}`, "spec.x"},
		{`{"spec": {"vcpus": 1e400}}`, "spec.vcpus"},
		{`{"spec": {"vcpus": 9223372036854775808, "memoryBytes": true}}`, "spec.memoryBytes spec.vcpus"},
		{`{"meta": {"createdAt": "yesterday"}}`, ""}, // the error of the type's own decoder names no field
		{`[]`, ""},
	} {
		if got := faultsOf(t, w, "POST", "/v1/flavors", c.body); got != c.want {
			t.Errorf("body %s: faults at %q, want %q", c.body, got, c.want)
		}
	}
	deep := `{"spec": {"networks": [{"network": "a", "securityGroups": "x"}, {"nework": "a"}, 3], "sshKeys": [1, "x"]}}`
	if got, want := faultsOf(t, w, "POST", "/v1/instances", deep), "spec.networks[0].securityGroups spec.networks[1].nework spec.networks[2] spec.sshKeys[0]"; got != want {
		t.Errorf("faults of nested fields at %q, want %q", got, want)
	}
	many := `{"spec": {` + strings.TrimSuffix(strings.Repeat(`"x": 1, "y": [[[]]], "z": {"a": {}}, "`+strings.Repeat("long", 50)+`": 1, `, 1), ", ") + `}}`
	if got := len(strings.Fields(faultsOf(t, w, "POST", "/v1/flavors", many))); got != 4 {
		t.Errorf("%d faults of a body with many unknown fields, want 4", got)
	}
}

// TestAllFaultsOfReferences checks that a missing reference hides neither the next one
// nor other errors.
func TestAllFaultsOfReferences(t *testing.T) {
	w := newNetworkWorld(t)
	for _, c := range []struct{ what, method, path, body, want string }{
		{"instance", "POST", "instances", `{"meta": {"name": "No", "organization": "acme", "project": "web"}, "spec": {"flavor": "none", "image": "none",
			"vgpu": {"vramBytes": 1073741825, "pool": "none"}, "networks": [{"network": "none", "securityGroups": ["a", "b"]}, {"network": "default", "address4": "192.0.2.1", "securityGroups": ["c"]}]}}`,
			"meta.name spec.vgpu.vramBytes spec.flavor spec.image spec.vgpu.pool spec.networks[0].network spec.networks[0].securityGroups[0] " +
				"spec.networks[0].securityGroups[1] spec.networks[1].address4 spec.networks[1].securityGroups[0]"},
		{"instance without any", "POST", "instances", `{"meta": {"name": "a", "organization": "acme", "project": "web"}, "spec": {}}`, "spec.flavor spec.image"},
		{"instance of an app", "POST", "instances", `{"meta": {"name": "a", "organization": "acme", "project": "web"}, "spec": {"app": "none", "flavor": "none"}}`, "spec.app spec.flavor"},
		{"volume", "POST", "volumes", `{"meta": {"name": "a", "organization": "acme", "project": "web"}, "spec": {"pool": "None", "image": "none", "instance": "none"}}`, "spec.pool spec.image spec.instance"},
		{"volume of a snapshot", "POST", "volumes", `{"meta": {"name": "a", "organization": "acme", "project": "web"}, "spec": {"snapshot": "none", "instance": "none"}}`, "spec.snapshot spec.instance"},
		{"load balancer", "POST", "load-balancers", `{"meta": {"name": "a", "organization": "acme", "project": "web"}, "spec": {"network": "none", "protocol": "x", "port": 80,
			"backends": [{"instance": "none"}, {"instance": "nobody", "port": 80}], "floatingIP": "none"}}`,
			"spec.protocol spec.backends[0].port spec.network spec.backends[0].instance spec.backends[1].instance spec.floatingIP"},
		{"floating IP", "POST", "floating-ips", `{"meta": {"name": "a", "organization": "acme", "project": "web"}, "spec": {"externalNetwork": "none", "instance": "none"}}`, "spec.externalNetwork spec.instance"},
		{"backup", "POST", "backups", `{"meta": {"name": "a", "organization": "acme", "project": "web"}, "spec": {"volume": "none", "target": "none"}}`, "spec.volume spec.target"},
		{"migration", "POST", "migrations", `{"meta": {"name": "a"}, "spec": {"instance": "none", "target": "none"}}`, "spec.target spec.instance"},
		{"security group", "POST", "security-groups", `{"meta": {"name": "a", "organization": "acme", "project": "web"}, "spec": {"rules": [{"direction": "in", "protocol": "tcp", "group": "none"},
			{"direction": "ingress", "protocol": "tcp", "group": "nobody"}]}}`, "spec.rules[0].direction spec.rules[0].group spec.rules[1].group"},
		{"user", "POST", "users", `{"meta": {"name": "ann", "organization": "acme"}, "spec": {"grants": [{"role": "admin", "organization": "none"}, {"role": "member", "organization": "acme", "project": "none"}]}}`,
			"meta.name spec.grants[0].organization spec.grants[1].project"},
		{"identity provider", "POST", "identity-providers", `{"meta": {"name": "a"}, "spec": {"issuer": "none", "clientId": "a", "organization": "none",
			"grants": [{"claim": "a", "value": "b", "grant": {"role": "admin", "organization": "none"}}]}}`, "spec.issuer spec.grants[0].grant.organization spec.organization"},
		{"organization", "POST", "organizations", `{"meta": {"name": "No"}, "spec": {"priceBook": "none", "offers": ["no", "nope"], "parent": "none"}}`,
			"meta.name spec.priceBook spec.offers[0] spec.offers[1] spec.parent"},
		{"budget", "POST", "budgets", `{"meta": {"name": "a", "organization": "acme"}, "spec": {"amountMicros": -1, "project": "none"}}`, "spec.amountMicros spec.project"},
		{"service", "PUT", "services/shop:1", `{"spec": {"type": "machine", "email": "ann@example.com", "displayName": "Ann", "priceBook": "none", "machine": {"flavor": "none", "image": "none"}}}`,
			"spec.priceBook spec.machine.flavor spec.machine.image"},
	} {
		if got := faultsOf(t, w, c.method, "/v1/"+c.path, c.body); got != c.want {
			t.Errorf("%s: faults at\n%q, want\n%q", c.what, got, c.want)
		}
	}
}

// TestAllFaultsOfAChange checks that a change reports faults as a creation does.
func TestAllFaultsOfAChange(t *testing.T) {
	w := newNetworkWorld(t)
	in := must(t, ret(w.instance(w.op, "demo"))).v
	if got, want := faultsOf(t, w, "PATCH", "/v1/instances/"+in.Meta.ID, `{"spec": {"flavor": "none", "priority": 101, "vgpu": {"pool": "none"}}}`),
		"spec.priority spec.flavor spec.vgpu.pool"; got != want {
		t.Errorf("faults of a changed instance at %q, want %q", got, want)
	}
	org := must(t, ret(client.Of[api.Organization](w.op).Get(t.Context(), w.acme, client.Query{}))).v
	if got, want := faultsOf(t, w, "PATCH", "/v1/organizations/"+org.Meta.ID, `{"meta": {"name": "No"}, "spec": {"priceBook": "none", "offers": ["no"]}}`),
		"meta.name spec.priceBook spec.offers[0]"; got != want {
		t.Errorf("faults of a changed organization at %q, want %q", got, want)
	}
}
