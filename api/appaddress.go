package api

import (
	"fmt"
	"strings"
)

// ForwardedDomain is the domain of apps in a cluster without an app gateway, where
// their ports are forwarded by ssh to the user's own computer: browsers resolve all
// names below localhost to it (RFC 6761, section 6.3).
const ForwardedDomain = "localhost"

// AppHost returns the host name of a port of an instance below a domain. It is
// different for each port, because browsers separate cookies by host.
func AppHost(instance InstanceID, port uint16, domain string) string {
	_, random, _ := strings.Cut(string(instance), "-")
	return fmt.Sprintf("%d-%s.%s", port, random, domain)
}

// ForwardedPort returns the port of the user's computer that is forwarded to a port of
// an instance: the same one, or one that all users may listen on.
func ForwardedPort(port uint16) uint16 {
	if port < 1024 {
		return 8000 + port
	}
	return port
}

// ForwardedApp returns the URL of a port of an instance that is forwarded to a port of
// the user's computer.
func ForwardedApp(instance InstanceID, port, local uint16) string {
	return fmt.Sprintf("http://%s:%d/", AppHost(instance, port, ForwardedDomain), local)
}
