package saml_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api/server/saml"
	"github.com/basalt-gpu/basalt/api/server/saml/samltest"
)

const python = "/usr/bin/python3" // Debian's, for its packages

// TestPysaml2 signs in with an independent identity provider, Debian's pysaml2
// (installer/dev/setup.sh): it reads this service's metadata and request, and this service
// reads its metadata and its responses, which xmlsec1 has signed.
func TestPysaml2(t *testing.T) {
	if out, err := exec.Command(python, "-c", "import saml2").CombinedOutput(); err != nil {
		t.Skipf("host: pysaml2 is not installed (installer/dev/setup.sh): %v %s", err, out)
	}
	i, folder := samltest.New(t), t.TempDir()
	write := func(name string, content []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("key.pem", pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(i.Key)}))
	write("cert.pem", []byte(i.PEM()))
	run := func(what, input string) string {
		t.Helper()
		var out, errs bytes.Buffer
		cmd := exec.Command(python, "testdata/idp.py", folder, what)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errs
		if err := cmd.Run(); err != nil {
			t.Fatalf("idp.py %s: %v\n%s", what, err, errs.String())
		}
		return out.String()
	}
	m, err := saml.ParseMetadata(run("metadata", ""), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	p := providerOf(i)
	p.Issuer, p.SAML.SignOnURL, p.SAML.Certificates = m.EntityID, m.SignOnURL, m.Certificates
	service, err := p.ServiceMetadata(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	write("sp.xml", service)
	address, err := p.URL(time.Now(), "id-1", "state.0")
	if err != nil {
		t.Fatal(err)
	}
	u := must(t, url.Parse, address)
	answers := strings.Fields(run("answers", u.Query().Get("SAMLRequest")))
	if len(answers) != 3 {
		t.Fatalf("pysaml2 made %d responses, want 3", len(answers))
	}
	for n, signed := range []string{"assertion", "response", "both"} {
		response := decoded(t, answers[n])
		c, err := p.Verify(time.Now(), response, "id-1")
		if err != nil {
			t.Errorf("%s signed: %v\n%s", signed, err, response)
			continue
		}
		groups, _ := c.All["groups"].([]any)
		if c.Subject != "u-1" || c.Email != "ann@example.com" || c.Name != "Ann" || len(groups) != 2 {
			t.Errorf("%s signed: claims = %+v, want those of Ann", signed, c)
		}
		refused(t, p, bytes.Replace(response, []byte("u-1"), []byte("u-2"), 1), "id-1", "")
	}
}
