package saml_test

import (
	"bytes"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/beevik/etree"
	crewjam "github.com/crewjam/saml"
	dsig "github.com/russellhaering/goxmldsig"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/saml"
	"github.com/basalt-gpu/basalt/api/server/saml/samltest"
)

const base = "https://cloud.example"

func providerOf(i *samltest.IdP) saml.Provider {
	s := api.SAMLProvider{BaseURL: base, SignOnURL: i.SignOnURL, Certificates: []string{i.PEM()}, EmailDomains: []string{"example.com"}, NameAttribute: "name"}.WithDefaults(nil)
	return saml.Provider{Issuer: i.EntityID, EntityID: s.EntityID("corp"), ACSURL: s.ACSURL("corp"), SAML: s}
}

// begun returns a request of a provider.
func begun(t testing.TB, p saml.Provider) samltest.Request {
	t.Helper()
	address, err := p.URL(time.Now(), saml.RequestID("idp-1", "https://cloud.example/login/oidc", "state.0"), "state.0")
	if err != nil {
		t.Fatal(err)
	}
	r := samltest.Read(t, address)
	if !strings.HasPrefix(address, p.SAML.SignOnURL+"?") || r.AssertionConsumerServiceURL != p.ACSURL || r.Issuer.Value != p.EntityID || r.RelayState != "state.0" ||
		r.NameIDPolicy == nil || *r.NameIDPolicy.Format != string(crewjam.PersistentNameIDFormat) || r.ProtocolBinding != crewjam.HTTPPostBinding {
		t.Fatalf("request in %s = %+v, want the provider's address and this service's", address, r)
	}
	return r
}

// TestVerify checks that a response is accepted if its assertion, it, or both are signed.
func TestVerify(t *testing.T) {
	i := samltest.New(t)
	p := providerOf(i)
	for name, change := range map[string]func(*samltest.Answer){
		"assertion": func(*samltest.Answer) {},
		"response":  func(a *samltest.Answer) { a.SignAssertion, a.SignResponse = false, true },
		"both":      func(a *samltest.Answer) { a.SignResponse = true },
		"SHA-512":   func(a *samltest.Answer) { a.Method = dsig.RSASHA512SignatureMethod },
		"groups":    func(a *samltest.Answer) { a.Attributes["more"] = make([]string, 790) },
		"skewed":    func(a *samltest.Answer) { a.Now = a.Now.Add(2 * time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			r := begun(t, p)
			a := samltest.To(r)
			change(&a)
			c, err := p.Verify(time.Now(), i.Response(t, a), r.ID)
			if err != nil {
				t.Fatal(err)
			}
			groups, _ := c.All["groups"].([]any)
			if c.Subject != "u-1" || c.Email != "Ann@example.com" || c.Name != "Ann" || len(groups) != 2 || groups[1] != "gpu" {
				t.Errorf("claims = %+v, want u-1, Ann@example.com, Ann and two groups", c)
			}
		})
	}
}

// refusals are answers that are refused, with a part of the reason.
var refusals = map[string]struct {
	change func(*samltest.Answer)
	want   string
}{
	"not signed":      {func(a *samltest.Answer) { a.SignAssertion = false }, "neither the response nor the assertion is signed"},
	"SHA-1":           {func(a *samltest.Answer) { a.Method = dsig.RSASHA1SignatureMethod }, "SignatureMethod is"},
	"other audience":  {func(a *samltest.Answer) { a.Audience = "https://shop.example" }, "AudienceRestriction"},
	"other recipient": {func(a *samltest.Answer) { a.ACS = "https://shop.example/acs" }, "Destination"},
	"other request":   {func(a *samltest.Answer) { a.RequestID = "id-other" }, "InResponseTo"},
	"no request":      {func(a *samltest.Answer) { a.RequestID = "" }, "InResponseTo"},
	"other issuer":    {func(a *samltest.Answer) { a.Issuer = "https://evil.example" }, "ssuer"},
	"expired":         {func(a *samltest.Answer) { a.Now = a.Now.Add(-time.Hour) }, "expired"},
	"old, long valid": {func(a *samltest.Answer) { a.Now, a.Life = a.Now.Add(-5*time.Minute), time.Hour }, "expired"},
	"future":          {func(a *samltest.Answer) { a.Now = a.Now.Add(10 * time.Minute) }, "in the future"},
	"transient":       {func(a *samltest.Answer) { a.Format = string(crewjam.TransientNameIDFormat) }, "NameID has format"},
	"unspecified":     {func(a *samltest.Answer) { a.Format = string(crewjam.UnspecifiedNameIDFormat) }, "NameID has format"},
	"empty NameID":    {func(a *samltest.Answer) { a.NameID = "" }, "NameID"},
	"spaces":          {func(a *samltest.Answer) { a.NameID = " u-1" }, "NameID"},
	"long NameID":     {func(a *samltest.Answer) { a.NameID = strings.Repeat("u", 300) }, "NameID"},
	"no e-mail":       {func(a *samltest.Answer) { delete(a.Attributes, "email") }, `attribute "email" has 0 values`},
	"two e-mails":     {func(a *samltest.Answer) { a.Attributes["email"] = []string{"a@example.com", "b@example.com"} }, "has 2 values"},
	"many values":     {func(a *samltest.Answer) { a.Attributes["groups"] = make([]string, 801) }, "more than 800 values"},
	"many elements":   {func(a *samltest.Answer) { a.Attributes["groups"] = make([]string, 1201) }, "exceeds 1200 elements"},
	"too large":       {func(a *samltest.Answer) { a.Attributes["groups"] = []string{strings.Repeat("x", 256<<10)} }, "bytes, want at most"},
	"no recipient":    {func(a *samltest.Answer) { a.Edit = attr("//SubjectConfirmationData", "Recipient", "") }, "Recipient"},
	"recipient only": {func(a *samltest.Answer) {
		a.Edit = attr("//SubjectConfirmationData", "Recipient", "https://shop.example")
	}, "Recipient"},
	"assertion's only": {func(a *samltest.Answer) { a.Edit = attr("//SubjectConfirmationData", "InResponseTo", "id-other") }, "request IDs"},
	"never ends":       {func(a *samltest.Answer) { a.Edit = attr("//SubjectConfirmationData", "NotOnOrAfter", "") }, "expired"},
	"not bearer": {func(a *samltest.Answer) {
		a.Edit = attr("//SubjectConfirmation", "Method", "urn:oasis:names:tc:SAML:2.0:cm:sender-vouches")
	}, "bearer"},
	"no audience":       {func(a *samltest.Answer) { a.Edit = gone("//AudienceRestriction") }, "AudienceRestriction"},
	"no conditions":     {func(a *samltest.Answer) { a.Edit = gone("//Conditions") }, "Conditions"},
	"no authentication": {func(a *samltest.Answer) { a.Edit = gone("//AuthnStatement") }, "AuthnStatement"},
	"unknown condition": {func(a *samltest.Answer) { a.Edit = more("//Conditions", "saml:Delegation") }, "onditions"},
	"refused": {func(a *samltest.Answer) {
		a.Edit = attr("//StatusCode", "Value", "urn:oasis:names:tc:SAML:2.0:status:Responder")
	}, ""},
	"old version":       {func(a *samltest.Answer) { a.Edit = attr("//Assertion", "Version", "1.1") }, "Version"},
	"two NameIDs":       {func(a *samltest.Answer) { a.Edit = more("//Subject", "saml:NameID") }, "2 NameIDs"},
	"two Subjects":      {func(a *samltest.Answer) { a.Edit = more("//Assertion", "saml:Subject") }, "several times"},
	"other qualifier":   {func(a *samltest.Answer) { a.Edit = attr("//NameID", "SPNameQualifier", "https://shop.example") }, "is for"},
	"encrypted":         {func(a *samltest.Answer) { a.Edit = more("//Response", "saml:EncryptedAssertion") }, "encrypted assertions are not supported"},
	"encrypted NameID":  {func(a *samltest.Answer) { a.Edit = more("//Subject", "saml:EncryptedID") }, "encrypted NameIDs are not supported"},
	"advice":            {func(a *samltest.Answer) { a.Edit = more("//Assertion", "saml:Advice/saml:Assertion") }, "element Assertion is at"},
	"element in NameID": {func(a *samltest.Answer) { a.Edit = more("//NameID", "saml:b") }, "NameID contains element"},
}

func attr(path, name, value string) func(*etree.Element) {
	return func(root *etree.Element) {
		for _, e := range root.FindElements(path) {
			if e.RemoveAttr(name); value != "" {
				e.CreateAttr(name, value)
			}
		}
	}
}

func gone(path string) func(*etree.Element) {
	return func(root *etree.Element) {
		for _, e := range root.FindElements(path) {
			e.Parent().RemoveChild(e)
		}
	}
}

func more(path, names string) func(*etree.Element) {
	return func(root *etree.Element) {
		e := root.FindElement(path)
		for name := range strings.SplitSeq(names, "/") {
			e = e.CreateElement(name)
		}
	}
}

// TestRefusals checks that answers that the provider has signed are refused if they are
// not a valid answer to this request.
func TestRefusals(t *testing.T) {
	i := samltest.New(t)
	p := providerOf(i)
	for name, c := range refusals {
		t.Run(name, func(t *testing.T) {
			r := begun(t, p)
			a := samltest.To(r)
			c.change(&a)
			refused(t, p, i.Response(t, a), r.ID, c.want)
		})
	}
}

func refused(t *testing.T, p saml.Provider, response []byte, request, want string) {
	t.Helper()
	c, err := p.Verify(time.Now(), response, request)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Verify = %+v, error %v; want an error with %q", c, err, want)
	}
}

// wrapped are the variants of signature wrapping of Somorovsky et al., On Breaking SAML
// (2012), as SAML Raider numbers them: signed is the signed element, evil a copy of it with
// another subject and without a signature. The last ones are of later advisories.
var wrapped = map[string]func(root, signed, evil *etree.Element) *etree.Element{
	"XSW1, copy of the response in the signature": func(root, signed, evil *etree.Element) *etree.Element {
		sig := signed.SelectElement("Signature").Copy()
		signed = signed.Copy()
		signed.RemoveChild(signed.SelectElement("Signature"))
		sig.AddChild(signed)
		evil.AddChild(sig)
		return replaced(root, evil)
	},
	"XSW2, detached signature before the signed element": func(root, signed, evil *etree.Element) *etree.Element {
		sig := signed.SelectElement("Signature").Copy()
		signed = signed.Copy()
		signed.RemoveChild(signed.SelectElement("Signature"))
		evil.AddChild(signed)
		evil.AddChild(sig)
		return replaced(root, evil)
	},
	"XSW3, evil sibling before": func(root, _, evil *etree.Element) *etree.Element {
		root.InsertChildAt(root.SelectElement("Assertion").Index(), evil)
		return root
	},
	"evil sibling after": func(root, _, evil *etree.Element) *etree.Element {
		root.AddChild(evil)
		return root
	},
	"XSW4, signed within evil": func(root, signed, evil *etree.Element) *etree.Element {
		evil.AddChild(signed.Copy())
		return replaced(root, evil)
	},
	"XSW5, signed without signature after evil with it": func(root, signed, evil *etree.Element) *etree.Element {
		signed = signed.Copy()
		sig := signed.RemoveChild(signed.SelectElement("Signature"))
		evil.AddChild(sig)
		root = replaced(root, evil)
		root.AddChild(signed)
		return root
	},
	"XSW6, signed within the signature of evil": func(root, signed, evil *etree.Element) *etree.Element {
		signed = signed.Copy()
		sig := signed.RemoveChild(signed.SelectElement("Signature")).(*etree.Element)
		sig.AddChild(signed)
		evil.AddChild(sig)
		return replaced(root, evil)
	},
	"XSW7, evil in Extensions": func(root, _, evil *etree.Element) *etree.Element {
		e := etree.NewElement("samlp:Extensions")
		e.AddChild(evil)
		root.InsertChildAt(0, e)
		return root
	},
	"XSW8, signed in an Object of the signature of evil": func(root, signed, evil *etree.Element) *etree.Element {
		signed = signed.Copy()
		sig := signed.RemoveChild(signed.SelectElement("Signature")).(*etree.Element)
		sig.CreateElement("ds:Object").AddChild(signed)
		evil.AddChild(sig)
		return replaced(root, evil)
	},
	"signature moved to the evil one": func(root, signed, evil *etree.Element) *etree.Element {
		evil.AddChild(signed.SelectElement("Signature").Copy())
		return replaced(root, evil)
	},
	"same ID twice": func(root, signed, evil *etree.Element) *etree.Element {
		e := root.CreateElement("samlp:Extensions").CreateElement("x")
		e.CreateAttr("ID", signed.SelectAttrValue("ID", ""))
		return root
	},
	"other namespace": func(root, _, evil *etree.Element) *etree.Element {
		evil.Space = "evil"
		evil.CreateAttr("xmlns:evil", "urn:evil")
		root.InsertChildAt(0, evil)
		return root
	},
	"two references": func(root, signed, _ *etree.Element) *etree.Element {
		info := signed.FindElement("./Signature/SignedInfo")
		info.AddChild(info.SelectElement("Reference").Copy())
		return root
	},
	"empty reference": func(root, signed, _ *etree.Element) *etree.Element {
		signed.FindElement("./Signature/SignedInfo/Reference").CreateAttr("URI", "")
		return root
	},
	"two signatures": func(root, signed, _ *etree.Element) *etree.Element {
		signed.AddChild(signed.SelectElement("Signature").Copy())
		return root
	},
	"two digests": func(root, signed, _ *etree.Element) *etree.Element {
		r := signed.FindElement("./Signature/SignedInfo/Reference")
		r.AddChild(r.SelectElement("DigestValue").Copy())
		return root
	},
	"XPath transform": func(root, signed, _ *etree.Element) *etree.Element {
		signed.FindElement("./Signature/SignedInfo/Reference/Transforms/Transform").CreateAttr("Algorithm", "http://www.w3.org/TR/1999/REC-xpath-19991116")
		return root
	},
	"HMAC with the certificate": func(root, signed, _ *etree.Element) *etree.Element {
		signed.FindElement("./Signature/SignedInfo/SignatureMethod").CreateAttr("Algorithm", "http://www.w3.org/2001/04/xmldsig-more#hmac-sha256")
		return root
	},
	"SHA-1 digest": func(root, signed, _ *etree.Element) *etree.Element {
		signed.FindElement("./Signature/SignedInfo/Reference/DigestMethod").CreateAttr("Algorithm", "http://www.w3.org/2000/09/xmldsig#sha1")
		return root
	},
	"changed": func(root, signed, _ *etree.Element) *etree.Element {
		root.FindElement("//NameID").SetText("admin")
		return root
	},
}

// replaced returns the document with evil instead of its assertion, or as its root.
func replaced(root, evil *etree.Element) *etree.Element {
	if evil.Tag == "Response" {
		return evil
	}
	old := root.SelectElement("Assertion")
	root.InsertChildAt(old.Index(), evil)
	root.RemoveChild(old)
	return root
}

// TestSignatureWrapping applies each variant to a signed assertion and to a signed
// response.
func TestSignatureWrapping(t *testing.T) {
	i := samltest.New(t)
	p := providerOf(i)
	for name, wrap := range wrapped {
		for _, whole := range []bool{false, true} {
			what := name + ", assertion"
			if whole {
				what = name + ", response"
			}
			t.Run(what, func(t *testing.T) {
				r := begun(t, p)
				a := samltest.To(r)
				a.SignAssertion, a.SignResponse = !whole, whole
				root := i.Element(t, a)
				signed := root
				if !whole {
					signed = root.SelectElement("Assertion")
				}
				evil := signed.Copy()
				evil.RemoveChild(evil.SelectElement("Signature"))
				evil.FindElement("//NameID").SetText("admin")
				if name != "signature moved to the evil one" {
					evil.CreateAttr("ID", "evil")
				}
				response := samltest.Text(t, wrap(root, signed, evil))
				refused(t, p, response, r.ID, "")
				if err := saml.Check(response); err == nil && name != "changed" && name != "signature moved to the evil one" {
					t.Errorf("Check = nil, want an error: %s", response)
				}
			})
		}
	}
}

// texts change the text of a signed response.
var texts = map[string]func(string) string{
	"comment in the NameID": func(s string) string { return strings.Replace(s, ">u-1<", ">u-<!-- -->1<", 1) },
	"comment":               func(s string) string { return s + "<!-- -->" },
	"DTD":                   func(s string) string { return `<!DOCTYPE x>` + s },
	"entities": func(s string) string {
		return `<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>` + strings.Replace(s, ">u-1<", ">&b;<", 1)
	},
	"external entity": func(s string) string {
		return `<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>` + strings.Replace(s, ">u-1<", ">&a;<", 1)
	},
	"undefined entity":       func(s string) string { return strings.Replace(s, ">u-1<", ">&a;<", 1) },
	"processing instruction": func(s string) string { return strings.Replace(s, ">u-1<", "><?x y?>u-1<", 1) },
	"stylesheet":             func(s string) string { return `<?xml-stylesheet href="https://evil.example"?>` + s },
	"two roots":              func(s string) string { return s + "<x/>" },
	"text before":            func(s string) string { return "x" + s },
	"text after":             func(s string) string { return s + "x" },
	"cut":                    func(s string) string { return s[:len(s)-10] },
	"NUL":                    func(s string) string { return strings.Replace(s, ">u-1<", ">u-1\x00<", 1) },
	"not UTF-8":              func(s string) string { return strings.Replace(s, ">u-1<", ">u-1\xff<", 1) },
	"UTF-16":                 func(s string) string { return `<?xml version="1.0" encoding="UTF-16"?>` + s },
	"UTF-7":                  func(s string) string { return `<?xml version="1.0" encoding="UTF-7"?>` + s },
	"deep":                   func(s string) string { return strings.Repeat("<a>", 100) + s + strings.Repeat("</a>", 100) },
	"round trip": func(s string) string {
		return strings.Replace(s, "<saml:Issuer>", `<x:saml:Issuer xmlns:x="urn:x">`, 1)
	},
	"empty":          func(string) string { return "" },
	"no XML":         func(string) string { return "hello" },
	"other root":     func(s string) string { return strings.ReplaceAll(s, "samlp:Response", "samlp:ArtifactResponse") },
	"two attributes": func(s string) string { return strings.Replace(s, "<samlp:Response", `<samlp:Response ID="x"`, 1) },
}

// TestHostileText checks documents that are not what was signed, or that XML readers
// understand in different ways.
func TestHostileText(t *testing.T) {
	i := samltest.New(t)
	p := providerOf(i)
	for name, change := range texts {
		t.Run(name, func(t *testing.T) {
			r := begun(t, p)
			before := string(i.Response(t, samltest.To(r)))
			after := change(before)
			if after == before {
				t.Fatal("the document is unchanged")
			}
			refused(t, p, []byte(after), r.ID, "")
			if err := saml.Check([]byte(after)); err == nil {
				t.Error("Check = nil, want an error")
			}
		})
	}
}

// TestKeys checks that only the provider's own, valid certificates verify a response.
func TestKeys(t *testing.T) {
	i, other := samltest.New(t), samltest.New(t)
	p := providerOf(i)
	r := begun(t, p)
	refused(t, p, other.Response(t, samltest.To(r)), r.ID, "trusted")
	p.SAML.Certificates = []string{other.PEM(), i.PEM()} // during a change of keys
	if _, err := p.Verify(time.Now(), i.Response(t, samltest.To(r)), r.ID); err != nil {
		t.Error(err)
	}
	p.SAML.Certificates = nil
	refused(t, p, i.Response(t, samltest.To(r)), r.ID, "")
	p = providerOf(i)
	later := time.Now().Add(48 * time.Hour)
	a := samltest.To(r)
	a.Now = later
	if c, err := p.Verify(later, i.Response(t, a), r.ID); err == nil {
		t.Errorf("claims by an expired certificate = %+v, want an error", c)
	}
}

// TestRequestIDs checks that a request's ID depends on each part.
func TestRequestIDs(t *testing.T) {
	seen := map[string]bool{}
	for _, parts := range [][3]string{{"a", "b", "c"}, {"a", "b", "d"}, {"a", "e", "c"}, {"f", "b", "c"}, {"a\x00b", "", "c"}, {"", "", ""}} {
		id := saml.RequestID(parts[0], parts[1], parts[2])
		if seen[id] || !regexp.MustCompile(`^[A-Za-z_][\w.-]*$`).MatchString(id) {
			t.Errorf("RequestID(%q) = %q, want another ID, of type xs:ID", parts, id)
		}
		seen[id] = true
	}
}

// session is who has signed in at the other identity provider.
type session crewjam.Session

func (s session) GetSession(http.ResponseWriter, *http.Request, *crewjam.IdpAuthnRequest) *crewjam.Session {
	c := crewjam.Session(s)
	return &c
}

type registry map[string]*crewjam.EntityDescriptor

func (r registry) GetServiceProvider(_ *http.Request, id string) (*crewjam.EntityDescriptor, error) {
	if e := r[id]; e != nil {
		return e, nil
	}
	return nil, os.ErrNotExist
}

// TestCrewjamIdP signs in with the identity provider of crewjam/saml: it reads this
// service's metadata and request, and this service reads its metadata and response.
func TestCrewjamIdP(t *testing.T) {
	i := samltest.New(t)
	at := func(s string) url.URL { return *must(t, url.Parse, s) }
	idp := &crewjam.IdentityProvider{Key: i.Key, Certificate: i.Certificate, MetadataURL: at("https://idp.example/metadata"), SSOURL: at("https://idp.example/sso"),
		SessionProvider: session{ID: "s", NameID: "u-1", NameIDFormat: string(crewjam.PersistentNameIDFormat), UserEmail: "ann@example.com", UserCommonName: "Ann", Groups: []string{"gpu"}, CreateTime: time.Now(), ExpireTime: time.Now().Add(time.Hour), Index: "1"}}
	m, err := saml.ParseMetadata(string(mustXML(t, idp.Metadata())), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	p := providerOf(i)
	p.Issuer, p.SAML.SignOnURL, p.SAML.Certificates = m.EntityID, m.SignOnURL, m.Certificates
	p.SAML.EmailAttribute, p.SAML.NameAttribute = "urn:oid:0.9.2342.19200300.100.1.3", "urn:oid:2.5.4.3"
	text, err := p.ServiceMetadata(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	idp.ServiceProviderProvider = registry{p.EntityID: serviceOf(t, text)}
	address, err := p.URL(time.Now(), "id-1", "state.0")
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	idp.ServeSSO(w, httptest.NewRequest(http.MethodGet, address, nil))
	form := formIn(t, w.Body.String())
	if form.action != p.ACSURL || form.values.Get("RelayState") != "state.0" {
		t.Fatalf("form of the identity provider = %+v, want one to %s", form, p.ACSURL)
	}
	c, err := p.Verify(time.Now(), form.response(t), "id-1")
	if err != nil {
		t.Fatal(err)
	}
	if c.Subject != "u-1" || c.Email != "ann@example.com" || c.Name != "Ann" {
		t.Errorf("claims = %+v, want those of Ann", c)
	}
}

type form struct {
	action string
	values url.Values
}

func (f form) response(t *testing.T) []byte {
	t.Helper()
	return decoded(t, f.values.Get("SAMLResponse"))
}

// formIn reads the form of a page.
func formIn(t *testing.T, page string) form {
	t.Helper()
	out := form{values: url.Values{}}
	if m := regexp.MustCompile(`action="([^"]*)"`).FindStringSubmatch(page); m != nil {
		out.action = html.UnescapeString(m[1])
	}
	for _, m := range regexp.MustCompile(`name="([^"]*)"[^>]*value="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		out.values.Set(m[1], html.UnescapeString(m[2]))
	}
	if out.action == "" {
		t.Fatalf("page has no form: %s", page)
	}
	return out
}

// FuzzCheck checks that what Check accepts has one assertion and one subject, also for
// another reader of XML.
func FuzzCheck(f *testing.F) {
	i := samltest.New(f)
	p := providerOf(i)
	r := begun(f, p)
	good := i.Response(f, samltest.To(r))
	f.Add(good)
	for _, change := range texts {
		f.Add([]byte(change(string(good))))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, err := p.Verify(time.Now(), raw, r.ID)
		if err == nil && !bytes.Contains(raw, []byte("u-1")) {
			t.Errorf("accepted without the signed subject: %s", raw)
		}
		if saml.Check(raw) != nil {
			return
		}
		doc := etree.NewDocument()
		if err := doc.ReadFromBytes(raw); err != nil {
			t.Fatalf("Check accepts what etree cannot read (%v): %q", err, raw)
		}
		if n := len(doc.FindElements("//Assertion")); n > 1 {
			t.Errorf("Check accepts %d assertions: %s", n, raw)
		}
		if n := len(doc.FindElements("//Subject")); n > 1 {
			t.Errorf("Check accepts %d subjects: %s", n, raw)
		}
	})
}
