package api

import "testing"

func TestNodeSpecs(t *testing.T) {
	for _, c := range []struct {
		spec  NodeSpec
		field string
	}{
		{NodeSpec{}, ""},
		{NodeSpec{ReservedCPUs: maxReservedCPUs, APIAddress: "192.0.2.1:7480"}, ""},
		{NodeSpec{ReservedCPUs: -1}, "spec.reservedCpus"},
		{NodeSpec{ReservedCPUs: maxReservedCPUs + 1}, "spec.reservedCpus"},
		{NodeSpec{PeerAddresses: []string{"192.0.2.1"}}, "spec.peerAddresses"},
	} {
		bad(t, "node", ValidateNode(c.spec), c.field)
	}
	old := NodeSpec{PeerAddresses: []string{"192.0.2.1:7481"}, APIAddress: "192.0.2.1:7480", ReservedCPUs: 1}
	got, err := ChangeNode(old, NodeSpec{ReservedCPUs: 4})
	if err != nil || got.ReservedCPUs != 4 || got.APIAddress != old.APIAddress {
		t.Errorf("ChangeNode = %+v, %v; want 4 reserved CPUs, and the node's own addresses", got, err)
	}
}
