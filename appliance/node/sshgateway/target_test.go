package sshgateway

import (
	"strings"
	"testing"
)

func TestParseTarget(t *testing.T) {
	for name, want := range map[string]Target{
		"web/demo":               {"", "web", "demo"},
		"root%web/demo":          {"root", "web", "demo"},
		"ins-4f9c2a7be01d":       {"", "", "ins-4f9c2a7be01d"},
		"debian%prj-1/ins-2":     {"debian", "prj-1", "ins-2"},
		"www-data%web.one/de_mo": {"www-data", "web.one", "de_mo"},
	} {
		if got, err := ParseTarget(name); err != nil || got != want {
			t.Errorf("ParseTarget(%q) = %+v, %v, want %+v", name, got, err, want)
		}
	}
	for _, name := range []string{"", "/", "web/", "/demo", "a/b/c", "%web/demo", "-oProxy%web/demo", "a%b%web/demo", "we b/demo", "web/demo\x00",
		"web/dem\u00f6", strings.Repeat("x", 101), "a/" + strings.Repeat("x", 300), strings.Repeat("u", 33) + "%web/demo"} {
		if got, err := ParseTarget(name); err == nil {
			t.Errorf("ParseTarget(%q) = %+v, want an error", name, got)
		}
	}
}

// FuzzParseTarget checks that whatever is parsed from a user name is short, has no
// special characters, and is complete.
func FuzzParseTarget(f *testing.F) {
	f.Add("root%web/demo")
	f.Add("ins-4f9c2a7be01d")
	f.Add("%%//")
	f.Fuzz(func(t *testing.T, name string) {
		got, err := ParseTarget(name)
		if err != nil {
			if len(err.Error()) > 500 {
				t.Errorf("ParseTarget(%q): error has %d bytes, want at most 500", name, len(err.Error()))
			}
			return
		}
		again := got.Instance
		if got.Project != "" {
			again = got.Project + "/" + again
		}
		if got.User != "" {
			again = got.User + "%" + again
		}
		if again != name {
			t.Errorf("ParseTarget(%q) = %+v, which is formatted as %q, want the input", name, got, again)
		}
		if strings.ContainsAny(got.User+got.Project+got.Instance, "%/ \x00\n\"'\\$") {
			t.Errorf("ParseTarget(%q) = %+v want no special characters", name, got)
		}
	})
}
