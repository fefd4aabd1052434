package main

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/testcert"
)

// writeCert writes a new certificate of a name and its key, with the modification time at.
func writeCert(t *testing.T, dir, name string, serial int64, at time.Time) testcert.Files {
	t.Helper()
	f := testcert.Write(t, dir, name, serial)
	if err := os.Chtimes(f.Cert, at, at); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestRenewedCertificate: a renewed certificate is served without a restart; while the files
// contain an unusable one, the old one is served.
func TestRenewedCertificate(t *testing.T) {
	const domain = "apps.example.com"
	dir, now := t.TempDir(), time.Now()
	files := writeCert(t, dir, "*."+domain, 1, now)
	f, err := openCert(files.Cert, files.Key, domain, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	f.now = func() time.Time { return now }
	want := func(what string, serial int64) {
		t.Helper()
		c, err := f.get(nil)
		if err != nil || c.Leaf.SerialNumber.Int64() != serial {
			t.Errorf("%s: certificate number %v, error %v, want number %d", what, c.Leaf.SerialNumber, err, serial)
		}
	}
	want("at first", 1)
	writeCert(t, dir, "*."+domain, 2, now.Add(time.Second))
	want("renewed, within the minute", 1)
	now = now.Add(2 * certCheckEvery)
	want("renewed", 2)
	writeCert(t, dir, "www.example.com", 3, now)
	now = now.Add(2 * certCheckEvery)
	want("of another name", 2)
	if err := os.Remove(files.Cert); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * certCheckEvery)
	want("removed", 2)
	writeCert(t, dir, "*."+domain, 4, now)
	now = now.Add(2 * certCheckEvery)
	want("there again", 4)
	writeCert(t, dir, "www.example.com", 5, now)
	if _, err := openCert(files.Cert, files.Key, domain, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "is not of *.apps.example.com") {
		t.Errorf("openCert with a certificate of another name: error %v, want one that it is not of *.%s", err, domain)
	}
}
