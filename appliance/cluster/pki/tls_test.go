package pki

import (
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// shake performs a handshake over loopback. node is the client as the server
// identified it.
func shake(t *testing.T, server, client *tls.Config, who *CertificateStore) (node api.NodeID, serverErr, clientErr error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		raw, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			done <- err
			return
		}
		defer raw.Close()
		patience.Limit(t, time.Minute, raw)
		c := tls.Client(raw, client)
		if err = c.Handshake(); err == nil {
			_, err = c.Read(make([]byte, 1)) // the client's certificate is refused after its handshake
		}
		done <- err
	}()
	raw, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	patience.Limit(t, time.Minute, raw)
	s := tls.Server(raw, server)
	if serverErr = s.Handshake(); serverErr == nil {
		state := s.ConnectionState()
		if who != nil {
			node, serverErr = who.NodeOf(&state)
		}
		s.Write([]byte("x"))
	}
	raw.Close()
	return node, serverErr, <-done
}

const alpn = "basalt-test/1"

func TestHandshakes(t *testing.T) {
	now := time.Now()
	at := func(d time.Duration) Option { return WithClock(func() time.Time { return now.Add(d) }) }
	old := now.Add(-2 * NodeLifetime)
	ca, other, foreign := must(NewCA("basalt", old))(t), must(NewCA("basalt", old))(t), must(NewCA("foreign", old))(t)
	server := newStore(t, ca, nodeA, now, 0, at(0))
	certificates := func(ca CA, signed, clock time.Duration) *CertificateStore {
		return newStore(t, ca, nodeB, now.Add(signed), 0, at(clock))
	}
	for name, c := range map[string]struct {
		client *CertificateStore
		ok     bool
	}{
		"a member":                               {certificates(ca, 0, 0), true},
		"a clock an hour behind":                 {certificates(ca, 0, -time.Hour), true},
		"a clock an hour ahead":                  {certificates(ca, 0, time.Hour), true},
		"signed by a clock two hours ahead":      {certificates(ca, 2*time.Hour-time.Second, 0), true},
		"signed by a clock three hours ahead":    {certificates(ca, 3*time.Hour, 0), false},
		"expired half an hour ago":               {certificates(ca, -NodeLifetime-30*time.Minute, 0), true},
		"expired two hours ago":                  {certificates(ca, -NodeLifetime-2*time.Hour, 0), false},
		"a clock that thinks the server expired": {certificates(ca, 0, NodeLifetime+2*time.Hour), false},
		"another CA of the cluster's name":       {certificates(other, 0, 0), false},
		"another cluster":                        {certificates(foreign, 0, 0), false},
	} {
		node, serverErr, clientErr := shake(t, server.ServerConfig(true, alpn), c.client.ClientConfig(nodeA, alpn), server)
		if ok := serverErr == nil && clientErr == nil; ok != c.ok {
			t.Errorf("%s: got server error %v, client error %v", name, serverErr, clientErr)
		} else if ok && node != nodeB {
			t.Errorf("%s: the server identified %q, want %q", name, node, nodeB)
		}
		if !c.ok && !errors.Is(serverErr, ErrNotPeer) && !errors.Is(clientErr, ErrNotPeer) {
			t.Errorf("%s: got server error %v, client error %v, want ErrNotPeer", name, serverErr, clientErr)
		}
	}
	member := certificates(ca, 0, 0)
	refused := func(name string, server, client *tls.Config) {
		t.Helper()
		if _, serverErr, clientErr := shake(t, server, client, nil); serverErr == nil && clientErr == nil {
			t.Errorf("%s: the handshake succeeded, want an error", name)
		}
	}
	wants := server.ServerConfig(true, alpn)
	refused("another node than the expected", wants, member.ClientConfig(nodeB, alpn))
	refused("another protocol", wants, member.ClientConfig(nodeA, "basalt-other/1"))
	bare := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{alpn}}
	refused("no certificate", wants, bare)
	noALPN := member.ClientConfig(nodeA, alpn)
	noALPN.NextProtos, noALPN.VerifyConnection = nil, nil
	refused("no protocol", wants, noALPN)
	tls12 := member.ClientConfig(nodeA, alpn)
	tls12.MinVersion, tls12.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	refused("TLS 1.2", wants, tls12)
	// A CA's own certificate and key identify no node.
	root := must(tls.X509KeyPair(ca.CertPEM, ca.KeyPEM))(t)
	asCA := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{alpn}, Certificates: []tls.Certificate{root}}
	refused("the CA itself", wants, asCA)
	refused("a server of another cluster", certificates(foreign, 0, 0).ServerConfig(false, alpn), member.ClientConfig(nodeB, alpn))
}

func TestJoinPinsTheCA(t *testing.T) {
	now := time.Now()
	ca, second, foreign := must(NewCA("basalt", now))(t), must(NewCA("basalt", now))(t), must(NewCA("foreign", now))(t)
	token := must(NewToken("basalt", must(ca.Fingerprint())(t), []string{"127.0.0.1:1"}, "jtk-1"))(t)
	rotated := newStore(t, ca, nodeA, now, 0)
	if err := rotated.Renew(t.Context(), signer(second, nodeA, must(AddToBundle(ca.CertPEM, second.CertPEM))(t))); err != nil {
		t.Fatal(err)
	}
	// A server that presents the right CA but has a certificate from another one.
	liar := newStore(t, second, nodeA, now, 0)
	liarConf := liar.ServerConfig(false, alpn)
	liarConf.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		c := *liar.certificate()
		c.Certificate = append(c.Certificate[:1:1], must(parseBundle(ca.CertPEM))(t)[0].Raw)
		return &c, nil
	}
	for name, c := range map[string]struct {
		server *tls.Config
		ok     bool
	}{
		"the token's cluster":    {newStore(t, ca, nodeA, now, 0).ServerConfig(false, alpn), true},
		"a moment after init":    {newStore(t, ca, nodeA, now.Add(90*time.Minute), 0).ServerConfig(false, alpn), true},
		"another cluster":        {newStore(t, foreign, nodeA, now, 0).ServerConfig(false, alpn), false},
		"another CA":             {newStore(t, second, nodeA, now, 0).ServerConfig(false, alpn), false},
		"renewed with a new CA":  {rotated.ServerConfig(false, alpn), false},
		"a borrowed CA":          {liarConf, false},
		"no join protocol there": {newStore(t, ca, nodeA, now, 0).ServerConfig(false, "x"), false},
		"the API's port":         {newStore(t, ca, nodeA, now, 0).APIConfig(), false},
	} {
		_, serverErr, clientErr := shake(t, c.server, JoinClientConfig(token, alpn), nil)
		if (clientErr == nil) != c.ok {
			t.Errorf("%s: got server error %v, client error %v", name, serverErr, clientErr)
		}
	}
}

// TestAPIConfig checks that the certificate is valid for the names and addresses
// that the API's clients use. On the node itself, or through a forwarded port,
// these are the loopback's.
func TestAPIConfig(t *testing.T) {
	ca := must(NewCA("basalt", time.Now()))(t)
	k := newStore(t, ca, nodeA, time.Now(), 0)
	for name, ok := range map[string]bool{"host-a.example": true, "api.example": true, "192.0.2.1": true,
		"localhost": true, "127.0.0.1": true, "::1": true, "evil.example": false, "127.0.0.2": false} {
		client := &tls.Config{RootCAs: pool(must(parseBundle(ca.CertPEM))(t)), ServerName: name, NextProtos: []string{"h2"}}
		if _, serverErr, clientErr := shake(t, k.APIConfig(), client, nil); (clientErr == nil) != ok {
			t.Errorf("%s: got server error %v, client error %v", name, serverErr, clientErr)
		}
	}
}

// TestAEADsOnly checks that the API's port supports TLS 1.3, and TLS 1.2 with AEADs
// only.
func TestAEADsOnly(t *testing.T) {
	k := newStore(t, must(NewCA("basalt", time.Now()))(t), nodeA, time.Now(), 0)
	spoken := 0
	try := func(version uint16, suites []uint16, want bool, name string) {
		client := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}, MinVersion: version, MaxVersion: version, CipherSuites: suites}
		_, serverErr, clientErr := shake(t, k.APIConfig(), client, nil)
		if (clientErr == nil) != want {
			t.Errorf("%s: got server error %v, client error %v; want supported: %v", name, serverErr, clientErr, want)
		}
		if clientErr == nil {
			spoken++
		}
	}
	for _, version := range []uint16{tls.VersionTLS10, tls.VersionTLS11} {
		try(version, nil, false, tls.VersionName(version))
	}
	try(tls.VersionTLS12, nil, true, "TLS 1.2")
	try(tls.VersionTLS13, nil, true, "TLS 1.3")
	for _, s := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		aead := strings.Contains(s.Name, "GCM") || strings.Contains(s.Name, "POLY1305")
		forThisKey := strings.HasPrefix(s.Name, "TLS_ECDHE_ECDSA_")
		if slices.Contains(s.SupportedVersions, tls.VersionTLS12) {
			try(tls.VersionTLS12, []uint16{s.ID}, aead && forThisKey, s.Name)
		}
	}
	if spoken != 5 {
		t.Errorf("%d handshakes succeeded, want both versions and three suites", spoken)
	}
}

// TestAnyNode checks that AnyNodeConfig accepts any node of the cluster, and no
// other.
func TestAnyNode(t *testing.T) {
	now := time.Now()
	ca, foreign := must(NewCA("basalt", now))(t), must(NewCA("basalt", now))(t)
	member, node := newStore(t, ca, nodeB, now, 0), newStore(t, ca, nodeA, now, 0)
	if _, serverErr, clientErr := shake(t, node.APIConfig(), member.AnyNodeConfig(), nil); serverErr != nil || clientErr != nil {
		t.Errorf("node of the cluster: got server error %v, client error %v", serverErr, clientErr)
	}
	if _, _, clientErr := shake(t, newStore(t, foreign, nodeA, now, 0).APIConfig(), member.AnyNodeConfig(), nil); !errors.Is(clientErr, ErrNotPeer) {
		t.Errorf("node of another cluster: got error %v, want ErrNotPeer", clientErr)
	}
}
