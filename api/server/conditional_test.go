package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// asked sends a request with headers, given as alternating names and values, and
// decodes the response into T.
func asked[T any](t *testing.T, w *world, want int, method, target, body string, headers ...string) (out T, got http.Header) {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+w.Token)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	w.Server.ServeHTTP(rec, r)
	if rec.Code != want {
		t.Fatalf("%s %s with headers %q: %d %s, want %d", method, target, headers, rec.Code, rec.Body, want)
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	return out, rec.Header()
}

const smallFlavor = `{"meta": {"name": "tiny", "labels": {"a": "1", "b": "2"}}, "spec": {"vcpus": 1, "memoryBytes": 1073741824}}`

func TestIfMatch(t *testing.T) {
	w := newWorld(t)
	f, header := asked[api.Flavor](t, w, 201, "POST", "/v1/flavors", smallFlavor)
	tag := header.Get("ETag")
	if want := fmt.Sprintf("%q", fmt.Sprint(f.Meta.Revision)); tag != want {
		t.Fatalf("ETag of the flavor = %s, want %s", tag, want)
	}
	path, wider := "/v1/flavors/"+f.Meta.ID, `{"spec": {"vcpus": 2, "memoryBytes": 1073741824}}`
	now, header := asked[api.Flavor](t, w, 200, "PUT", path, wider, "If-Match", tag)
	if now.Spec.Vcpus != 2 || header.Get("ETag") == tag {
		t.Errorf("flavor after a conditional change = %+v with ETag %s, want 2 vCPUs and a new ETag", now, header.Get("ETag"))
	}
	for _, c := range []struct {
		method, body, tag string
		want              int
		code              api.Code
	}{
		{"PUT", wider, tag, 412, api.CodePrecondition},
		{"PATCH", `{"spec": {"vcpus": 3}}`, tag, 412, api.CodePrecondition},
		{"DELETE", "", tag, 412, api.CodePrecondition},
		{"PUT", wider, "7", 400, api.CodeInvalid},
		{"DELETE", "", `"abc"`, 400, api.CodeInvalid},
		{"DELETE", "", `W/"1"`, 400, api.CodeInvalid},
		{"PUT", wider, "", 400, api.CodeInvalid},
		{"PUT", fmt.Sprintf(`{"meta": {"revision": %d}, "spec": {"vcpus": 2, "memoryBytes": 1073741824}}`, f.Meta.Revision), header.Get("ETag"), 400, api.CodeInvalid},
	} {
		p, _ := asked[api.Problem](t, w, c.want, c.method, path, c.body, "If-Match", c.tag)
		if p.Code != c.code || p.Hint == "" {
			t.Errorf("%s with If-Match %s: %+v, want code %s and a hint", c.method, c.tag, p, c.code)
		}
	}
	now, _ = asked[api.Flavor](t, w, 200, "PUT", path, strings.Replace(wider, "2", "4", 1), "If-Match", "*")
	if now.Spec.Vcpus != 4 {
		t.Errorf("flavor after a change with If-Match * = %+v, want 4 vCPUs", now)
	}
	asked[api.Flavor](t, w, 200, "DELETE", path, "", "If-Match", fmt.Sprintf("%q", fmt.Sprint(now.Meta.Revision)))
	// Kinds with handlers of their own support it too.
	org, _ := asked[api.Organization](t, w, 201, "POST", "/v1/organizations", `{"meta": {"name": "short"}}`)
	for _, method := range []string{"DELETE", "PATCH"} {
		asked[api.Problem](t, w, 412, method, "/v1/organizations/"+org.Meta.ID, `{}`, "If-Match", `"1"`)
	}
}

func TestPatch(t *testing.T) {
	w := newWorld(t)
	f, _ := asked[api.Flavor](t, w, 201, "POST", "/v1/flavors", smallFlavor)
	path := "/v1/flavors/" + f.Meta.ID
	now, _ := asked[api.Flavor](t, w, 200, "PATCH", path, `{"meta": {"labels": {"a": null, "c": "3"}}, "spec": {"memoryBytes": 2147483648}}`, "Content-Type", "application/merge-patch+json")
	if now.Spec.Vcpus != 1 || now.Spec.MemoryBytes != 2<<30 || fmt.Sprint(now.Meta.Labels) != "map[b:2 c:3]" || now.Meta.Name != "tiny" {
		t.Errorf("flavor after the patch = %+v, want only the patched fields changed", now)
	}
	for body, field := range map[string]string{
		`{"spec": {"vcpus": 0}}`:             "spec.vcpus",
		`{"spec": {"wheels": 4}}`:            "spec.wheels",
		`{"spec": {"vcpus": "four"}}`:        "spec.vcpus",
		`{"meta": {"name": "No"}}`:           "meta.name",
		`{"spec": null}`:                     "spec.vcpus",
		`[]`:                                 "",
		`{`:                                  "",
		strings.Repeat(`{"spec":`, 40) + "1": "",
	} {
		p, _ := asked[api.Problem](t, w, 400, "PATCH", path, body)
		if field != "" && (len(p.Errors) == 0 || p.Errors[0].Field != field) {
			t.Errorf("patch %s: error %+v, want one at %s", body, p, field)
		}
	}
	if after, _ := asked[api.Flavor](t, w, 200, "GET", path, ""); after.Meta.Revision != now.Meta.Revision {
		t.Errorf("flavor after refused patches = %+v, want %+v", after, now)
	}
	// Concurrent patches of the same revision all take effect.
	var wait sync.WaitGroup
	for i := range 4 {
		wait.Go(func() {
			if rec := w.call("PATCH", path, w.Token, fmt.Sprintf(`{"meta": {"labels": {"n%d": "x"}}}`, i)); rec.Code != 200 {
				t.Errorf("patch %d: %d %s, want 200", i, rec.Code, rec.Body)
			}
		})
	}
	wait.Wait()
	if after, _ := asked[api.Flavor](t, w, 200, "GET", path, ""); len(after.Meta.Labels) != 6 {
		t.Errorf("labels after concurrent patches = %v, want 6", after.Meta.Labels)
	}
}

// TestPatchKeepsSecrets checks that a patch keeps the fields that are never shown.
func TestPatchKeepsSecrets(t *testing.T) {
	w := newWorld(t)
	b, _ := asked[api.BackupTarget](t, w, 201, "POST", "/v1/backup-targets", `{"meta": {"name": "vault"}, "spec": {"directory": "/srv/a", "password": "correct horse battery"}}`)
	before, err := w.Store.Get(t.Context(), api.KindBackupTarget, b.Meta.ID)
	if err != nil {
		t.Fatal(err)
	}
	asked[api.BackupTarget](t, w, 200, "PATCH", "/v1/backup-targets/"+b.Meta.ID, `{"meta": {"labels": {"a": "b"}}}`)
	after, err := w.Store.Get(t.Context(), api.KindBackupTarget, b.Meta.ID)
	if err != nil || string(after.Spec) != string(before.Spec) {
		t.Errorf("spec after a patch = %s, %v; want %s", after.Spec, err, before.Spec)
	}
}

// TestEmptyPatch checks, for several kinds, that an empty patch changes nothing.
func TestEmptyPatch(t *testing.T) {
	w := newWorld(t)
	in := `"organization": "acme", "project": "web"`
	for _, c := range []struct{ path, body string }{
		{"organizations", `{"meta": {"name": "o"}, "spec": {"displayName": "O", "quota": {"instances": 3}}}`},
		{"projects", `{"meta": {"name": "p", "organization": "acme"}, "spec": {"displayName": "P"}}`},
		{"flavors", `{"meta": {"name": "f"}, "spec": {"vcpus": 1, "memoryBytes": 1073741824}}`},
		{"gpu-pools", `{"meta": {"name": "g"}, "spec": {"vramOvercommitPercent": 150}}`},
		{"apps", `{"meta": {"name": "a"}, "spec": {"displayName": "A", "version": "1", "image": "debian", "userData": "#cloud-config"}}`},
		{"images", `{"meta": {"name": "i", ` + in + `}, "spec": {"format": "raw"}}`},
		{"volumes", `{"meta": {"name": "v", ` + in + `}, "spec": {"sizeBytes": 1073741824}}`},
		{"networks", `{"meta": {"name": "n", ` + in + `}, "spec": {"cidr4": "10.9.0.0/24"}}`},
		{"security-groups", `{"meta": {"name": "s", ` + in + `}, "spec": {"rules": [{"direction": "ingress", "protocol": "tcp", "ports": "22", "group": "self"}]}}`},
		{"instances", `{"meta": {"name": "m", ` + in + `}, "spec": {"flavor": "small", "image": "debian", "userData": "#cloud-config\n", "networks": [{"network": "n", "securityGroups": ["s"]}]}}`},
		{"external-networks", `{"meta": {"name": "e"}, "spec": {"physicalNetwork": "ext", "cidr4": "203.0.113.0/24", "gateway4": "203.0.113.1", "ranges4": ["203.0.113.10-203.0.113.20"], "default": true}}`},
		{"floating-ips", `{"meta": {"name": "f", ` + in + `}, "spec": {}}`},
		{"load-balancers", `{"meta": {"name": "l", ` + in + `}, "spec": {"network": "n", "protocol": "tcp", "port": 80, "backends": [{"instance": "m", "port": 80}]}}`},
		{"backup-targets", `{"meta": {"name": "b"}, "spec": {"s3": {"endpoint": "https://s3.example", "bucket": "vault", "accessKey": "k", "secretKey": "secret"}}}`},
		{"price-books", `{"meta": {"name": "pb"}, "spec": {"currency": "EUR", "prices": [{"meter": "vcpu-seconds", "priceMicros": 999999999999999, "per": 3600}]}}`},
		{"budgets", `{"meta": {"name": "b", "organization": "acme"}, "spec": {"amountMicros": 5000000}}`},
		{"api-keys", `{"meta": {"name": "k", ` + in + `}, "spec": {"role": "member", "scopes": ["instances:read"]}}`},
		{"users", `{"meta": {"name": "ann@example.com", "organization": "acme"}, "spec": {"grants": [{"role": "admin", "organization": "acme"}]}}`},
		{"webhooks", `{"meta": {"name": "w", "organization": "acme"}, "spec": {"url": "https://billing.example/basalt", "events": ["instance.*"]}}`},
		{"identity-providers", `{"meta": {"name": "idp"}, "spec": {"issuer": "https://id.example", "clientId": "basalt", "clientSecret": "hush"}}`},
	} {
		o, _ := asked[api.Object](t, w, 201, "POST", "/v1/"+c.path, c.body)
		stored := func() string {
			all, err := w.Store.Get(t.Context(), o.Kind, o.Meta.ID)
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%s of generation %d: %s", all.Meta.Name, all.Meta.Generation, all.Spec)
		}
		before := stored()
		asked[api.Object](t, w, 200, "PATCH", "/v1/"+c.path+"/"+o.Meta.ID, `{}`)
		if after := stored(); after != before {
			t.Errorf("object in %s after an empty patch = %s, want %s", c.path, after, before)
		}
	}
}

// TestAllFaultsOfAnObject checks that an invalid name does not hide errors in the spec.
func TestAllFaultsOfAnObject(t *testing.T) {
	w := newWorld(t)
	p, _ := asked[api.Problem](t, w, 400, "POST", "/v1/flavors", `{"meta": {"name": "No", "labels": {"": "x"}}, "spec": {"vcpus": 0, "memoryBytes": 1073741824}}`)
	var fields []string
	for _, e := range p.Errors {
		fields = append(fields, e.Field)
	}
	if want := "meta.name meta.labels spec.vcpus"; strings.Join(fields, " ") != want {
		t.Errorf("fields at fault = %q, want %q", fields, want)
	}
}

func TestListByLabels(t *testing.T) {
	w := newWorld(t)
	for i := range 5 {
		asked[api.Flavor](t, w, 201, "POST", "/v1/flavors", fmt.Sprintf(`{"meta": {"name": "f%d", "labels": {"parity": "%d"}}, "spec": {"vcpus": 1, "memoryBytes": 1073741824}}`, i, i%2))
	}
	const even = "/v1/flavors?labelSelector=parity%3D0&limit=2&sort=name"
	first, _ := asked[api.FlavorList](t, w, 200, "GET", even+"&count=true", "")
	if len(first.Items) != 2 || first.Items[1].Meta.Name != "f2" || first.Total != 3 || first.Continue == "" {
		t.Errorf("first page = %+v, want f0 and f2 of 3 in total, and a continue token", first)
	}
	rest, _ := asked[api.FlavorList](t, w, 200, "GET", even+"&count=true&continue="+first.Continue, "")
	if len(rest.Items) != 1 || rest.Items[0].Meta.Name != "f4" || rest.Total != 3 || rest.Continue != "" {
		t.Errorf("second page = %+v, want f4 of 3 in total, and no continue token", rest)
	}
	if plain, _ := asked[map[string]any](t, w, 200, "GET", even, ""); plain["total"] != nil {
		t.Errorf("list without count has total %v, want none", plain["total"])
	}
	asked[api.Problem](t, w, 400, "GET", "/v1/flavors?labelSelector=%3D", "")
}
