package mail

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"math/big"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/template"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// testCertificate returns a certificate for 127.0.0.1, and the CA that certifies it.
func testCertificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	c, err := certificate()
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(c.Leaf)
	return c, pool
}

var certificate = sync.OnceValues(func() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf, err := x509.ParseCertificate(der)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, err
})

func parse(t testing.TB, raw string) parsed {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(raw))
	if err != nil {
		t.Fatalf("read message: %v\n%s", err, raw)
	}
	out := parsed{Message: m, files: map[string]string{}}
	out.read(t, m.Header.Get("Content-Type"), m.Body)
	if len(out.parts) != 2 {
		t.Fatalf("parts = %d, want text and HTML", len(out.parts))
	}
	return out
}

// read adds the parts of a multipart body.
func (out *parsed) read(t testing.TB, contentType string, body io.Reader) {
	t.Helper()
	typ, params, err := mime.ParseMediaType(contentType)
	if err != nil || typ != "multipart/alternative" && typ != "multipart/mixed" {
		t.Fatalf("content type = %q, %v; want multipart/alternative or multipart/mixed", typ, err)
	}
	for r := multipart.NewReader(body, params["boundary"]); ; {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		content := io.Reader(p)
		switch encoding := p.Header.Get("Content-Transfer-Encoding"); {
		case strings.HasPrefix(p.Header.Get("Content-Type"), "multipart/"):
			out.read(t, p.Header.Get("Content-Type"), p)
			continue
		case encoding == "quoted-printable":
			content = quotedprintable.NewReader(p)
		case encoding == "base64" && p.FileName() != "":
			content = base64.NewDecoder(base64.StdEncoding, p)
		default:
			t.Fatalf("header of a part = %v, want quoted-printable text or a file in base64", p.Header)
		}
		text, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}
		if name := p.FileName(); name != "" {
			out.files[name] = string(text)
			continue
		}
		out.parts = append(out.parts, string(text))
	}
}

// All types have texts in both languages, and all texts are valid templates.
func TestWordings(t *testing.T) {
	for typ, of := range wordings {
		en := of[api.MailEnglish]
		for _, l := range []api.MailLanguage{api.MailEnglish, api.MailGerman} {
			w, ok := of[l]
			if !ok || w.subject == "" || len(w.paragraphs) != len(en.paragraphs) || w.path != en.path || (w.action == "") != (en.action == "") {
				t.Errorf("wording of %s in %s = %+v, want the same parts as in English", typ, l, w)
			}
			for _, text := range append(slices.Clone(w.paragraphs), w.subject) {
				if _, err := template.New("").Parse(text); err != nil {
					t.Errorf("text of %s in %s: %v", typ, l, err)
				}
			}
		}
	}
}

func raw(t testing.TB, c composed) string {
	t.Helper()
	m, err := c.message()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := m.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// headersOf are the headers of every message. Some have a Reply-To.
var headersOf = []string{"Auto-Submitted", "Content-Language", "Content-Type", "Date", "From", "Message-Id", "Mime-Version", "Subject", "To"}

func checkHeaders(t testing.TB, p parsed, product string) {
	t.Helper()
	var names []string
	for name, values := range p.Header {
		if name != "Reply-To" {
			names = append(names, name)
		} else if to, err := p.Header.AddressList(name); err != nil || len(to) != 1 {
			t.Errorf("Reply-To = %q, %v; want one address", values, err)
		}
		if len(values) != 1 {
			t.Errorf("header %s has %d values, want 1", name, len(values))
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, headersOf) {
		t.Errorf("headers = %q, want %q", names, headersOf)
	}
	from, err := p.Header.AddressList("From")
	if err != nil || len(from) != 1 || from[0].Address != "cloud@example.com" || from[0].Name != product {
		t.Errorf("sender = %v, %v; want %q <cloud@example.com>", from, err, product)
	}
	if to, err := p.Header.AddressList("To"); err != nil || len(to) != 1 || to[0].Address != "ann@example.com" {
		t.Errorf("recipient = %v, %v; want ann@example.com", to, err)
	}
}

// Names, branding and data are treated as text, whatever they contain.
func FuzzCompose(f *testing.F) {
	f.Add("Basalt", "plain", "x")
	f.Add("Basalt", "help@example.com", "x")
	f.Add("Basalt", "help@example.com\r\nBcc: eve@example.com", "x")
	f.Add("Basalt", `"a, b" <help@example.com>, eve@example.com`, "x")
	f.Add("A\r\nBcc: eve@example.com", "\r\n.\r\nMAIL FROM:<>", "</td><script>alert(1)</script>")
	f.Add(`"Cloud", <eve@example.com>,`, "=?utf-8?q?=0d=0aBcc:_eve?=", "{{.to}}\x00\xff")
	f.Add(strings.Repeat("ü", 300), strings.Repeat("x", 2000), "\n\n--boundary--\n")
	f.Fuzz(func(t *testing.T, product, value, token string) {
		s := api.MailSettings{Sender: "cloud@example.com", PortalURL: "https://cloud.example.com"}.Spec()
		brand := api.NearestBranding{StoredBranding: api.StoredBranding{Spec: api.BrandingSpec{ProductName: product, SupportEmail: value, SupportURL: "https://example.com/" + value}}}
		data := map[string]string{}
		for _, name := range []string{"number", "organization", "budget", "reason", "alerts", "total", "state"} {
			data[name] = value
		}
		for typ := range wordings {
			m := api.MailMessage{Meta: api.Meta{ID: "mail-1", CreatedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}, Spec: api.MailMessageSpec{Type: typ, To: "ann@example.com", Data: data}}
			c := compose(m, s, brand, token)
			p := parse(t, raw(t, c))
			checkHeaders(t, p, c.from.Name)
			if subject, err := new(mime.WordDecoder).DecodeHeader(p.Header.Get("Subject")); err != nil || strings.ContainsAny(subject, "\r\n\x00") {
				t.Errorf("subject = %q, %v; want one line", subject, err)
			}
			if n := strings.Count(p.parts[1], "<script"); n != 0 {
				t.Errorf("HTML contains a script:\n%s", p.parts[1])
			}
		}
	})
}
