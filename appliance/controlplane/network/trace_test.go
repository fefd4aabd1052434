package network

import (
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/sdn/ovn/deploy"
)

// A packet can be traced by the objects alone; the result reports that OVN was
// not queried.
func TestTrace(t *testing.T) {
	h := cluster{t: t, store: memstore.New()}
	r := &Tracer{Store: h.store, Cluster: "c", Self: deploy.Member{Node: "node-1"}, Run: t.TempDir()}
	h.put(api.KindProject, "prj-1", api.ProjectSpec{})
	h.put(api.KindNetwork, "net-1", api.NetworkSpec{Cidr4: "10.0.0.0/24"})
	h.apply(api.Command{Op: api.OpAssign, Kind: api.KindNetwork, ID: "net-1", Expect: api.AnyRevision, Data: api.Encode(api.NetworkAssignment{Key: 1, Gateway4: "10.0.0.1"})})
	h.put(api.KindSecurityGroup, "sg-1", api.SecurityGroupSpec{Rules: []api.SecurityRule{
		{Direction: api.Egress, Protocol: api.ProtocolAny}, {Direction: api.Ingress, Protocol: api.ProtocolTCP, Ports: "443"}}})
	for i, id := range []string{"ins-1", "ins-2"} {
		h.put(api.KindInstance, id, api.InstanceSpec{Networks: []api.InstanceNetwork{{Network: "net-1", SecurityGroups: []api.SecurityGroupID{"sg-1"}}}})
		h.apply(api.Command{Op: api.OpAssign, Kind: api.KindInstance, ID: id, Expect: api.AnyRevision, Data: api.Encode(api.InstanceAssignment{Node: "node-1",
			Ports: []api.InstancePort{{Network: "net-1", Mac: "06:00:00:00:00:0" + id[4:], Address4: []string{"10.0.0.5", "10.0.0.6"}[i]}}})})
	}
	q := api.TraceQuestion{Project: "prj-1", From: api.TraceEnd{Instance: "ins-1"}, To: api.TraceEnd{Instance: "ins-2"}, Packet: "tcp/443"}
	for packet, passes := range map[string]bool{"tcp/443": true, "tcp/22": false} {
		q.Packet = packet
		got, err := r.Trace(t.Context(), q)
		if text := strings.Join(got.Lines, "\n"); err != nil || got.Passes != passes || !strings.Contains(text, "OVN was not queried: the OVN databases are not ready yet") {
			t.Errorf("trace of %s: %v, passes %t, want %t:\n%s", packet, err, got.Passes, passes, text)
		}
	}
	// If a database does not respond, the trace still has the objects' result.
	h.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindOVN, ID: ovnID, Name: ovnID, Expect: api.AnyRevision, Data: api.Encode(deploy.Bootstrap{Generation: 1, NB: "x", SB: "y"})})
	if got, err := r.Trace(t.Context(), q); err != nil || !strings.Contains(strings.Join(got.Lines, "\n"), "OVN was not queried: ovn-trace") {
		t.Errorf("trace with an unreachable database = %+v, %v; want the result with the reason", got, err)
	}
	q.Project = "prj-2"
	if _, err := r.Trace(t.Context(), q); api.CodeOf(err) != api.CodeState {
		t.Errorf("trace by another project: %v, want code %s", err, api.CodeState)
	}
}
