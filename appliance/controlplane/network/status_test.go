package network

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ovn/deploy"
)

// An external network that no node has an interface for is pending with the reason, and
// so are its routers.
func TestExternalNetworkWithoutACable(t *testing.T) {
	s := emptyState()
	s.projects["prj-1"] = api.Project{Meta: api.Meta{ID: "prj-1", Name: "shop"}}
	s.networks["net-1"] = api.Network{Meta: api.Meta{ID: "net-1", Project: "prj-1"}, Spec: api.NetworkSpec{Cidr4: "10.0.0.0/24"}, Assignment: api.NetworkAssignment{Key: 1, Gateway4: "10.0.0.1"}}
	s.external["ext-1"] = api.ExternalNetwork{Meta: api.Meta{ID: "ext-1"}, Spec: api.ExternalNetworkSpec{PhysicalNetwork: "campus", Cidr4: "203.0.113.0/24"}}
	s.routers["rtr-1"] = api.Router{Meta: api.Meta{ID: "rtr-1", Project: "prj-1"}, Spec: api.RouterSpec{ExternalNetwork: "ext-1"}, Assignment: api.RouterAssignment{Address4: "203.0.113.10"}}
	s.nodes["node-1"] = api.Node{Meta: api.Meta{ID: "node-1"}, Status: api.NodeStatus{Chassis: true}}
	phases := func(physical ...string) (api.ExternalNetworkStatus, api.RouterStatus) {
		t.Helper()
		s.chassis["node-1"] = Chassis{Meta: api.Meta{ID: "node-1"}, Status: Report{Report: deploy.Report{Chassis: true, Physical: physical}}}
		topology, problems := sdn.Intent(s.objects("c"))
		var x api.ExternalNetworkStatus
		var r api.RouterStatus
		for _, c := range statuses(s, topology, sdn.State{}, problems) {
			var err error
			switch c.Kind {
			case api.KindExternalNetwork:
				err = json.Unmarshal(c.Data, &x)
			case api.KindRouter:
				err = json.Unmarshal(c.Data, &r)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		return x, r
	}
	for _, physical := range [][]string{nil, {"external"}} {
		x, r := phases(physical...)
		if x.Phase != api.NetworkPending || !strings.Contains(x.LastError, "campus") || r.Phase != api.NetworkPending || r.LastError != x.LastError {
			t.Errorf("with interfaces %v: external network %+v, router %+v; want both pending with the reason", physical, x, r)
		}
	}
	if x, r := phases("campus", "external"); x.Phase != api.NetworkReady || x.LastError != "" || r.Phase != api.NetworkReady || r.LastError != "" {
		t.Errorf("with an interface: external network %+v, router %+v; want both ready", x, r)
	}
}
