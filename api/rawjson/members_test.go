package rawjson_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"testing"

	"github.com/basalt-gpu/basalt/api/rawjson"
)

// collected returns the members of an object, the last of each name.
func collected(raw []byte) (map[string]string, bool) {
	out := map[string]string{}
	whole := rawjson.Members(raw, func(name, value []byte) bool {
		out[string(name)] = string(value)
		return true
	})
	return out, whole
}

func TestMembers(t *testing.T) {
	for raw, want := range map[string]map[string]string{
		`{}`:                            {},
		" {\n} ":                        {},
		`{"a":1,"b":"x,}","c":{"a":2}}`: {"a": "1", "b": `"x,}"`, "c": `{"a":2}`},
		`{"a":"\"","b":"\\","c":[1,"]",{"d":"}"}],"e":null}`: {"a": `"\""`, "b": `"\\"`, "c": `[1,"]",{"d":"}"}]`, "e": "null"},
		` { "a" : -1.5e3 , "b" : true }`:                     {"a": "-1.5e3", "b": "true"},
	} {
		if got, whole := collected([]byte(raw)); !whole || !maps.Equal(got, want) {
			t.Errorf("Members(%s) = %v, %v; want %v, true", raw, got, whole, want)
		}
	}
}

func TestNotObjects(t *testing.T) {
	for _, raw := range []string{``, ` `, `null`, `1`, `"a"`, `[]`, `{`, `{"a`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":"b`, `{"a":"\"`, `{"a":{"b":1}`, `{"a":[`, `{a:1}`, `{"a" 1}`, `{"a":}`} {
		if got, whole := collected([]byte(raw)); whole {
			t.Errorf("Members(%s) = %v, true; want false", raw, got)
		}
	}
}

func TestMember(t *testing.T) {
	raw := []byte(`{"a":{"b":1},"b":"x","a":2}`)
	for name, want := range map[string]string{"a": `{"b":1}`, "b": `"x"`, "c": ""} {
		if got := rawjson.Member(raw, name); string(got) != want {
			t.Errorf("Member(%s, %q) = %s, want %s", raw, name, got, want)
		}
	}
}

func TestText(t *testing.T) {
	for value, want := range map[string]string{`""`: "", `"a b"`: "a b", `"é"`: "é"} {
		if got, ok := rawjson.Text([]byte(value)); !ok || got != want {
			t.Errorf("Text(%s) = %q, %v; want %q, true", value, got, ok, want)
		}
	}
	for _, value := range []string{``, `"`, `1`, `null`, `{}`, `"\n"`, `"\u0041"`} {
		if got, ok := rawjson.Text([]byte(value)); ok {
			t.Errorf("Text(%s) = %q, true; want false", value, got)
		}
	}
}

// What encoding/json accepts as an object has the members that it finds; other input does
// not panic.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{`{"a":1,"b":"x"}`, `{"a":{"b":["\\\"",{}]},"c":null}`, ` { "a" : [ ] } `, `{"a":"\\"}`, `{"a":`, `[1]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, whole := collected(raw)
		var want map[string]json.RawMessage
		if json.Unmarshal(raw, &want) != nil {
			return
		}
		if whole != (want != nil) {
			t.Fatalf("Members(%q) = %v, want %v", raw, whole, want != nil)
		}
		decoded := map[string]string{}
		for name, value := range got {
			var plain string
			if json.Unmarshal([]byte(`"`+name+`"`), &plain) != nil {
				t.Fatalf("Members(%q) has the name %q", raw, name)
			}
			decoded[plain] = value
		}
		if len(got) != len(decoded) { // one name, encoded in two ways: which is the last is not in got
			return
		}
		for name, value := range want {
			if !bytes.Equal([]byte(decoded[name]), value) {
				t.Fatalf("Members(%q) has %q = %s, want %s", raw, name, decoded[name], value)
			}
		}
	})
}
