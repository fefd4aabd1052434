package mail

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/password"
)

// vault encodes secrets in a way that only it decodes.
type vault struct{}

func (vault) Seal(_ context.Context, s string) (string, error) {
	return base64.RawURLEncoding.EncodeToString([]byte("sealed:" + s)), nil
}

func (vault) Open(_ context.Context, s string) (string, error) {
	plain, err := base64.RawURLEncoding.DecodeString(s)
	opened, ok := strings.CutPrefix(string(plain), "sealed:")
	if err != nil || !ok {
		return "", fmt.Errorf("not sealed")
	}
	return opened, nil
}

// textOf returns the plain text of a message as it was sent.
func textOf(t *testing.T, raw string) string {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	_, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	part, err := multipart.NewReader(m.Body, params["boundary"]).NextRawPart()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(quotedprintable.NewReader(part))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A user signs up: from the request through a mail server to the link in the message,
// and with it to a session.
func TestSignUpByMail(t *testing.T) {
	h := newFixture(t)
	p := newPost(t, nil)
	h.configure(p.at, nil)
	h.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindSignUpSettings, ID: api.SignUpSettingsID, Name: "sign-up", Data: api.Encode(api.SignUpSettingsSpec{Enabled: true})})
	begun := h.clock()
	s, err := server.New(server.Options{Store: h.store, Secrets: vault{}, Now: func() time.Time { return begun }, KeyRate: 1e6,
		Passwords: password.New(password.Cost{MemoryKiB: 64, Passes: 1, Lanes: 1})})
	if err != nil {
		t.Fatal(err)
	}
	post := func(path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept-Language", "de")
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, r)
		return rec
	}
	if rec := post("/v1/sign-up", `{"email":"ann@example.com"}`); rec.Code != http.StatusAccepted {
		t.Fatalf("request a link: status %d, want 202: %s", rec.Code, rec.Body)
	}
	h.run(h.store, func(o *Options) { o.Open = vault{}.Open })
	h.until("the message is delivered", func() bool { return len(p.taken()) == 1 })
	d := p.taken()[0]
	text := textOf(t, d.raw)
	link := regexp.MustCompile(`https://cloud\.example\.com/#/sign-up\?token=(\S+)`).FindStringSubmatch(text)
	if d.to != "ann@example.com" || link == nil || !strings.Contains(text, "Konto") {
		t.Fatalf("message to %s = %s, want a German one to ann@example.com with the link", d.to, text)
	}
	token, err := url.QueryUnescape(link[1])
	if err != nil {
		t.Fatal(err)
	}
	rec := post("/v1/sign-up/finish", fmt.Sprintf(`{"token":%q,"organization":"ann-inc","password":"correct horse battery"}`, token))
	var session api.Session
	if err := json.Unmarshal(rec.Body.Bytes(), &session); err != nil || rec.Code != http.StatusCreated || session.Token == "" {
		t.Fatalf("finish the sign-up: status %d, want 201 and a session: %s", rec.Code, rec.Body)
	}
	// The owner of the address gets a message when somebody uses it again.
	if rec := post("/v1/sign-up", `{"email":"ann@example.com"}`); rec.Code != http.StatusAccepted {
		t.Fatalf("request a link again: status %d, want 202: %s", rec.Code, rec.Body)
	}
	h.until("the owner gets a message", func() bool { return len(p.taken()) == 2 })
	if text := textOf(t, p.taken()[1].raw); strings.Contains(text, "token=") || !strings.Contains(text, "https://cloud.example.com/#/") {
		t.Errorf("message to the owner of an account = %s, want a link to the portal without a token", text)
	}
}

// TestSignUpMailOfReseller checks that the message of a sign-up in a reseller's portal has the
// reseller's product name, and a link to its host name.
func TestSignUpMailOfReseller(t *testing.T) {
	h := newFixture(t)
	p := newPost(t, nil)
	h.configure(p.at, nil)
	const shop = "org-00000000005a"
	put := func(kind api.Kind, id, name, organization string, spec any, claims ...string) {
		h.apply(api.Command{Op: api.OpPutSpec, Kind: kind, ID: id, Name: name, Organization: organization, Data: api.Encode(spec), Claims: claims})
	}
	put(api.KindOrganization, shop, "shop", "", api.OrganizationSpec{})
	put(api.KindBranding, api.BrandingIDOf(shop), "branding", shop, api.BrandingSpec{ProductName: "Shop Cloud"})
	put(api.KindPortalDomain, "pdom-00000000005a", "portal.shop.example", shop, api.PortalDomainSpec{Approved: true}, "portal-domain/portal.shop.example")
	put(api.KindSignUpSettings, api.SignUpSettingsID, "sign-up", "", api.SignUpSettingsSpec{Resellers: true})
	put(api.KindSignUpSettings, api.SignUpSettingsIDOf(shop), "sign-up", shop, api.SignUpSettingsSpec{Enabled: true})
	begun := h.clock()
	s, err := server.New(server.Options{Store: h.store, Secrets: vault{}, Now: func() time.Time { return begun }, KeyRate: 1e6})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "https://portal.shop.example/v1/sign-up", strings.NewReader(`{"email":"ann@example.com"}`))
	r.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	if s.ServeHTTP(rec, r); rec.Code != http.StatusAccepted {
		t.Fatalf("request a link: status %d, want 202: %s", rec.Code, rec.Body)
	}
	h.run(h.store, func(o *Options) { o.Open = vault{}.Open })
	h.until("the message is delivered", func() bool { return len(p.taken()) == 1 })
	raw := p.taken()[0].raw
	if text := textOf(t, raw); !strings.Contains(text, "https://portal.shop.example/#/sign-up?token=") || !strings.Contains(text, "Shop Cloud") || strings.Contains(text, "cloud.example.com") {
		t.Errorf("message = %s, want Shop Cloud and a link to its portal", text)
	}
	m, err := mail.ReadMessage(strings.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if from := m.Header.Get("From"); !strings.Contains(from, "Shop Cloud") {
		t.Errorf("From = %s, want the product name of the reseller", from)
	}
}
