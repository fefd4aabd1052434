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

	"golang.org/x/crypto/acme"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
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
func presented(t *testing.T, conf *tls.Config, name string, protocols ...string) int64 {
	t.Helper()
	here, there := net.Pipe()
	defer here.Close() // without an alert of TLS, which nobody would read
	defer there.Close()
	server := tls.Server(there, conf)
	done := make(chan error, 1)
	go func() { done <- server.HandshakeContext(t.Context()) }()
	client := tls.Client(here, &tls.Config{ServerName: name, InsecureSkipVerify: true, NextProtos: protocols})
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
	certs := newPortalCerts(memstore.New(), func(_ context.Context, sealed string) (string, error) {
		if broken {
			return "", errors.New("no majority")
		}
		return sealed[len("sealed:"):], nil
	}, false, slog.New(slog.DiscardHandler))
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

// issued returns a requested certificate.
func issued(t *testing.T, name string, serial int64) api.CertificateStatus {
	t.Helper()
	d := portal(t, "", name, serial)
	return api.CertificateStatus{HostName: name, Certificate: d.Spec.Certificate, Key: d.Spec.Key}
}

// TestRequestedCertificates checks that a stored certificate is preferred to a requested one as
// long as it is valid, and a file to the requested one of the cluster's portal.
func TestRequestedCertificates(t *testing.T) {
	open := func(_ context.Context, sealed string) (string, error) {
		if len(sealed) < len("sealed:") {
			return "", errors.New("not sealed")
		}
		return sealed[len("sealed:"):], nil
	}
	file := testcert.Write(t, t.TempDir(), "cloud.example.com", 1)
	pair, err := tls.LoadX509KeyPair(file.Cert, file.Key)
	if err != nil {
		t.Fatal(err)
	}
	d := portal(t, "pdom-a", "portal.top.example", 2)
	both := d
	both.Status = issued(t, "portal.top.example", 3)
	requested := both
	requested.Spec.Certificate, requested.Spec.Key = "", ""
	damaged := both
	damaged.Spec.Key = "x"
	taken := portal(t, "pdom-b", "cloud.example.com", 6) // approved before it became the cluster's
	own := api.StoredACMESettings{Meta: api.Meta{ID: api.ACMECertificateID}, Status: issued(t, "cloud.example.com", 4)}
	for _, ownFile := range []bool{false, true} {
		certs := newPortalCerts(memstore.New(), open, ownFile, slog.New(slog.DiscardHandler))
		conf := certs.beside(&tls.Config{Certificates: []tls.Certificate{pair}})
		want := func(what string, now api.PortalDomain, name string, serial int64) {
			t.Helper()
			certs.follow(watchcache.Update{All: true, Changes: []objects.Change{{ID: "pdom-a", Now: now}, {ID: own.Meta.ID, Now: own}}})
			if got := presented(t, conf, name); got != serial {
				t.Errorf("%s, file %t: certificate of %q has number %d, want %d", what, ownFile, name, got, serial)
			}
		}
		want("stored", d, "portal.top.example", 2)
		want("stored and requested", both, "portal.top.example", 2)
		want("requested", requested, "portal.top.example", 3)
		want("the stored one cannot be opened", damaged, "portal.top.example", 3)
		if ownFile {
			want("the cluster's", d, "cloud.example.com", 1)
			continue
		}
		want("the cluster's", d, "cloud.example.com", 4)
		certs.follow(watchcache.Update{Changes: []objects.Change{{ID: "pdom-b", Now: taken}}})
		if got := presented(t, conf, "cloud.example.com"); got != 4 {
			t.Errorf("a reseller's certificate %d is presented for the cluster's name, want 4", got)
		}
	}
}

// TestChallengesAreAnsweredByAnyNode checks that a node presents the certificate of a challenge
// that is in the store, to authorities only.
func TestChallengesAreAnsweredByAnyNode(t *testing.T) {
	store := memstore.New()
	put := func(op api.Op, id string, data any) {
		t.Helper()
		if _, err := store.Apply(t.Context(), api.Batch{At: time.Now(), Commands: []api.Command{{Op: op, Kind: api.KindACMESettings, ID: id, Name: id, Expect: api.AnyRevision, Data: api.Encode(data)}}}); err != nil {
			t.Fatal(err)
		}
	}
	answer := issued(t, "cloud.example.com", 7)
	put(api.OpPutSpec, api.ACMECertificateID, struct{}{})
	put(api.OpReport, api.ACMECertificateID, api.CertificateStatus{HostName: "cloud.example.com", ChallengeCertificate: answer.Certificate, ChallengeKey: answer.Key})
	file := testcert.Write(t, t.TempDir(), "cloud.example.com", 1)
	pair, err := tls.LoadX509KeyPair(file.Cert, file.Key)
	if err != nil {
		t.Fatal(err)
	}
	certs := newPortalCerts(store, func(_ context.Context, sealed string) (string, error) { return sealed[len("sealed:"):], nil }, false, slog.New(slog.DiscardHandler))
	conf := certs.beside(&tls.Config{Certificates: []tls.Certificate{pair}})
	if got := presented(t, conf, "cloud.example.com"); got != 1 {
		t.Errorf("a browser gets certificate %d, want 1", got)
	}
	if got := presented(t, conf, "cloud.example.com", acme.ALPNProto); got != 7 {
		t.Errorf("an authority gets certificate %d, want 7", got)
	}
}
