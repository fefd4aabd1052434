package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// settingsCase is settings with two changes of different fields.
type settingsCase struct {
	path          string
	first, second string // merge patches
	both          []string
}

func settingsCases(w *world) []settingsCase {
	return []settingsCase{
		{"/v1/branding", `{"productName": "Example Cloud"}`, `{"supportEmail": "help@example.com"}`, []string{`"productName":"Example Cloud"`, `"supportEmail":"help@example.com"`}},
		{"/v1/organizations/" + w.acme + "/branding", `{"productName": "Shop"}`, `{"supportEmail": "help@example.com"}`, []string{`"productName":"Shop"`, `"supportEmail":"help@example.com"`}},
		{"/v1/mail", `{"server": "smtp.example.com", "user": "basalt", "password": "geheim"}`, `{"sender": "cloud@example.com"}`, []string{`"server":"smtp.example.com"`, `"hasPassword":true`, `"sender":"cloud@example.com"`}},
		{"/v1/payment-settings", `{"secretKey": "sk_test_0123456789abcdef", "webhookSecret": "whsec_0123456789abcdef"}`, `{"maxMicros": 500000000}`,
			[]string{`"hasSecretKey":true`, `"hasWebhookSecret":true`, `"maxMicros":500000000`, `"minMicros":5000000`}},
		{"/v1/security-settings", `{"requireSupportConsent": true}`, `{"requireSecondFactor": ["viewer"]}`, []string{`"requireSupportConsent":true`, `"requireSecondFactor":["viewer"]`}},
		{"/v1/sign-up-settings", `{"captcha": "hcaptcha", "siteKey": "a", "captchaSecret": "geheim"}`, `{"blockedDomains": ["example.org"]}`,
			[]string{`"siteKey":"a"`, `"hasCaptchaSecret":true`, `"blockedDomains":["example.org"]`}},
		{"/v1/top-up?organization=" + w.acme, `{"belowMicros": 10000000}`, `{"amountMicros": 50000000}`, []string{`"belowMicros":10000000`, `"amountMicros":50000000`}},
	}
}

// TestPatchSettings checks of all settings that a patch keeps the fields that it does not
// name, secrets among them, and that If-Match refuses a change of another revision, the
// first change too.
func TestPatchSettings(t *testing.T) {
	w := newWorld(t)
	for _, c := range settingsCases(w) {
		t.Run(c.path, func(t *testing.T) {
			unset, header := asked[map[string]any](t, w, 200, "GET", c.path, "")
			never := header.Get("ETag")
			if never != `"0"` {
				t.Errorf("ETag of %s before any change = %s, want that of revision 0", c.path, never)
			}
			_, header = asked[map[string]any](t, w, 200, "PATCH", c.path, c.first, "If-Match", never)
			tag := header.Get("ETag")
			if p, _ := asked[api.Problem](t, w, 412, "PATCH", c.path, c.second, "If-Match", never); p.Code != api.CodePrecondition || p.Hint == "" {
				t.Errorf("PATCH of %s with the ETag of another revision: %+v, want %s and a hint", c.path, p, api.CodePrecondition)
			}
			out, header := asked[json.RawMessage](t, w, 200, "PATCH", c.path, c.second, "Content-Type", "application/merge-patch+json")
			got, want := string(out), fmt.Sprintf("the changes of both patches in %s", unset)
			for _, part := range c.both {
				if !strings.Contains(got, part) {
					t.Errorf("%s after two patches = %s, want %s: %s", c.path, got, want, part)
				}
			}
			if strings.Contains(got, "geheim") || strings.Contains(got, "sk_test") {
				t.Errorf("%s = %s, want no secrets", c.path, got)
			}
			now, read := asked[map[string]any](t, w, 200, "GET", c.path, "")
			if want := fmt.Sprintf("%q", fmt.Sprint(int64(now["revision"].(float64)))); read.Get("ETag") != want || header.Get("ETag") != want || tag == want {
				t.Errorf("ETags of %s: %s after the first change, %s after the second, %s read; want %s twice", c.path, tag, header.Get("ETag"), read.Get("ETag"), want)
			}
			for _, bad := range []struct {
				status            int
				method, body, tag string
			}{
				{412, "PUT", `{}`, tag},
				{400, "PUT", fmt.Sprintf(`{"revision": %d}`, int64(now["revision"].(float64))+1), read.Get("ETag")},
				{409, "PUT", `{}`, ""},
				{409, "PATCH", `{"revision": 1}`, ""},
				{400, "PATCH", `{"nothing": 1}`, ""},
				{400, "PATCH", `[]`, ""},
				{400, "PATCH", `{}`, `"-1"`},
			} {
				asked[api.Problem](t, w, bad.status, bad.method, c.path, bad.body, "If-Match", bad.tag)
			}
			asked[map[string]any](t, w, 200, "PATCH", c.path, `{}`, "If-Match", "*")
		})
	}
}

// TestPatchSettingsAtOnce checks that concurrent changes of different fields are both made.
func TestPatchSettingsAtOnce(t *testing.T) {
	w := newWorld(t)
	for _, c := range settingsCases(w) {
		if strings.Contains(c.path, "/organizations/") {
			continue // its second change needs the product name of the first
		}
		var all sync.WaitGroup
		for _, body := range []string{c.first, c.second} {
			all.Go(func() { asked[map[string]any](t, w, 200, "PATCH", c.path, body) })
		}
		all.Wait()
		out, _ := asked[json.RawMessage](t, w, 200, "GET", c.path, "")
		for _, part := range c.both {
			if !strings.Contains(string(out), part) {
				t.Errorf("%s after two patches at once = %s, want %s in it", c.path, out, part)
			}
		}
	}
}
