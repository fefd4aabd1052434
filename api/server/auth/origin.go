package auth

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

const forwardedFor = "X-Forwarded-For"

// maxForwarded is how many addresses of X-Forwarded-For are looked at.
const maxForwarded = 32

// BehindProxies makes requests that come from a trusted proxy appear to come
// from its client: RemoteAddr, which the audit trail, keys' networks and counts of
// wrong credentials go by. The client is the last address of X-Forwarded-For that
// is not a trusted proxy's, as everything to the left of it is what the client
// itself may have written. From anybody else the header is ignored; Forwarded
// (RFC 7239) always is: a proxy that writes one of them hands on what its client
// has written in the other.
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

// Originating is the request as if it came from an address, without a port;
// empty: from a unix socket.
func Originating(r *http.Request, address string) *http.Request {
	r = r.WithContext(r.Context()) // a copy
	if r.RemoteAddr = "@"; address != "" {
		r.RemoteAddr = net.JoinHostPort(address, "0")
	}
	return r
}

// clientBehind is the client of a request that a trusted proxy has sent. Where
// the header says nothing that can be read, that is the last proxy.
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

// forwardedAddress reads an address, which some proxies write with a port.
func forwardedAddress(s string) (netip.Addr, error) {
	ip, err := netip.ParseAddr(strings.Trim(s, "[]"))
	if err != nil {
		var ap netip.AddrPort
		ap, err = netip.ParseAddrPort(s)
		ip = ap.Addr()
	}
	return ip.Unmap().WithZone(""), err
}

// ClientAddress is whom a request comes from, without the port.
func ClientAddress(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}

// addressOf is whom a request comes from, as far as addresses tell: an IPv4
// address, or the /64 of an IPv6 one.
func addressOf(r *http.Request) string {
	ip, err := netip.ParseAddr(ClientAddress(r))
	if err != nil {
		return "local" // a unix socket
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	return netip.PrefixFrom(ip, 64).Masked().String()
}
