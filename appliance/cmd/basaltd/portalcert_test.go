package main

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/appliance/test/kit/testcert"
)

// portal returns a host name with a new certificate.
func portal(t *testing.T, id, name string, serial int64) api.PortalDomain {
	t.Helper()
	f := testcert.Write(t, t.TempDir(), name, serial)
	read := func(path string) string {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	return api.PortalDomain{Kind: api.KindPortalDomain, Meta: api.Meta{ID: id, Name: name}, Spec: api.PortalDomainSpec{Approved: true, Certificate: read(f.Cert), Key: "sealed:" + read(f.Key)}}
}

// presented returns the serial number of the certificate that a client gets for a name.
func presented(t *testing.T, conf *tls.Config, name string) int64 {
	t.Helper()
	here, there := net.Pipe()
	defer here.Close() // without an alert of TLS, which nobody would read
	defer there.Close()
	server := tls.Server(there, conf)
	done := make(chan error, 1)
	go func() { done <- server.HandshakeContext(t.Context()) }()
	client := tls.Client(here, &tls.Config{ServerName: name, InsecureSkipVerify: true})
	if err := client.HandshakeContext(t.Context()); err != nil {
		t.Fatalf("connect to %q: %v", name, err)
	}
	if err := <-done; err != nil {
		t.Fatalf("accept a connection to %q: %v", name, err)
	}
	return client.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// TestPortalCertificates checks that a client gets the certificate of the name that it asks
// for if that is approved and valid, and the cluster's otherwise.
func TestPortalCertificates(t *testing.T) {
	broken := false
	certs := newPortalCerts(func(_ context.Context, sealed string) (string, error) {
		if broken {
			return "", errors.New("no majority")
		}
		return sealed[len("sealed:"):], nil
	}, slog.New(slog.DiscardHandler))
	own := testcert.Write(t, t.TempDir(), "cloud.example.com", 1)
	pair, err := tls.LoadX509KeyPair(own.Cert, own.Key)
	if err != nil {
		t.Fatal(err)
	}
	byFile := certs.beside(&tls.Config{Certificates: []tls.Certificate{pair}})
	byStore := certs.beside(&tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }})
	want := func(what, name string, serial int64) {
		t.Helper()
		for _, conf := range []*tls.Config{byFile, byStore} {
			if got := presented(t, conf, name); got != serial {
				t.Errorf("%s: certificate of %q has number %d, want %d", what, name, got, serial)
			}
		}
	}
	change := func(was, now any, id string) {
		certs.follow(watchcache.Update{Changes: []objects.Change{{Kind: api.KindPortalDomain, ID: id, Was: was, Now: now}}})
	}
	want("before any", "portal.top.example", 1)
	a, b := portal(t, "pdom-a", "portal.top.example", 2), portal(t, "pdom-b", "portal.mid.example", 3)
	certs.follow(watchcache.Update{All: true, Changes: []objects.Change{{ID: "pdom-a", Now: a}, {ID: "pdom-b", Now: b}}})
	broken = true
	want("keys cannot be opened", "portal.top.example", 1)
	broken = false
	want("two", "portal.top.example", 2)
	want("two", "portal.mid.example", 3)
	for _, name := range []string{"", "cloud.example.com", "x.portal.top.example", "top.example"} {
		want("another name", name, 1)
	}
	waiting := portal(t, "pdom-c", "portal.top.example", 4)
	waiting.Spec.Approved = false
	change(nil, waiting, "pdom-c")
	want("requested by another", "portal.top.example", 2)
	renewed := portal(t, "pdom-a", "portal.top.example", 5)
	change(a, renewed, "pdom-a")
	want("renewed", "portal.top.example", 5)
	certs.now = func() time.Time { return time.Now().AddDate(100, 0, 0) }
	want("expired", "portal.top.example", 1)
	certs.now = time.Now
	change(renewed, nil, "pdom-a")
	want("deleted", "portal.top.example", 1)
	want("still there", "portal.mid.example", 3)
}
