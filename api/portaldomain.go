package api

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"regexp"
	"strings"
	"time"
)

// maxPortalDomain limits the length of a host name: a claim contains it.
const maxPortalDomain = 100

// Limits of the certificate of a host name, in bytes.
const (
	maxCertificateText = 64 << 10
	maxKeyText         = 16 << 10
)

// portalDomainPattern matches a host name of at least two labels in lower case (RFC 1123,
// section 2.1) whose last label is not a number, as that of an IPv4 address would be.
var portalDomainPattern = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

// reservedDomains are the top-level domains that name no host on the Internet (RFC 6761,
// RFC 7686, RFC 9476) but may name this machine. Private ones (.internal, .local) are
// allowed: clusters are also used in networks of companies.
var reservedDomains = []string{"localhost", "invalid", "onion", "alt", "arpa"}

// ValidatePortalDomainName checks the form of a host name; internationalized names are in
// Punycode. A wildcard is not a host name.
func ValidatePortalDomainName(name string) error {
	bad := func(hint string) error {
		return invalid("meta.name", "%q is not a valid host name", clip(name)).WithHint("%s", hint)
	}
	if len(name) > maxPortalDomain || !portalDomainPattern.MatchString(name) {
		return bad("e.g. portal.example.com: at least two labels, in lower case and without a wildcard or port, in Punycode (xn--…) if it is not ASCII, at most 100 bytes")
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	for _, reserved := range reservedDomains {
		if last == reserved {
			return bad("names below " + reserved + " do not belong to anybody")
		}
	}
	return nil
}

// HostName returns the host name in the Host of a request: in lower case, without a port
// and without the dot that may end it.
func HostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// Claims returns the claims of a host name: one that is approved belongs to one reseller in
// the whole cluster. A request claims nothing, so that nobody can block a name for others.
func (s PortalDomainSpec) Claims(name string) []string {
	if !s.Approved {
		return []string{}
	}
	return []string{"portal-domain/" + name}
}

// ValidatePortalCertificate checks the certificate and key that spec contains for a host
// name, and returns when the certificate expires.
func ValidatePortalCertificate(name string, s PortalDomainSpec, now time.Time) (time.Time, error) {
	if len(s.Certificate) > maxCertificateText {
		return time.Time{}, invalid("spec.certificate", "must be at most %s", sizeText(maxCertificateText)).WithHint("the certificate and its intermediate ones, without the root")
	}
	if len(s.Key) > maxKeyText {
		return time.Time{}, invalid("spec.key", "must be at most %s", sizeText(maxKeyText))
	}
	if block, _ := pem.Decode([]byte(s.Certificate)); block == nil || block.Type != "CERTIFICATE" {
		return time.Time{}, invalid("spec.certificate", "does not begin with a certificate in PEM form").WithHint("-----BEGIN CERTIFICATE-----")
	}
	if s.Key == "" {
		return time.Time{}, invalid("spec.key", "a new certificate needs its private key").WithHint("in PEM form, unencrypted; it is stored encrypted")
	}
	pair, err := tls.X509KeyPair([]byte(s.Certificate), []byte(s.Key))
	if err != nil { // the error of the library could quote a part of the key
		return time.Time{}, invalid("spec.key", "is not the private key of the certificate, or one of the two cannot be read").WithHint("both in PEM form, the key unencrypted, the host's certificate first")
	}
	return pair.Leaf.NotAfter.UTC(), certificateServes(pair.Leaf, name, now)
}

func certificateServes(leaf *x509.Certificate, name string, now time.Time) error {
	const layout = "2006-01-02 15:04"
	switch {
	case leaf.VerifyHostname(name) != nil:
		return invalid("spec.certificate", "is of %s, want %s", clip(strings.Join(leaf.DNSNames, ", ")), name).WithHint("the first certificate must contain the host name as a DNS name")
	case !now.Before(leaf.NotAfter):
		return invalid("spec.certificate", "expired at %s UTC", leaf.NotAfter.UTC().Format(layout)).WithHint("renew it")
	case now.Before(leaf.NotBefore):
		return invalid("spec.certificate", "is valid only from %s UTC", leaf.NotBefore.UTC().Format(layout)).WithHint("check the clocks")
	}
	return nil
}
