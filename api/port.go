package api

import (
	"strconv"
	"strings"
)

// PortName is what the n-th network card of an instance is called everywhere:
// by the agent, in OVN, in Open vSwitch. Lower case, because libvirt makes it
// so.
func PortName(instance InstanceID, n int) string {
	return "port-" + strings.ToLower(string(instance)) + "-" + strconv.Itoa(n)
}

// PortInstance is whose card it is; false for what PortName did not make.
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
