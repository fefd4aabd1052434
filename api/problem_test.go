package api

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
)

// TestProblem checks that an error survives being sent and received.
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
			t.Errorf("error decoded from %s = %+v, want %+v", w.Body, got, e)
		}
		if p.Title == "" || p.Type != "/docs#error-"+string(e.Code) || int(p.Status) != w.Code || w.Code != e.Code.HTTPStatus() || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("response for error %v: status %d, content type %s, body %s; want its status, a title and its type", e, w.Code, w.Header().Get("Content-Type"), w.Body)
		}
	}
	for code := range statuses {
		if titles[code] == "" {
			t.Errorf("code %s has no title", code)
		}
	}
}

// TestAllFaults checks that one error reports all faults of an object.
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
		t.Errorf("fields at fault = %q, want %q", got, want)
	}
	rules := make([]SecurityRule, MaxRules)
	if errors.As(ValidateSecurityGroup(SecurityGroupSpec{Rules: rules}), &e); len(e.Others) != maxFaults-1 {
		t.Errorf("error about %d invalid rules names %d faults, want %d", len(rules), len(e.Others)+1, maxFaults)
	}
}

// TestJoinedAgain checks that joined errors can be joined again and that each fault is
// named once.
func TestJoinedAgain(t *testing.T) {
	at := func(field string) error { return Errorf(CodeInvalid, "bad").At(field) }
	err := Join(at("a"), Join(at("b"), at("c")), Join(Join(at("d"), at("e")), at("f")))
	err = Join(err, at("g"))
	if got, want := err.Error(), "a: bad; b: bad; c: bad; d: bad; e: bad; f: bad; g: bad"; got != want {
		t.Errorf("Join of joined errors = %s, want %s", got, want)
	}
}
