package auth

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

const forwardedFor = "X-Forwarded-For"

// maxForwarded limits the addresses in X-Forwarded-For that are examined.
const maxForwarded = 32

// BehindProxies sets RemoteAddr of requests from a trusted proxy to the proxy's client;
// the audit log, the networks of keys and the counts of wrong credentials use it. The
// client is the last address in X-Forwarded-For that is not a trusted proxy's, since
// the client itself may have written everything to the left of it. The header is
// ignored from anybody else, and Forwarded (RFC 7239) always: a proxy that sets one of
// them passes on what its client has written in the other.
func BehindProxies(trusted []netip.Prefix, next http.Handler) http.Handler {
	if len(trusted) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if client, ok := clientBehind(trusted, r); ok {
			r = Originating(r, client)
		}
		next.ServeHTTP(w, r)
	})
}

// Originating returns the request with an address, without a port, as its client; empty
// means a Unix socket.
func Originating(r *http.Request, address string) *http.Request {
	r = r.WithContext(r.Context()) // a copy
	if r.RemoteAddr = "@"; address != "" {
		r.RemoteAddr = net.JoinHostPort(address, "0")
	}
	return r
}

// clientBehind returns the client of a request that a trusted proxy has sent. If the
// header cannot be parsed, that is the last proxy.
func clientBehind(trusted []netip.Prefix, r *http.Request) (client string, ok bool) {
	isProxy := func(ip netip.Addr) bool {
		return slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(ip) })
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	at := from.Addr().Unmap().WithZone("")
	if err != nil || !isProxy(at) {
		return "", false
	}
	hops := strings.Split(strings.Join(r.Header.Values(forwardedFor), ","), ",")
	for i := len(hops) - 1; i >= max(0, len(hops)-maxForwarded) && isProxy(at); i-- {
		ip, err := forwardedAddress(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		at = ip
	}
	return at.String(), true
}

// forwardedAddress parses an address, which some proxies write with a port.
func forwardedAddress(s string) (netip.Addr, error) {
	ip, err := netip.ParseAddr(strings.Trim(s, "[]"))
	if err != nil {
		var ap netip.AddrPort
		ap, err = netip.ParseAddrPort(s)
		ip = ap.Addr()
	}
	return ip.Unmap().WithZone(""), err
}

// ClientAddress returns the address of the client, without the port.
func ClientAddress(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}

// addressOf returns what the client is counted by: its IPv4 address, or the /64 of its
// IPv6 address.
func addressOf(r *http.Request) string {
	ip, err := netip.ParseAddr(ClientAddress(r))
	if err != nil {
		return "local" // a Unix socket
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	return netip.PrefixFrom(ip, 64).Masked().String()
}
