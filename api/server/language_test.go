package server_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// TestLanguage checks that a user's language comes from the first request, that the user and
// administrators change it, and that mail which an administrator causes is in it.
func TestLanguage(t *testing.T) {
	p := newPeople(t)
	u, err := ask[api.User](p, p.Token, "POST", "/v1/users", api.User{Meta: api.Meta{Name: "ann@example.com", Organization: "acme"},
		Spec: api.UserSpec{Grants: []api.Grant{{Role: api.RoleAdmin, Organization: "acme"}}}})
	wanted(t, "create a user", err, "")
	r := httptest.NewRequest("POST", "/v1/password/link", strings.NewReader(string(api.Encode(api.PasswordToken{Token: u.Link.Token, Password: horse}))))
	r.Header.Set("Accept-Language", "de-AT,en;q=0.5")
	wanted(t, "set the password", p.from(r, "192.0.2.1"), "")
	s, err := p.login(api.Credentials{Email: "ann@example.com", Password: horse})
	wanted(t, "sign in", err, "")
	speaks := func(want api.MailLanguage) {
		t.Helper()
		me, err := ask[api.Identity](p, s.Token, "GET", "/v1/whoami", nil)
		if wanted(t, "whoami", err, ""); me.Language != want {
			t.Errorf("language = %q, want %q", me.Language, want)
		}
	}
	speaks(api.MailGerman)
	_, err = ask[api.LanguageChoice](p, s.Token, "PUT", "/v1/language", api.LanguageChoice{Language: api.MailEnglish})
	wanted(t, "choose English", err, "")
	speaks(api.MailEnglish)
	_, err = ask[api.LanguageChoice](p, s.Token, "PUT", "/v1/language", api.LanguageChoice{Language: "fr"})
	wanted(t, "choose French", err, api.CodeInvalid)
	_, err = ask[api.LanguageChoice](p, p.Token, "PUT", "/v1/language", api.LanguageChoice{Language: api.MailGerman})
	wanted(t, "choose with an API key", err, api.CodeState)
	_, err = ask[api.User](p, p.Token, "PATCH", "/v1/users/"+u.Meta.ID, map[string]any{"spec": map[string]any{"language": "xx"}})
	wanted(t, "an unknown language by an administrator", err, api.CodeInvalid)
	_, err = ask[api.User](p, p.Token, "PATCH", "/v1/users/"+u.Meta.ID, map[string]any{"spec": map[string]any{"language": "de"}})
	wanted(t, "German by an administrator", err, "")
	speaks(api.MailGerman) // the session goes on
}
