package api

import (
	"encoding/json"
	"os"
	"testing"
)

// inNetwork returns an error if s is empty; otherwise it validates a network whose
// other fields are valid.
func inNetwork(s string, spec NetworkSpec) error {
	if s == "" {
		return invalid("spec", "empty")
	}
	return ValidateNetwork(spec)
}

// formatValidators are the validators of the fields with a format in the API's
// description.
var formatValidators = map[string]func(s string) error{
	"name":    ValidateName,
	"host":    ValidatePortalDomainName,
	"mailbox": func(s string) error { return ValidateLogin(Login(s)) },
	"cidr4":   func(s string) error { return inNetwork(s, NetworkSpec{Cidr4: s}) },
	"cidr6":   func(s string) error { return inNetwork(s, NetworkSpec{Cidr6: s}) },
	"address": func(s string) error {
		return ValidateNetwork(NetworkSpec{Cidr4: "10.20.0.0/24", DNSServers: []string{s}})
	},
	"cidr": func(s string) error {
		return ValidateSecurityGroup(SecurityGroupSpec{Rules: []SecurityRule{{Direction: Ingress, Protocol: ProtocolAny, Cidr: s}}})
	},
	"ports":  func(s string) error { _, _, err := ParsePorts(s); return err },
	"sha256": func(s string) error { return ValidateImage(ImageSpec{Format: FormatRaw, Sha256: s}) },
	"color": func(s string) error {
		if !colorPattern.MatchString(s) {
			return invalid("accentColor", "%q", s)
		}
		return nil
	},
}

// TestFormats runs the validators over the examples that the portal's validators are
// tested with too (ui/src/lib/problems.test.ts): the server must accept the form of
// whatever a browser sends.
func TestFormats(t *testing.T) {
	raw, err := os.ReadFile("testdata/formats.json")
	if err != nil {
		t.Fatal(err)
	}
	var examples map[string]struct{ Accepted, Refused []string }
	if err := json.Unmarshal(raw, &examples); err != nil {
		t.Fatal(err)
	}
	if got, want := len(examples), len(formatValidators); got != want {
		t.Errorf("testdata/formats.json has %d formats, want %d", got, want)
	}
	for format, e := range examples {
		valid := formatValidators[format]
		if valid == nil {
			t.Errorf("format %s has no validator", format)
			continue
		}
		for _, s := range e.Accepted {
			if err := valid(s); err != nil {
				t.Errorf("format %s: %q is refused: %v", format, s, err)
			}
		}
		for _, s := range e.Refused {
			if valid(s) == nil {
				t.Errorf("format %s: %q is accepted, want it refused", format, s)
			}
		}
	}
}
