package pki

import (
	"crypto/x509"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

const uriScheme = "basalt"

var (
	clusterPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	nodePattern    = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	labelPattern   = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$`)
)

// maxAddresses is the maximum number of names, and of addresses, in a certificate.
const maxAddresses = 32

// NodeIdentity is what a certificate states about a node. The signer takes it from
// the store, never from the node's request.
type NodeIdentity struct {
	Cluster string
	Node    api.NodeID
	Name    string       // the machine's name; also a DNS name of the certificate
	IPs     []netip.Addr // addresses of its API
	DNS     []string     // further names of its API
}

// CheckClusterName returns an error if the name is not valid for a cluster. The
// name is part of the URI in every certificate.
func CheckClusterName(name string) error {
	if !clusterPattern.MatchString(name) {
		return api.Errorf(api.CodeInvalid, "%q is not a valid cluster name", clip(name)).
			WithHint("1 to 63 lower-case letters, digits and dashes, not beginning or ending with a dash").At("cluster")
	}
	return nil
}

func (id NodeIdentity) check() error {
	if err := CheckClusterName(id.Cluster); err != nil {
		return err
	}
	switch {
	case !nodePattern.MatchString(string(id.Node)):
		return api.Errorf(api.CodeInvalid, "%q is not a node ID", clip(string(id.Node))).At("node")
	case !isDNSName(id.Name):
		return api.Errorf(api.CodeInvalid, "%q is not a valid node name", clip(id.Name)).WithHint("want a host name").At("name")
	case len(id.IPs) > maxAddresses || len(id.DNS) > maxAddresses:
		return api.Errorf(api.CodeInvalid, "a node has at most %d addresses and as many names", maxAddresses)
	}
	for _, ip := range id.IPs {
		if !ip.IsValid() || ip.Zone() != "" {
			return api.Errorf(api.CodeInvalid, "%q is not an address that a certificate can contain", ip).At("ips")
		}
	}
	for _, name := range id.DNS {
		if !isDNSName(name) {
			return api.Errorf(api.CodeInvalid, "%q is not a valid host name", clip(name)).At("dns")
		}
	}
	return nil
}

func isDNSName(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if !labelPattern.MatchString(label) {
			return false
		}
	}
	return true
}

// clip limits the length of untrusted text in messages.
func clip(s string) string {
	if len(s) > 64 {
		return s[:61] + "..."
	}
	return s
}

func nodeURI(cluster string, node api.NodeID) *url.URL {
	return &url.URL{Scheme: uriScheme, Host: cluster, Path: "/node/" + string(node)}
}

func caURI(cluster string) *url.URL {
	return &url.URL{Scheme: uriScheme, Host: cluster, Path: "/ca"}
}

// identityOf reads the node's URI. A certificate without a URI, or with more than
// one, identifies no node.
func identityOf(cert *x509.Certificate) (cluster string, node api.NodeID, err error) {
	if len(cert.URIs) != 1 {
		return "", "", fmt.Errorf("the certificate has %d URIs, want one", len(cert.URIs))
	}
	u := cert.URIs[0]
	id, ok := strings.CutPrefix(u.Path, "/node/")
	if !ok || !clusterPattern.MatchString(u.Host) || !nodePattern.MatchString(id) ||
		u.String() != nodeURI(u.Host, api.NodeID(id)).String() {
		return "", "", fmt.Errorf("%q does not name a node", clip(u.String()))
	}
	return u.Host, api.NodeID(id), nil
}

// clusterOf reads the cluster's name from its CA.
func clusterOf(ca *x509.Certificate) (string, error) {
	if len(ca.URIs) != 1 || ca.URIs[0].String() != caURI(ca.URIs[0].Host).String() || !clusterPattern.MatchString(ca.URIs[0].Host) {
		return "", fmt.Errorf("%q is not the CA of a cluster", clip(ca.Subject.CommonName))
	}
	return ca.URIs[0].Host, nil
}
