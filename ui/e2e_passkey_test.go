package ui_test

import (
	"testing"

	"github.com/basalt-gpu/basalt/api/client"
)

// TestPasskey is e2e/passkey.mjs: a user adds a passkey, signs in with it and deletes it, with
// Chromium's virtual authenticator.
func TestPasskey(t *testing.T) {
	n := start(t)
	n.fill(t)
	op, err := client.New(client.Options{Server: n.URL, Token: n.Key})
	if err != nil {
		t.Fatal(err)
	}
	portal := "http://localhost:" + n.Port // browsers create no passkeys for an IP address
	s, err := op.MailSettings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.PortalURL = portal
	if _, err := op.UpdateMailSettings(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	n.tell(t, "passkey.mjs", "PORTAL="+portal)
}
