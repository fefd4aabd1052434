package pki

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
)

// CertificateStore keeps this node's identity on disk and in every tls.Config that it
// returns. It is safe for concurrent use.
type CertificateStore struct {
	dir string
	now func() time.Time

	mu      sync.Mutex // held while the identity is changed; guards changed
	changed chan struct{}

	current    atomic.Pointer[identity]
	generation atomic.Uint64
}

// identity is what a handshake needs. It is immutable once published.
type identity struct {
	cluster string
	node    api.NodeID
	cert    tls.Certificate // includes the issuing CA, for clients that pin it
	leaf    *x509.Certificate
	bundle  []*x509.Certificate
	roots   *x509.CertPool
}

// Option is an option of a CertificateStore.
type Option func(*CertificateStore)

// WithClock makes the CertificateStore use another clock than the system's.
func WithClock(now func() time.Time) Option { return func(s *CertificateStore) { s.now = now } }

// Create writes a new identity to dir, replacing any existing one, and opens it.
func Create(dir string, bundlePEM, certPEM, keyPEM []byte, options ...Option) (*CertificateStore, error) {
	id, err := newIdentity(bundlePEM, certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("check new certificate of this node: %w", err)
	}
	if !id.trustsItself() {
		return nil, errors.New("this node's new certificate is not signed by a CA in the bundle")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := atomicfile.WriteFile(filepath.Join(dir, bundleFile), encodeBundle(id.bundle), 0o600); err != nil {
		return nil, err
	}
	if err := writeCertificate(dir, certPEM, keyPEM); err != nil {
		return nil, err
	}
	return Open(dir, options...)
}

// writeCertificate writes the files in an order that Open can complete; see the
// package comment.
func writeCertificate(dir string, certPEM, keyPEM []byte) error {
	if err := atomicfile.WriteFile(filepath.Join(dir, newKeyFile), keyPEM, 0o600); err != nil {
		return err
	}
	if err := atomicfile.WriteFile(filepath.Join(dir, certFile), certPEM, 0o600); err != nil {
		return err
	}
	return renameFile(dir, newKeyFile, keyFile)
}

// Open reads the identity in dir. It also opens an expired one: see Warnings. The
// error wraps fs.ErrNotExist if there is none.
func Open(dir string, options ...Option) (*CertificateStore, error) {
	bundlePEM, err := readSmall(dir, bundleFile)
	if err != nil {
		return nil, err
	}
	certPEM, err := readSmall(dir, certFile)
	if err != nil {
		return nil, err
	}
	keyPEM, err := settle(dir, certPEM)
	if err != nil {
		return nil, err
	}
	id, err := newIdentity(bundlePEM, certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("read identity of this node in %s: %w", dir, err)
	}
	s := &CertificateStore{dir: dir, now: time.Now, changed: make(chan struct{})}
	for _, o := range options {
		o(s)
	}
	s.current.Store(id)
	return s, nil
}

func newIdentity(bundlePEM, certPEM, keyPEM []byte) (*identity, error) {
	bundle, err := parseBundle(bundlePEM)
	if err != nil {
		return nil, err
	}
	leaf, err := parseLeaf(certPEM)
	if err != nil {
		return nil, err
	}
	key, err := decodeKey(keyPEM)
	if err != nil {
		return nil, err
	}
	if !key.PublicKey.Equal(leaf.PublicKey) {
		return nil, errors.New("the key does not belong to the certificate")
	}
	id := &identity{leaf: leaf, bundle: bundle, roots: pool(bundle)}
	if id.cluster, id.node, err = identityOf(leaf); err != nil {
		return nil, err
	}
	if cluster, err := clusterOf(bundle[0]); err != nil || cluster != id.cluster {
		return nil, fmt.Errorf("the certificate belongs to cluster %s, but its CA to %s", id.cluster, cluster)
	}
	id.cert = tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
	for _, ca := range bundle {
		if leaf.CheckSignatureFrom(ca) == nil {
			id.cert.Certificate = append(id.cert.Certificate, ca.Raw)
		}
	}
	return id, nil
}

func parseLeaf(certPEM []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(certPEM)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("it contains no certificate")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse certificate of this node: %w", err)
	}
	return cert, nil
}

// trustsItself reports whether the bundle accepts the node's own certificate. If it
// did not, the bundle would disconnect the node.
func (id *identity) trustsItself() bool {
	_, _, err := verifyChain(id.leaf, id.roots, id.leaf.NotBefore, x509.ExtKeyUsageServerAuth)
	return err == nil
}

// Cluster returns the name of this node's cluster.
func (s *CertificateStore) Cluster() string { return s.current.Load().cluster }

// Node returns this node's ID.
func (s *CertificateStore) Node() api.NodeID { return s.current.Load().node }

// Bundle returns the PEM of every CA that is currently trusted.
func (s *CertificateStore) Bundle() []byte { return encodeBundle(s.current.Load().bundle) }

// Fingerprints returns the fingerprint of every CA that is currently trusted.
func (s *CertificateStore) Fingerprints() (all []string) {
	for _, ca := range s.current.Load().bundle {
		all = append(all, fingerprint(ca))
	}
	return all
}

// Issuer returns the fingerprint of the trusted CA that signed the current certificate; empty
// if none did.
func (s *CertificateStore) Issuer() string {
	id := s.current.Load()
	for _, ca := range id.bundle {
		if id.leaf.CheckSignatureFrom(ca) == nil {
			return fingerprint(ca)
		}
	}
	return ""
}

// CertificatePEM returns the current certificate.
func (s *CertificateStore) CertificatePEM() []byte { return encodeCert(s.current.Load().leaf.Raw) }

// Changed returns a channel that is closed at the next change of the certificate or
// bundle.
func (s *CertificateStore) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Generation returns a number that increases with every change of the certificate
// or bundle.
func (s *CertificateStore) Generation() uint64 { return s.generation.Load() }

// publish makes id the current identity. The caller holds mu.
func (s *CertificateStore) publish(id *identity) {
	s.current.Store(id)
	s.generation.Add(1)
	close(s.changed)
	s.changed = make(chan struct{})
}

// ReplaceBundle makes the node trust only these CAs. It refuses a bundle that does
// not trust this node itself.
func (s *CertificateStore) ReplaceBundle(bundlePEM []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.current.Load()
	keyPEM, err := old.keyPEM()
	if err != nil {
		return err
	}
	id, err := newIdentity(bundlePEM, encodeCert(old.leaf.Raw), keyPEM)
	if err != nil {
		return fmt.Errorf("check new bundle: %w", err)
	}
	if !id.trustsItself() {
		return api.Errorf(api.CodeState, "the new bundle does not contain the CA of this node's certificate").
			WithHint("renew the certificates of all nodes before the old CA is removed")
	}
	if err := atomicfile.WriteFile(filepath.Join(s.dir, bundleFile), encodeBundle(id.bundle), 0o600); err != nil {
		return err
	}
	s.publish(id)
	return nil
}

func (id *identity) keyPEM() ([]byte, error) {
	key, err := x509.MarshalPKCS8PrivateKey(id.cert.PrivateKey)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), nil
}

// Issued is a signer's answer.
type Issued struct {
	CertPEM   []byte `json:"certPem"`
	BundlePEM []byte `json:"bundlePem,omitempty"` // empty if the bundle does not change
}

// Signer sends a CSR (DER) to a node that may sign it.
type Signer func(ctx context.Context, csrDER []byte) (Issued, error)

// Renew obtains a certificate for a new key. If the answer is not valid, the node
// keeps what it has.
func (s *CertificateStore) Renew(ctx context.Context, sign Signer) error {
	keyPEM, csr, err := NewRequest()
	if err != nil {
		return err
	}
	issued, err := sign(ctx, csr)
	if err != nil {
		return fmt.Errorf("renew certificate of this node: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.current.Load()
	bundlePEM := issued.BundlePEM
	if len(bundlePEM) == 0 {
		bundlePEM = encodeBundle(old.bundle)
	}
	id, err := newIdentity(bundlePEM, issued.CertPEM, keyPEM)
	switch {
	case err != nil:
		return fmt.Errorf("check renewed certificate: %w", err)
	case id.cluster != old.cluster || id.node != old.node:
		return fmt.Errorf("the renewed certificate is for node %s of cluster %s, want node %s of cluster %s", id.node, id.cluster, old.node, old.cluster)
	case !id.trustsItself():
		return errors.New("the renewed certificate is not signed by a CA in the bundle")
	}
	if len(issued.BundlePEM) > 0 {
		if err := atomicfile.WriteFile(filepath.Join(s.dir, bundleFile), encodeBundle(id.bundle), 0o600); err != nil {
			return err
		}
	}
	if err := writeCertificate(s.dir, encodeCert(id.leaf.Raw), keyPEM); err != nil {
		return err
	}
	s.publish(id)
	return nil
}

// followEvery is the longest interval between two calls of follow.
const followEvery = 2 * time.Second

// Run renews the certificate when a third of its lifetime is left, and calls follow regularly,
// which may change the identity too, until ctx ends. It does one after the other. Failures are
// logged and retried.
func (s *CertificateStore) Run(ctx context.Context, sign Signer, follow func(context.Context) error, log *slog.Logger) {
	var tried, logged time.Time
	for {
		leaf := s.current.Load().leaf
		// Ten attempts fit between the first one and the expiry. The clock is read
		// each time, because it may have been set.
		pause := min(max(leaf.NotAfter.Sub(leaf.NotBefore)/30, time.Second), time.Hour)
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(pause, followEvery)):
		}
		if err := follow(ctx); err != nil && ctx.Err() == nil && time.Since(logged) > time.Minute {
			logged = time.Now()
			log.Warn("follow the cluster's CA failed, retrying", "error", err)
		}
		if s.now().Before(s.RenewAt()) || time.Since(tried) < pause {
			continue
		}
		tried = time.Now()
		if err := s.Renew(ctx, sign); err != nil && ctx.Err() == nil {
			log.Warn("renew certificate of this node failed", "error", err, "ends", s.Ends())
		}
	}
}
