// Package passkey creates challenges of Web Authentication Level 3 and verifies the
// responses of authenticators: https://www.w3.org/TR/webauthn-3/. It is stateless: the
// caller stores keys, and ensures that a challenge expires and is used once.
package passkey

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"

	"github.com/go-webauthn/webauthn/protocol"
)

// Site identifies the portal for browsers: passkeys are created for its name (the
// relying party ID, section 5.4.2), and work only on pages of its origin.
type Site struct {
	Name   string // e.g. cloud.example.com
	Origin string // e.g. https://cloud.example.com:8443
}

// SiteOf returns the site of the portal's URL. Browsers create no passkeys for IP
// addresses, and none without TLS except for localhost.
func SiteOf(portal string) (Site, error) {
	if portal == "" {
		return Site{}, errors.New("the cluster does not know the name of its portal")
	}
	u, err := url.Parse(portal)
	if err != nil {
		return Site{}, errors.New("the portal's address is not valid")
	}
	name := strings.ToLower(u.Hostname())
	if _, err := netip.ParseAddr(name); err == nil {
		return Site{}, errors.New("the portal has an IP address and no name")
	}
	local := name == "localhost" || strings.HasSuffix(name, ".localhost")
	if u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return Site{}, errors.New("the portal's address does not begin with https://")
	}
	if err := protocol.ValidateRPID(name); err != nil || name == "" {
		return Site{}, errors.New("the portal's name is not a valid domain")
	}
	origin := u.Scheme + "://" + name
	if port := u.Port(); port != "" && (u.Scheme != "https" || port != "443") && (u.Scheme != "http" || port != "80") {
		origin += ":" + port
	}
	return Site{Name: name, Origin: origin}, nil
}
