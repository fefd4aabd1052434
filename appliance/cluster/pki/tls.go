package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Skew is how far outside a certificate's validity this node's clock may be.
const Skew = time.Hour

// ErrNotPeer is wrapped by every error about a certificate that this cluster does
// not accept.
var ErrNotPeer = errors.New("not a node of this cluster")

// ServerConfig returns the configuration of a listener for these protocols (ALPN),
// in order of preference. A client that offers none of them is refused. With
// clientCert the client must be a node of this cluster.
func (s *CertificateStore) ServerConfig(clientCert bool, alpn ...string) *tls.Config {
	c := &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: alpn, SessionTicketsDisabled: true,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.certificate(), nil },
	}
	c.VerifyConnection = func(cs tls.ConnectionState) error {
		if cs.NegotiatedProtocol == "" {
			return errors.New("the client requests no protocol")
		}
		if !clientCert {
			return nil
		}
		_, err := s.verify(&cs, x509.ExtKeyUsageClientAuth)
		return err
	}
	if clientCert {
		c.ClientAuth = tls.RequireAnyClientCert // VerifyConnection checks it
	}
	return c
}

// ClientConfig returns the configuration for a connection to one node with one
// protocol.
func (s *CertificateStore) ClientConfig(expect api.NodeID, alpn string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{alpn},
		InsecureSkipVerify:   true, // VerifyConnection does it: see the package comment, Clocks
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return s.certificate(), nil },
		VerifyConnection: func(cs tls.ConnectionState) error {
			node, err := s.verify(&cs, x509.ExtKeyUsageServerAuth)
			switch {
			case err != nil:
				return err
			case node != expect:
				return fmt.Errorf("%w: got node %s, want %s", ErrNotPeer, node, expect)
			case cs.NegotiatedProtocol != alpn:
				return fmt.Errorf("%s does not support protocol %s", node, alpn)
			}
			return nil
		},
	}
}

// AnyNodeConfig returns the configuration for a connection to any node of the
// cluster, by a protocol without ALPN such as OVSDB.
func (s *CertificateStore) AnyNodeConfig() *tls.Config {
	return &tls.Config{
		MinVersion:           tls.VersionTLS12,
		InsecureSkipVerify:   true, // VerifyConnection does it
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return s.certificate(), nil },
		VerifyConnection: func(cs tls.ConnectionState) error {
			_, err := s.verify(&cs, x509.ExtKeyUsageServerAuth)
			return err
		},
	}
}

// Files returns the paths of the CA bundle, the certificate and its key, for
// programs that read them directly. The files are replaced atomically.
func Files(dir string) (bundle, cert, key string) {
	return filepath.Join(dir, bundleFile), filepath.Join(dir, certFile), filepath.Join(dir, keyFile)
}

// JoinClientConfig returns the configuration for a node that has only a token: it
// trusts any node with a certificate of the token's cluster from the token's CA.
func JoinClientConfig(t Token, alpn string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{alpn},
		InsecureSkipVerify: true, // VerifyConnection does it, with the token's CA
		VerifyConnection: func(cs tls.ConnectionState) error {
			if cs.NegotiatedProtocol != alpn {
				return errors.New("it does not accept joining nodes")
			}
			for i, ca := range cs.PeerCertificates {
				if i == 0 || fingerprint(ca) != t.CA {
					continue
				}
				// A CA that was created just now by a clock that is ahead counts as
				// valid.
				leaf := cs.PeerCertificates[0]
				cluster, _, err := verifyChain(leaf, pool(cs.PeerCertificates[i:i+1]), nearest(leaf, time.Now()), x509.ExtKeyUsageServerAuth)
				if err != nil {
					return err
				}
				if cluster != t.Cluster {
					return fmt.Errorf("%w: it belongs to cluster %s, want %s", ErrNotPeer, cluster, t.Cluster)
				}
				return nil
			}
			return fmt.Errorf("%w: its CA differs from the token's", ErrNotPeer)
		},
	}
}

// APIConfig returns the configuration of the API's port, with the same certificate
// and without client certificates. If the API's names and addresses are in the
// certificate, a client that has ca.pem trusts it.
func (s *CertificateStore) APIConfig() *tls.Config {
	c := ForBrowsers("h2", "http/1.1")
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.certificate(), nil }
	return c
}

// ForBrowsers returns a configuration for any client of the API's port: TLS 1.3,
// and TLS 1.2 only with forward secrecy and AEADs.
func ForBrowsers(protocols ...string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols, CipherSuites: []uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
		tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	}}
}

func (s *CertificateStore) certificate() *tls.Certificate { return &s.current.Load().cert }

// NodeOf returns the node that a connection belongs to. It verifies the certificate
// against the current bundle and clock.
func (s *CertificateStore) NodeOf(cs *tls.ConnectionState) (api.NodeID, error) {
	return s.verify(cs, x509.ExtKeyUsageAny)
}

func (s *CertificateStore) verify(cs *tls.ConnectionState, usage x509.ExtKeyUsage) (api.NodeID, error) {
	if len(cs.PeerCertificates) == 0 {
		return "", fmt.Errorf("%w: it has no certificate", ErrNotPeer)
	}
	leaf, id := cs.PeerCertificates[0], s.current.Load()
	cluster, node, err := verifyChain(leaf, id.roots, nearest(leaf, s.now()), usage)
	if err != nil {
		return "", err
	}
	if cluster != id.cluster {
		return "", fmt.Errorf("%w: it belongs to cluster %s, want %s", ErrNotPeer, cluster, id.cluster)
	}
	return node, nil
}

// nearest returns now, moved by at most Skew towards the certificate's validity.
func nearest(leaf *x509.Certificate, now time.Time) time.Time {
	if now.Before(leaf.NotBefore) {
		return earlier(now.Add(Skew), leaf.NotBefore)
	}
	return later(now.Add(-Skew), earlier(now, leaf.NotAfter))
}

func verifyChain(leaf *x509.Certificate, roots *x509.CertPool, when time.Time, usage x509.ExtKeyUsage) (cluster string, node api.NodeID, err error) {
	_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: when, KeyUsages: []x509.ExtKeyUsage{usage}})
	if err != nil {
		return "", "", fmt.Errorf("%w: %w", ErrNotPeer, err)
	}
	if leaf.IsCA {
		return "", "", fmt.Errorf("%w: it presented a CA certificate", ErrNotPeer)
	}
	if cluster, node, err = identityOf(leaf); err != nil {
		return "", "", fmt.Errorf("%w: %w", ErrNotPeer, err)
	}
	return cluster, node, nil
}
