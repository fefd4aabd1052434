package api

import (
	"strconv"
	"strings"
)

// PortName returns the name of the n-th network card of an instance, as the agent, OVN
// and Open vSwitch use it. It is in lower case because libvirt converts it to that.
func PortName(instance InstanceID, n int) string {
	return "port-" + strings.ToLower(string(instance)) + "-" + strconv.Itoa(n)
}

// PortInstance returns the instance that a port belongs to; false if PortName did not
// make the name.
func PortInstance(port string) (InstanceID, bool) {
	rest, ok := strings.CutPrefix(port, "port-")
	cut := strings.LastIndexByte(rest, '-')
	if !ok || cut < 1 {
		return "", false
	}
	if _, err := strconv.ParseUint(rest[cut+1:], 10, 8); err != nil {
		return "", false
	}
	return InstanceID(rest[:cut]), true
}
