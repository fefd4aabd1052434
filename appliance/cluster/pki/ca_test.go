package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

const nodeA, nodeB = api.NodeID("node-00000000000a"), api.NodeID("node-00000000000b")

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func identityFor(node api.NodeID) NodeIdentity {
	return NodeIdentity{
		Cluster: "basalt", Node: node, Name: "host-a.example",
		IPs: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("127.0.0.1")}, DNS: []string{"api.example"},
	}
}

// TestSignTrustsOnlyTheKey checks that of a CSR only the key is used.
func TestSignTrustsOnlyTheKey(t *testing.T) {
	now := time.Now()
	ca := must(NewCA("basalt", now))(t)
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	csr := must(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "root", Organization: []string{"evil"}}, DNSNames: []string{"evil.example"},
		IPAddresses: []net.IP{net.IPv4(6, 6, 6, 6)}, URIs: []*url.URL{nodeURI("basalt", nodeB)},
	}, key))(t)
	leaf := must(parseLeaf(must(ca.Sign(csr, identityFor(nodeA), now, 0))(t)))(t)
	if cluster, node, err := identityOf(leaf); cluster != "basalt" || node != nodeA || err != nil {
		t.Errorf("certificate is for node %s of cluster %s: %v", node, cluster, err)
	}
	if !slices.Equal(leaf.DNSNames, []string{"api.example", "host-a.example", "localhost"}) || len(leaf.IPAddresses) != 3 || leaf.IsCA ||
		leaf.Subject.CommonName != "host-a" || len(leaf.Subject.Organization) > 0 {
		t.Errorf("certificate has subject %v, DNS names %v, addresses %v", leaf.Subject, leaf.DNSNames, leaf.IPAddresses)
	}
	if !key.PublicKey.Equal(leaf.PublicKey) {
		t.Error("certificate is for another key")
	}
	if d := now.Sub(leaf.NotBefore); d < 59*time.Minute || d > 61*time.Minute {
		t.Errorf("certificate is valid from %s before its signing, want one hour", d)
	}
	if d := leaf.NotAfter.Sub(now); d < NodeLifetime-time.Minute || d > NodeLifetime {
		t.Errorf("certificate is valid for %s, want %s", d, NodeLifetime)
	}
}

func TestSignRefuses(t *testing.T) {
	now := time.Now()
	ca := must(NewCA("basalt", now))(t)
	_, good, err := NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	request := func(key any) []byte {
		return must(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key))(t)
	}
	stolen := slices.Clone(good)
	stolen[len(stolen)-1] ^= 1
	_, edKey, _ := ed25519.GenerateKey(rand.Reader)
	with := func(change func(*NodeIdentity)) NodeIdentity {
		id := identityFor(nodeA)
		change(&id)
		return id
	}
	for name, c := range map[string]struct {
		csr []byte
		id  NodeIdentity
	}{
		"a key that is not the sender's": {stolen, identityFor(nodeA)},
		"no CSR":                         {[]byte("hello"), identityFor(nodeA)},
		"an empty CSR":                   {nil, identityFor(nodeA)},
		"a huge CSR":                     {make([]byte, maxCSR+1), identityFor(nodeA)},
		"a P-384 key":                    {request(must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))(t)), identityFor(nodeA)},
		"an Ed25519 key":                 {request(edKey), identityFor(nodeA)},
		"another cluster":                {good, with(func(id *NodeIdentity) { id.Cluster = "other" })},
		"a cluster with a slash":         {good, with(func(id *NodeIdentity) { id.Cluster = "a/b" })},
		"a node with a slash":            {good, with(func(id *NodeIdentity) { id.Node = "a/b" })},
		"no node":                        {good, with(func(id *NodeIdentity) { id.Node = "" })},
		"a name that is none":            {good, with(func(id *NodeIdentity) { id.Name = "a b" })},
		"a wildcard":                     {good, with(func(id *NodeIdentity) { id.DNS = []string{"*.example"} })},
		"too many names":                 {good, with(func(id *NodeIdentity) { id.DNS = slices.Repeat([]string{"a"}, maxAddresses+1) })},
		"an address with a zone":         {good, with(func(id *NodeIdentity) { id.IPs = []netip.Addr{netip.MustParseAddr("fe80::1%eth0")} })},
	} {
		if cert, err := ca.Sign(c.csr, c.id, now, 0); err == nil {
			t.Errorf("%s: signed certificate %s, want an error", name, cert)
		}
	}
	if _, err := ca.Sign(good, identityFor(nodeA), now.Add(CALifetime+2*time.Hour), 0); api.CodeOf(err) != api.CodeState {
		t.Errorf("expired CA: got error %v, want code state", err)
	}
	cert := must(parseLeaf(must(ca.Sign(good, identityFor(nodeA), now.Add(CALifetime-time.Hour), 0))(t)))(t)
	if root := must(parseBundle(ca.CertPEM))(t)[0]; cert.NotAfter.After(root.NotAfter) {
		t.Error("certificate expires after its CA")
	}
}

func TestBundle(t *testing.T) {
	now := time.Now()
	one, two, other := must(NewCA("basalt", now))(t), must(NewCA("basalt", now))(t), must(NewCA("other", now))(t)
	both := must(AddToBundle(one.CertPEM, two.CertPEM))(t)
	if again := must(AddToBundle(both, one.CertPEM))(t); !bytes.Equal(again, both) {
		t.Error("adding a CA twice changed the bundle")
	}
	_, csr, _ := NewRequest()
	leaf := must(one.Sign(csr, identityFor(nodeA), now, 0))(t)
	var many []byte
	for range maxCAs + 1 {
		many = append(many, must(NewCA("basalt", now))(t).CertPEM...)
	}
	for name, text := range map[string][]byte{
		"nothing": nil, "text": []byte("hello"), "a leaf": leaf, "a key": one.KeyPEM, "half": both[:len(both)-40],
		"two clusters": slices.Concat(one.CertPEM, other.CertPEM), "too many": many, "too large": make([]byte, maxBundle+1),
	} {
		if _, err := parseBundle(text); err == nil {
			t.Errorf("parsing a bundle of %s got no error", name)
		}
	}
}

func TestCheckClusterName(t *testing.T) {
	for _, bad := range []string{"", "-a", "a-", "A", "a.b", "a/b", "a b", string(bytes.Repeat([]byte("a"), 64))} {
		if err := CheckClusterName(bad); api.CodeOf(err) != api.CodeInvalid {
			t.Errorf("cluster name %q: got error %v, want code invalid", bad, err)
		}
	}
	if err := CheckClusterName("basalt-1"); err != nil {
		t.Error(err)
	}
}
