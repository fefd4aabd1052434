package appgateway

import (
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// Target is a port of an instance.
type Target struct {
	Instance api.InstanceID
	Port     uint16
}

// label matches the first label of a host name: the port, and the ID without its
// prefix.
var label = regexp.MustCompile(`^([1-9][0-9]{0,4})-([0-9a-f]{12})$`)

// hostOf returns the host name of a port of an instance below domain.
func hostOf(t Target, domain string) string { return api.AppHost(t.Instance, t.Port, domain) }

// parseHost parses the Host of a request, with or without a port.
func parseHost(host, domain string) (Target, bool) {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	first, rest, _ := strings.Cut(strings.ToLower(strings.TrimSuffix(host, ".")), ".")
	m := label.FindStringSubmatch(first)
	if m == nil || rest != domain {
		return Target{}, false
	}
	port, err := strconv.ParseUint(m[1], 10, 16)
	if err != nil {
		return Target{}, false
	}
	return Target{api.InstanceID(api.KindInstance.Info().IDPrefix + "-" + m[2]), uint16(port)}, true
}

// ParseDomain returns the normalized domain of the gateway, and whether it is
// valid.
func ParseDomain(s string) (domain string, ok bool) {
	s = strings.ToLower(strings.TrimSuffix(s, "."))
	return s, len(s) <= 200 && domainName.MatchString(s)
}

var domainName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)+$`)
