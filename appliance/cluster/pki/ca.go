package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Lifetimes of certificates.
const (
	CALifetime   = 10 * 365 * 24 * time.Hour
	NodeLifetime = 30 * 24 * time.Hour
)

// backdated is how long before its signing a certificate becomes valid, because the
// signer's clock may be ahead.
const backdated = time.Hour

// Maximum sizes, in bytes and CAs, of what is parsed.
const (
	maxCSR    = 8 << 10
	maxBundle = 64 << 10
	maxCAs    = 8
)

// CA is the certificate authority of a cluster.
type CA struct {
	CertPEM []byte `json:"certPem"`
	KeyPEM  []byte `json:"keyPem"` // secret
}

// NewCA creates the authority of a cluster.
func NewCA(cluster string, now time.Time) (CA, error) {
	if err := CheckClusterName(cluster); err != nil {
		return CA{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return CA{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial(),
		// The date lets a person distinguish two CAs of one cluster.
		Subject:   pkix.Name{CommonName: fmt.Sprintf("basalt %s %s", cluster, now.UTC().Format("2006-01-02"))},
		URIs:      []*url.URL{caURI(cluster)},
		NotBefore: now.Add(-backdated).UTC(), NotAfter: now.Add(CALifetime).UTC(),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return CA{}, err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return CA{}, err
	}
	return CA{CertPEM: encodeCert(der), KeyPEM: keyPEM}, nil
}

// Sign creates a node's certificate from its CSR (DER). Of the CSR only the key is
// used, and it is checked that the node owns it. The lifetime (30 days if 0) ends
// no later than the CA's.
func (ca CA) Sign(csrDER []byte, id NodeIdentity, now time.Time, lifetime time.Duration) (certPEM []byte, err error) {
	if err := id.check(); err != nil {
		return nil, err
	}
	cert, key, err := ca.parse()
	if err != nil {
		return nil, fmt.Errorf("read CA: %w", err)
	}
	cluster, err := clusterOf(cert)
	if err != nil {
		return nil, err
	}
	if cluster != id.Cluster {
		return nil, fmt.Errorf("the CA of %s does not sign certificates for %s", cluster, id.Cluster)
	}
	public, err := keyOf(csrDER)
	if err != nil {
		return nil, err
	}
	if lifetime <= 0 {
		lifetime = NodeLifetime
	}
	from, to := later(now.Add(-backdated), cert.NotBefore), earlier(now.Add(lifetime), cert.NotAfter)
	if !to.After(from) {
		return nil, api.Errorf(api.CodeState, "the cluster's CA expired on %s", cert.NotAfter.UTC().Format(time.DateOnly)).
			WithHint("check this node's clock; a CA is replaced before it expires: basalt cluster ca replace")
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: commonName(id.Name)},
		URIs: []*url.URL{nodeURI(id.Cluster, id.Node)}, DNSNames: names(id),
		NotBefore: from.UTC(), NotAfter: to.UTC(),
		KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, ip := range addresses(id) {
		template.IPAddresses = append(template.IPAddresses, net.IP(ip.AsSlice()))
	}
	der, err := x509.CreateCertificate(rand.Reader, template, cert, public, key)
	if err != nil {
		return nil, err
	}
	return encodeCert(der), nil
}

// Fingerprint returns the SHA-256 of the CA's DER, as tokens contain it.
func (ca CA) Fingerprint() (string, error) { return Fingerprint(ca.CertPEM) }

// Describe returns the CA's fingerprint and its expiry.
func (ca CA) Describe() (print string, ends time.Time, err error) {
	certs, err := parseBundle(ca.CertPEM)
	if err != nil {
		return "", time.Time{}, err
	}
	return fingerprint(certs[0]), certs[0].NotAfter.UTC(), nil
}

func (ca CA) parse() (*x509.Certificate, *ecdsa.PrivateKey, error) {
	certs, err := parseBundle(ca.CertPEM)
	if err != nil {
		return nil, nil, err
	}
	key, err := decodeKey(ca.KeyPEM)
	if err != nil {
		return nil, nil, err
	}
	if !key.PublicKey.Equal(certs[0].PublicKey) {
		return nil, nil, errors.New("the key belongs to another certificate")
	}
	return certs[0], key, nil
}

// NewRequest creates a node's key and the CSR for it.
func NewRequest() (keyPEM, csrDER []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	csrDER, err = x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err = encodeKey(key)
	return keyPEM, csrDER, err
}

// keyOf returns the public key of a CSR, after checking that its sender owns it.
func keyOf(csrDER []byte) (*ecdsa.PublicKey, error) {
	bad := func(why string) error {
		return api.Errorf(api.CodeInvalid, "the certificate request %s", why).
			WithHint("check that both nodes run the same version").At("csr")
	}
	if len(csrDER) > maxCSR {
		return nil, bad(fmt.Sprintf("is larger than %d bytes", maxCSR))
	}
	csr, err := x509.ParseCertificateRequest(csrDER)
	if err != nil {
		return nil, bad("is malformed")
	}
	public, ok := csr.PublicKey.(*ecdsa.PublicKey)
	if !ok || public.Curve != elliptic.P256() {
		return nil, bad("is not for an ECDSA P-256 key")
	}
	if csr.CheckSignature() != nil {
		return nil, bad("is not signed with its key")
	}
	return public, nil
}

// Every node's certificate is also valid for localhost and the loopback addresses,
// because a client on the machine, or behind a forwarded port, uses the API as
// localhost. A server that is reached under that name has a key of this cluster,
// and names and addresses do not matter between nodes (see identityOf).
const localhost = "localhost"

var loopback = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}

func addresses(id NodeIdentity) (all []netip.Addr) {
	for _, ip := range append(slices.Clone(id.IPs), loopback...) {
		if ip = ip.Unmap(); !slices.Contains(all, ip) {
			all = append(all, ip)
		}
	}
	return all
}

func names(id NodeIdentity) []string {
	all := append([]string{id.Name, localhost}, id.DNS...)
	for i := range all {
		all[i] = strings.ToLower(all[i])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// commonName shortens a name to fit X.520's 64 characters.
func commonName(name string) string {
	host, _, _ := strings.Cut(name, ".")
	return host
}

func serial() *big.Int {
	var b [16]byte
	_, _ = rand.Read(b[:]) // crypto/rand never returns an error
	b[0] = b[0]&0x7f | 0x40
	return new(big.Int).SetBytes(b[:])
}

func encodeCert(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func decodeKey(text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, errors.New("it contains no private key")
	}
	any, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse private key: %w", err)
	}
	key, ok := any.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("key has type %T, want ECDSA", any)
	}
	return key, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
