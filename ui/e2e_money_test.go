package ui_test

import (
	"encoding/base64"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server/saml/samltest"
)

// TestMoney tests the operator's business pages: the whole wizard on an empty cluster, then a
// customer that is created, priced, pays and is suspended, and its identity provider. The
// cluster has only its initial objects and an operator.
func TestMoney(t *testing.T) {
	n := start(t)
	op, err := client.New(client.Options{Server: n.URL, Token: n.Key})
	if err != nil {
		t.Fatal(err)
	}
	n.user(t.Context(), t, op, "op@example.com", "", api.Grant{Role: api.RoleOperator})
	n.tell(t, "operator-money.mjs", append(provider(t), "EMAIL=op@example.com")...)
}

// provider starts a SAML identity provider, at which everybody is Ann at once, and returns the
// variables by which a story knows it: its address, the files with its metadata and its
// certificate, and another certificate.
func provider(t *testing.T) []string {
	t.Helper()
	idp, next, dir := samltest.New(t), samltest.New(t), t.TempDir()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := samltest.Read(t, r.URL.String())
		response := base64.StdEncoding.EncodeToString(idp.Response(t, samltest.To(asked)))
		fmt.Fprintf(w, `<!doctype html><html lang="en"><title>Provider</title><link rel="icon" href="data:,"><form method="post" action="%s">`+
			`<input type="hidden" name="SAMLResponse" value="%s"><input type="hidden" name="RelayState" value="%s"></form><script>document.forms[0].submit()</script>`,
			html.EscapeString(asked.AssertionConsumerServiceURL), response, html.EscapeString(asked.RelayState))
	}))
	t.Cleanup(s.Close)
	idp.SignOnURL = s.URL + "/sso"
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return []string{"IDP=" + s.URL, "IDP_METADATA=" + file("idp.xml", idp.Metadata()), "IDP_NEXT=" + file("next.pem", next.PEM())}
}
