package client

import (
	"reflect"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// TestMergePatch checks that a patch contains only the changes: no secrets and no fields of
// the server, null for what is gone, and lists as a whole.
func TestMergePatch(t *testing.T) {
	was := api.SignUpSettings{Revision: 7, Enabled: true, TermsURL: "https://example.com", AllowedDomains: []string{"a", "b"}, Quota: api.Amounts{"vcpus": 4, "instances": 2}, HasCaptchaSecret: true}
	now := was
	now.TermsURL, now.TermsVersion, now.AllowedDomains, now.Quota = "", "2", []string{"b"}, api.Amounts{"vcpus": 8}
	got := MergePatch(was, now)
	want := map[string]any{"termsURL": nil, "termsVersion": "2", "allowedDomains": []any{"b"}, "quota": map[string]any{"vcpus": got["quota"].(map[string]any)["vcpus"], "instances": nil}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("patch = %v, want %v", got, want)
	}
	if n := got["quota"].(map[string]any)["vcpus"]; n == nil || n.(interface{ String() string }).String() != "8" {
		t.Errorf("vcpus of the patch = %v, want 8", n)
	}
	if got := MergePatch(was, was); len(got) != 0 {
		t.Errorf("patch without a change = %v, want none", got)
	}
}
