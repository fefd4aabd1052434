package server

import (
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

func contractOf(t *testing.T) map[string]bool {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	ops := map[string]bool{}
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			ops[op.OperationID] = true
			if op.Summary == "" || len(op.Tags) != 1 {
				t.Errorf("%s has no summary, or not exactly one tag", op.OperationID)
			}
		}
	}
	return ops
}

func TestEveryOperationHasARight(t *testing.T) {
	ops := contractOf(t)
	for op := range ops {
		if _, ok := auth.Rights[op]; !ok {
			t.Errorf("%s is in openapi.yaml but not in auth.Rights", op)
		}
	}
	for op, allowed := range auth.Rights {
		if allowed != auth.Everybody && !allowed.Has(api.RoleOperator) {
			t.Errorf("%s is not allowed for operators", op)
		}
		if !ops[op] {
			t.Errorf("%s is in auth.Rights but not in openapi.yaml", op)
		}
	}
}

func TestStrictJSON(t *testing.T) {
	for body, field := range map[string]string{
		`{"spec":{"flavr":"x"}}`:                  "spec.flavr",
		`{"Spec":{}}`:                             "Spec",
		`{"spec":{"vgpu":{"vram":1}}}`:            "spec.vgpu.vram",
		`{"spec":{"vgpu":{"vramBytes":"1"}}}`:     "spec.vgpu.vramBytes",
		`{"meta":{"labels":{"a":1}}}`:             "meta.labels.a",
		`{"status":{"conditions":[{"typ":"x"}]}}`: "status.conditions[0].typ",
		`{"spec":{"sshKeys":"x"}}`:                "spec.sshKeys",
		`{"spec":{"flavor":"x"}`:                  "",
		`{} {}`:                                   "",
		``:                                        "",
		`{"spec":{"userData":` + nested(40, "[") + `}}`: "",
	} {
		var in api.Instance
		err := decodeStrict([]byte(body), &in)
		e := domainError(err)
		if e == nil || e.Code != api.CodeInvalid {
			t.Errorf("body %.60s: error %v, want %s", body, err, api.CodeInvalid)
		} else if e.Field != field {
			t.Errorf("body %.60s: error at %q (%v), want %q", body, e.Field, e, field)
		}
	}
	var in api.Instance
	if err := decodeStrict([]byte(`{"kind":"Instance","meta":{"name":"a","labels":{"x":"y"}},"spec":{"flavor":"f","sshKeys":["k"]}}`), &in); err != nil || in.Spec.SSHKeys[0] != "k" {
		t.Errorf("decode a valid body: %+v, %v; want the SSH key", in, err)
	}
}

func nested(n int, s string) string {
	out := ""
	for range n {
		out += s
	}
	return out
}

func FuzzStrictJSON(f *testing.F) {
	f.Add([]byte(`{"spec":{"flavor":"x","vgpu":{"vramBytes":1}}}`))
	f.Add([]byte(`[[[[`))
	f.Add([]byte(`{"meta":{"createdAt":"2026-01-01T00:00:00Z"}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var in api.Instance
		if err := decodeStrict(raw, &in); err != nil && domainError(err) == nil {
			t.Errorf("body %q: error %v is not a domain error", raw, err)
		}
	})
}
