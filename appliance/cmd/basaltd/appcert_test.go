package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writeCert writes a new certificate of a name and its key.
func writeCert(t *testing.T, dir, name string, serial int64, at time.Time) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(serial), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, c, c, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, b := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: raw}, key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// A certificate that is renewed is served without a restart; one that cannot be used is
// not, and the old one stays.
func TestRenewedCertificate(t *testing.T) {
	const domain = "apps.example.com"
	dir, now := t.TempDir(), time.Now()
	cert, key := writeCert(t, dir, "*."+domain, 1, now)
	f, err := openCert(cert, key, domain, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	f.now = func() time.Time { return now }
	want := func(what string, serial int64) {
		t.Helper()
		c, err := f.get(nil)
		if err != nil || c.Leaf.SerialNumber.Int64() != serial {
			t.Errorf("%s: got certificate %v, %v, want number %d", what, c.Leaf.SerialNumber, err, serial)
		}
	}
	want("at first", 1)
	writeCert(t, dir, "*."+domain, 2, now.Add(time.Second))
	want("renewed, within the minute", 1)
	now = now.Add(2 * certLook)
	want("renewed", 2)
	writeCert(t, dir, "www.example.com", 3, now)
	now = now.Add(2 * certLook)
	want("of another name", 2)
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * certLook)
	want("removed", 2)
	writeCert(t, dir, "*."+domain, 4, now)
	now = now.Add(2 * certLook)
	want("there again", 4)
	writeCert(t, dir, "www.example.com", 5, now)
	if _, err := openCert(cert, key, domain, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "is not of *.apps.example.com") {
		t.Errorf("a start with another name: got %v, want that it is not of *.%s", err, domain)
	}
}
