package saml

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	dsig "github.com/russellhaering/goxmldsig"
)

// Limits of an XML document. goxmldsig verifies elements with up to about 1000 others
// below them; Entra ID sends at most 150 groups.
const (
	maxDepth            = 32
	maxElements         = 1200
	maxElementAttribute = 64 // attributes of an element
)

const (
	protocolNS  = "urn:oasis:names:tc:SAML:2.0:protocol"
	assertionNS = "urn:oasis:names:tc:SAML:2.0:assertion"
)

// element is an element of a document.
type element struct {
	xml.StartElement
	path []string // local names from the root to it
}

// scan reads a document and calls visit for each element. It refuses what SAML documents
// do not need: DTDs, processing instructions, other encodings than UTF-8, and, unless they
// are allowed, comments, which split texts in two. It returns the name of the root.
func scan(raw []byte, comments bool, visit func(element) error) (root xml.Name, err error) {
	if !utf8.Valid(raw) || bytes.IndexByte(raw, 0) >= 0 {
		return root, errors.New("document is not UTF-8 text")
	}
	d := xml.NewDecoder(bytes.NewReader(raw))
	var path []string
	for elements := 0; ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) && root.Local != "" {
			return root, nil
		}
		if err != nil {
			return root, fmt.Errorf("read XML: %w", err)
		}
		switch t := token.(type) {
		case xml.Directive:
			return root, errors.New("document has a DTD, which is not permitted")
		case xml.Comment:
			if !comments {
				return root, errors.New("document has a comment, which is not permitted")
			}
		case xml.ProcInst:
			if t.Target != "xml" || root.Local != "" {
				return root, errors.New("document has a processing instruction, which is not permitted")
			}
		case xml.CharData:
			if len(path) == 0 && len(bytes.TrimSpace(t)) > 0 {
				return root, errors.New("document has text outside of its root")
			}
		case xml.EndElement:
			path = path[:len(path)-1]
		case xml.StartElement:
			if len(path) == 0 {
				if root.Local != "" {
					return root, errors.New("document has several roots")
				}
				root = t.Name
			}
			path = append(slices.Clone(path), t.Name.Local)
			if elements++; elements > maxElements || len(path) > maxDepth || len(t.Attr) > maxElementAttribute {
				return root, fmt.Errorf("document exceeds %d elements, %d levels or %d attributes of an element", maxElements, maxDepth, maxElementAttribute)
			}
			if err := visit(element{t, path}); err != nil {
				return root, err
			}
		}
	}
}

// The algorithms of signatures. SHA-1 and keys that both sides share are not among them.
var (
	signatureMethods = []string{dsig.RSASHA256SignatureMethod, dsig.RSASHA384SignatureMethod, dsig.RSASHA512SignatureMethod,
		dsig.ECDSASHA256SignatureMethod, dsig.ECDSASHA384SignatureMethod, dsig.ECDSASHA512SignatureMethod}
	digestMethods = []string{"http://www.w3.org/2001/04/xmlenc#sha256", "http://www.w3.org/2001/04/xmldsig-more#sha384", "http://www.w3.org/2001/04/xmlenc#sha512"}
	canonical     = []string{string(dsig.CanonicalXML10ExclusiveAlgorithmId)}
	transforms    = []string{string(dsig.EnvelopedSignatureAltorithmId), string(dsig.CanonicalXML10ExclusiveAlgorithmId)}
)

var algorithms = map[string][]string{"SignatureMethod": signatureMethods, "DigestMethod": digestMethods, "CanonicalizationMethod": canonical, "Transform": transforms}

// places are the only places of the elements that decide who is signed in, whatever their
// namespaces: a second one anywhere else could be read by one part of a program, and
// verified by another (signature wrapping). "S" stands for Response or Response/Assertion.
var places = map[string]string{
	"Response": "Response", "Assertion": "Response/Assertion", "Subject": "Response/Assertion/Subject", "Conditions": "Response/Assertion/Conditions",
	"SubjectConfirmation": "Response/Assertion/Subject/SubjectConfirmation", "AttributeStatement": "Response/Assertion/AttributeStatement",
	"Signature": "S/Signature", "SignedInfo": "S/Signature/SignedInfo", "SignatureValue": "S/Signature/SignatureValue", "KeyInfo": "S/Signature/KeyInfo",
	"SignatureMethod": "S/Signature/SignedInfo/SignatureMethod", "CanonicalizationMethod": "S/Signature/SignedInfo/CanonicalizationMethod",
	"Reference": "S/Signature/SignedInfo/Reference", "Transforms": "S/Signature/SignedInfo/Reference/Transforms", "Transform": "S/Signature/SignedInfo/Reference/Transforms/Transform",
	"DigestMethod": "S/Signature/SignedInfo/Reference/DigestMethod", "DigestValue": "S/Signature/SignedInfo/Reference/DigestValue",
}

// single elements may occur once at their place.
var singles = []string{"Response", "Assertion", "Subject", "Conditions", "Signature", "SignedInfo", "SignatureValue", "KeyInfo", "SignatureMethod", "CanonicalizationMethod",
	"Reference", "Transforms", "DigestMethod", "DigestValue"}

// refusedElements are not supported, or make a signature cover something else.
var refusedElements = map[string]string{
	"EncryptedAssertion": "encrypted assertions are not supported: switch encryption off at the provider",
	"EncryptedID":        "encrypted NameIDs are not supported: switch encryption off at the provider",
	"EncryptedAttribute": "encrypted attributes are not supported: switch encryption off at the provider",
	"Object":             "a signature must not contain objects",
	"Manifest":           "a signature must not contain a manifest",
	"BaseID":             "a BaseID is not supported",
}

// shape collects what Check has seen of a response.
type shape struct {
	ids    map[string]bool
	seen   map[string]int    // elements by path
	holder map[string]string // ID of Response and Response/Assertion
}

// Check refuses a response that has more than one way to be read: everything but one
// Response with one Assertion, of which at least one is signed as a whole.
func Check(raw []byte) error {
	if len(raw) > MaxResponse {
		return fmt.Errorf("response has %d bytes, want at most %d", len(raw), MaxResponse)
	}
	s := shape{ids: map[string]bool{}, seen: map[string]int{}, holder: map[string]string{}}
	root, err := scan(raw, false, s.visit)
	switch {
	case err != nil:
		return err
	case root.Local != "Response" || root.Space != protocolNS:
		return fmt.Errorf("root of the document is %.64q, want a SAML 2.0 Response", root.Local)
	case s.seen["Response/Assertion"] == 0:
		return nil // the library reports the status
	case s.seen["Response/Signature"]+s.seen["Response/Assertion/Signature"] == 0:
		return errors.New("neither the response nor the assertion is signed")
	case s.seen["Response/Assertion/Subject/NameID"] != 1:
		return fmt.Errorf("subject has %d NameIDs, want one", s.seen["Response/Assertion/Subject/NameID"])
	}
	return nil
}

func (s shape) visit(e element) error {
	name, path := e.Name.Local, strings.Join(e.path, "/")
	if why := refusedElements[name]; why != "" {
		return errors.New(why)
	}
	s.seen[path]++
	if err := s.identify(e, path); err != nil {
		return err
	}
	parent, _ := strings.CutSuffix(path, "/"+name)
	if strings.HasSuffix(parent, "/NameID") {
		return fmt.Errorf("NameID contains element %.64q, want text only", name)
	}
	want, placed := places[name]
	if !placed {
		return nil
	}
	if at := strings.Replace(strings.Replace(path, "Response/Assertion/Signature", "S/Signature", 1), "Response/Signature", "S/Signature", 1); at != want {
		return fmt.Errorf("element %s is at %.128s, want it at %s only", name, path, want)
	}
	if slices.Contains(singles, name) && s.seen[path] > 1 {
		return fmt.Errorf("element %.128s occurs several times, want it once", path)
	}
	return s.checkSigned(e, path)
}

// identify records the IDs of an element, which must be unique: a signature refers to them.
func (s shape) identify(e element, path string) error {
	own := 0
	for _, a := range e.Attr {
		if !strings.EqualFold(a.Name.Local, "id") {
			continue
		}
		if own++; a.Name.Local != "ID" && a.Name.Local != "Id" || a.Name.Space != "" || own > 1 || s.ids[a.Value] || a.Value == "" {
			return fmt.Errorf("element %.128s has an ID that is ambiguous, want unique ones", path)
		}
		s.ids[a.Value] = true
		if a.Name.Local == "ID" {
			s.holder[path] = a.Value
		}
	}
	return nil
}

// checkSigned checks namespaces, the algorithms of a signature, and that it covers the
// element that contains it.
func (s shape) checkSigned(e element, path string) error {
	name := e.Name.Local
	want := assertionNS
	switch {
	case name == "Response":
		want = protocolNS
	case strings.Contains(path, "/Signature"):
		want = dsig.Namespace
	}
	if e.Name.Space != want {
		return fmt.Errorf("element %s has namespace %.64q, want %q", path, e.Name.Space, want)
	}
	if allowed := algorithms[name]; allowed != nil && !slices.Contains(allowed, attribute(e, "Algorithm")) {
		return fmt.Errorf("%s is %.128q, want one of %q", name, attribute(e, "Algorithm"), allowed)
	}
	holder, _, signature := strings.Cut(path, "/Signature/SignedInfo/Reference")
	if name == "Reference" && signature && (s.holder[holder] == "" || attribute(e, "URI") != "#"+s.holder[holder]) {
		return fmt.Errorf("signature of the %s refers to %.64q, want the element that contains it, %.64q", holder, attribute(e, "URI"), s.holder[holder])
	}
	if name == "Transform" && s.seen[path] > len(transforms) {
		return errors.New("signature has too many transforms")
	}
	return nil
}

// attribute returns the value of an attribute without a namespace; two of them make it
// empty.
func attribute(e element, name string) string {
	value, n := "", 0
	for _, a := range e.Attr {
		if a.Name.Local == name {
			value, n = a.Value, n+1
		}
	}
	if n > 1 {
		return ""
	}
	return value
}
