package api

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
)

// What is sent of an error says the same where it arrives.
func TestProblem(t *testing.T) {
	for _, e := range []*Error{
		Errorf(CodeUnavailable, "no leader").WithHint("try again"),
		invalid("spec.vcpus", "0 is not possible").WithHint("1 to 64"),
		{Code: CodeInvalid, Field: "a", Message: "x", Others: []*Error{{Code: CodeInvalid, Field: "b", Message: "y", Hint: "z"}}},
	} {
		w := httptest.NewRecorder()
		if err := WriteProblem(w, e); err != nil {
			t.Fatal(err)
		}
		var p Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		if got := p.AsError(); !reflect.DeepEqual(got, e) {
			t.Errorf("got %+v of %s, want %+v", got, w.Body, e)
		}
		if p.Title == "" || p.Type != "/docs#error-"+string(e.Code) || int(p.Status) != w.Code || w.Code != e.Code.HTTPStatus() || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%v is sent as %d %s %s", e, w.Code, w.Header().Get("Content-Type"), w.Body)
		}
	}
	for code := range statuses {
		if titles[code] == "" {
			t.Errorf("%s has no title", code)
		}
	}
}

// All that is wrong with an object is said at once.
func TestAllFaults(t *testing.T) {
	err := ValidateInstance(InstanceSpec{Image: "debian", Power: "Maybe", Restarts: -1, Vgpu: &VGPUSpec{Pool: "default", VramBytes: 1}})
	var e *Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	var got []string
	for _, f := range append([]*Error{e}, e.Others...) {
		got = append(got, f.Field)
	}
	want := "spec.flavor spec.power spec.restarts spec.vgpu.vramBytes"
	if strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	rules := make([]SecurityRule, MaxRules)
	if errors.As(ValidateSecurityGroup(SecurityGroupSpec{Rules: rules}), &e); len(e.Others) != maxFaults-1 {
		t.Errorf("%d faults of %d rules are named, want %d", len(e.Others)+1, len(rules), maxFaults)
	}
}

// What was joined can be joined again: each fault is named once.
func TestJoinedAgain(t *testing.T) {
	at := func(field string) error { return Errorf(CodeInvalid, "bad").At(field) }
	err := Join(at("a"), Join(at("b"), at("c")), Join(Join(at("d"), at("e")), at("f")))
	err = Join(err, at("g"))
	if got, want := err.Error(), "a: bad; b: bad; c: bad; d: bad; e: bad; f: bad; g: bad"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
