package api

import "testing"

func TestPortInstance(t *testing.T) {
	for port, want := range map[string]InstanceID{
		PortName("ins-0a1b", 7): "ins-0a1b", "port-ins-1-0": "ins-1", "port--0": "", "port-ins-1-x": "", "ins-1-0": "", "port-ins-1-": "", "port-0": "",
	} {
		if got, ok := PortInstance(port); got != want || ok != (want != "") {
			t.Errorf("PortInstance(%s) = %q, %v; want %q, %v", port, got, ok, want, want != "")
		}
	}
}
