package passkey

import (
	"encoding/json"
	"testing"
)

func TestSiteOf(t *testing.T) {
	for portal, want := range map[string]Site{
		"https://cloud.example.com":        {"cloud.example.com", "https://cloud.example.com"},
		"https://Cloud.Example.com:443/":   {"cloud.example.com", "https://cloud.example.com"},
		"https://cloud.example.com:8443/x": {"cloud.example.com", "https://cloud.example.com:8443"},
		"http://localhost:8080":            {"localhost", "http://localhost:8080"},
		"http://a.localhost:80":            {"a.localhost", "http://a.localhost"},
	} {
		if got, err := SiteOf(portal); err != nil || got != want {
			t.Errorf("SiteOf(%q) = %v, %v; want %v", portal, got, err, want)
		}
	}
	for _, portal := range []string{"", "https://192.0.2.1", "https://[2001:db8::1]:8443", "https://[::1%25lo]", "http://cloud.example.com", "https://", "ftp://localhost", "https://a b", "://"} {
		if got, err := SiteOf(portal); err == nil {
			t.Errorf("SiteOf(%q) = %v, want an error", portal, got)
		}
	}
}

// FuzzAnswers checks that arbitrary responses are refused without a panic.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"id":"AA","rawId":"AA","type":"public-key","response":{"clientDataJSON":"e30","attestationObject":"oA"}}`))
	f.Add([]byte(`{"id":"AA","rawId":"AA","type":"public-key","response":{"clientDataJSON":"e30","authenticatorData":"AA","signature":"AA","userHandle":"AA"}}`))
	site := Site{Name: "localhost", Origin: "http://localhost"}
	o := Owner{ID: "usr-000000000000", Name: "ann@example.com"}
	add, err := site.BeginRegistration("Basalt", o)
	if err != nil {
		f.Fatal(err)
	}
	login, err := site.BeginLogin()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var answer map[string]any
		if json.Unmarshal(text, &answer) != nil {
			return
		}
		if k, err := site.FinishRegistration(o, add.Session, answer); err == nil {
			t.Errorf("passkey %v was registered from response %s, want an error", k, text)
		}
		a, err := ParseAssertion(answer)
		if err != nil {
			return
		}
		if _, err := site.FinishLogin(o, login.Session, a); err == nil {
			t.Errorf("response %s signed in, want an error", text)
		}
	})
}
