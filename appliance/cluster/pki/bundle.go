package pki

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
)

// Fingerprint returns the SHA-256, in hex, of the DER of the first certificate in a
// PEM text.
func Fingerprint(certPEM []byte) (string, error) {
	certs, err := parseBundle(certPEM)
	if err != nil {
		return "", err
	}
	return fingerprint(certs[0]), nil
}

func fingerprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return hex.EncodeToString(sum[:])
}

// AddToBundle returns the bundle with the CAs of more appended, without duplicates.
func AddToBundle(bundlePEM, more []byte) ([]byte, error) {
	both, err := parseBundle(slices.Concat(bundlePEM, []byte("\n"), more))
	if err != nil {
		return nil, err
	}
	return encodeBundle(both), nil
}

// parseBundle parses 1 to maxCAs CAs of one cluster.
func parseBundle(text []byte) (certs []*x509.Certificate, err error) {
	if len(text) > maxBundle {
		return nil, fmt.Errorf("the bundle is larger than %d bytes", maxBundle)
	}
	cluster := ""
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		cert, err := caFrom(block)
		if err != nil {
			return nil, err
		}
		name, err := clusterOf(cert)
		if err != nil {
			return nil, err
		}
		if cluster != "" && name != cluster {
			return nil, fmt.Errorf("the bundle has CAs of two clusters, %s and %s", cluster, name)
		}
		cluster = name
		if slices.ContainsFunc(certs, cert.Equal) {
			continue
		}
		if certs = append(certs, cert); len(certs) > maxCAs {
			return nil, fmt.Errorf("the bundle has more than %d CAs", maxCAs)
		}
	}
	if rest := bytes.TrimSpace(text); len(rest) > 0 {
		return nil, errors.New("the bundle contains data other than certificates")
	}
	if len(certs) == 0 {
		return nil, errors.New("the bundle contains no certificate")
	}
	return certs, nil
}

func caFrom(block *pem.Block) (*x509.Certificate, error) {
	if block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("the bundle contains a %s", clip(block.Type))
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse certificate in the bundle: %w", err)
	}
	if !cert.IsCA {
		return nil, fmt.Errorf("the certificate of %s is not a CA certificate", clip(cert.Subject.CommonName))
	}
	return cert, nil
}

func encodeBundle(certs []*x509.Certificate) []byte {
	var b bytes.Buffer
	for _, c := range certs {
		b.Write(encodeCert(c.Raw))
	}
	return b.Bytes()
}

func pool(certs []*x509.Certificate) *x509.CertPool {
	p := x509.NewCertPool()
	for _, c := range certs {
		p.AddCert(c)
	}
	return p
}
