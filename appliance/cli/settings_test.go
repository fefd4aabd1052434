package cli_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server/servertest"
	"github.com/basalt-gpu/basalt/appliance/cli"
)

// TestSettingsAtOnce checks of every command that changes settings that a change of another
// field, made after the command has read the settings, is kept.
func TestSettingsAtOnce(t *testing.T) {
	e := servertest.Start(t, nil)
	other, err := client.New(client.Options{Server: e.URL, Token: e.Token})
	if err != nil {
		t.Fatal(err)
	}
	var between func() error // what another user does before the command's change
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			if err := between(); err != nil {
				t.Errorf("change of another user: %v, want none", err)
			}
		}
		e.Server.ServeHTTP(w, r)
	}))
	defer s.Close()
	ctx := t.Context()
	for _, c := range []struct {
		args    string
		between func() error
		want    []string
	}{
		{"branding set --product Cloud", func() error {
			_, err := other.PatchBranding(ctx, map[string]any{"supportEmail": "help@example.com"})
			return err
		}, []string{`"productName": "Cloud"`, `"supportEmail": "help@example.com"`}},
		{"mail set --smtp-server smtp.example.com", func() error {
			_, err := other.PatchMailSettings(ctx, map[string]any{"sender": "cloud@example.com"})
			return err
		}, []string{`"server": "smtp.example.com"`, `"sender": "cloud@example.com"`}},
		{"payment-settings set --min 7", func() error {
			_, err := other.PatchPaymentSettings(ctx, map[string]any{"secretKey": "sk_test_0123456789abcdef"})
			return err
		}, []string{`"minMicros": 7000000`, `"hasSecretKey": true`}},
		{"security-settings set --require-second-factor operator", func() error {
			_, err := other.PatchSecuritySettings(ctx, map[string]any{"requireSupportConsent": true})
			return err
		}, []string{`"operator"`, `"requireSupportConsent": true`}},
		{"sign-up-settings set --quota vcpus=8", func() error {
			_, err := other.PatchSignUpSettings(ctx, map[string]any{"quota": map[string]any{"instances": 2}})
			return err
		}, []string{`"vcpus": 8`, `"instances": 2`}},
	} {
		between = c.between
		var out, bad bytes.Buffer
		app := &cli.App{In: strings.NewReader(""), Out: &out, Err: &bad, Now: time.Now,
			Getenv: func(name string) string {
				return map[string]string{"BASALT_SERVER": s.URL, "BASALT_TOKEN": e.Token}[name]
			}}
		if code := app.Run(ctx, append(strings.Fields(c.args), "-o", "json")); code != 0 {
			t.Errorf("basalt %s: exit code %d (%s), want 0", c.args, code, bad.String())
		}
		for _, part := range c.want {
			if !strings.Contains(out.String(), part) {
				t.Errorf("basalt %s while another field changes: %s, want %s in it", c.args, out.String(), part)
			}
		}
	}
}
