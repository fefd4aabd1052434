package state

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// checkDecoded checks that decodeObject returns what encoding/json does, and nothing that
// belongs to raw.
func checkDecoded(t *testing.T, raw []byte) {
	t.Helper()
	var want api.Object
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	input := append([]byte(nil), raw...)
	got, err := decodeObject(input)
	for i := range input {
		input[i] = 'x'
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("decodeObject(%s) = %+v, %v; want %+v", raw, got, err, want)
	}
}

func TestDecodeObject(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 123, time.UTC)
	full := api.Object{Kind: api.KindInstance,
		Meta: api.Meta{ID: "ins-1", Name: "train", Organization: "org-1", Project: "prj-1", Generation: 3, Revision: 1 << 60, CreatedAt: at, UpdatedAt: at, DeletedAt: &at,
			Labels: map[string]string{"a": "b", "c\"": "d\n"}, Finalizers: []string{"net", "disk"}},
		Spec: json.RawMessage(`{"a":"}\""}`), Assignment: json.RawMessage(`{}`), Status: json.RawMessage(`null`),
		Claims: []string{"address/10.0.0.1", "é\u2028"}, Uses: api.Amounts{"gpus": 2, "a\\b": -1}, Limits: api.Amounts{}}
	for _, o := range []api.Object{{}, full, {Meta: api.Meta{Name: "a\tb"}}, {Uses: api.Amounts{"x": 1}}} {
		raw, err := EncodeJSON(o)
		if err != nil {
			t.Fatal(err)
		}
		checkDecoded(t, raw)
	}
	for _, raw := range []string{`{"Kind":"Node","meta":{"ID":"a"}}`, `{"kind":null,"meta":null,"spec":null,"claims":null,"uses":null}`, ` { "kind" : "Node" , "more" : [1] } `,
		`{"meta":{"revision":1,"labels":null,"deletedAt":null,"more":1}}`} {
		checkDecoded(t, []byte(raw))
	}
}

func TestDamagedObjects(t *testing.T) {
	for _, raw := range []string{``, `{`, `{"kind":`, `{"kind":"a"`, `[]`, `{"meta":{"revision":"1"}}`, `{"kind":1}`, `{"claims":{}}`} {
		if o, err := decodeObject([]byte(raw)); err == nil {
			t.Errorf("decodeObject(%s) = %+v, want an error", raw, o)
		}
	}
}

// What EncodeJSON writes is decoded as encoding/json does.
func FuzzDecodeObject(f *testing.F) {
	f.Add("Instance", "train", "org-1", "a", "1.5", int64(7), true)
	f.Add("Node\\", "\"\n", "é\u2028", "\xff", `{"a":"}"}`, int64(-1), false)
	f.Fuzz(func(t *testing.T, kind, name, organization, text, spec string, n int64, deleted bool) {
		at := time.Unix(n%1e10, n%1e9).UTC()
		o := api.Object{Kind: api.Kind(kind), Meta: api.Meta{ID: text, Name: name, Organization: organization, Revision: n, CreatedAt: at, Labels: map[string]string{text: name}, Finalizers: []string{text}},
			Claims: []string{text, name}, Uses: api.Amounts{text: n}, Limits: api.Amounts{name: n, text: 0}}
		if deleted {
			o.Meta.DeletedAt = &at
		}
		if json.Valid([]byte(spec)) {
			o.Spec, o.Status = json.RawMessage(spec), json.RawMessage(spec)
		}
		raw, err := EncodeJSON(o)
		if err != nil {
			t.Skip() // a time that has no encoding
		}
		checkDecoded(t, raw)
	})
}
