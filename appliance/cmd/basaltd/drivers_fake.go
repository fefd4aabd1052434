//go:build basalt_fake

package main

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/hypervisor/fake"
	sdnfake "github.com/basalt-gpu/basalt/sdn/fake"
	"github.com/basalt-gpu/basalt/sdn/ovn/deploy"
)

// Virtual machines and networks in memory, which end with basaltd, are for tests of the
// surrounding parts and for developers of the portal: go build -tags basalt_fake, --libvirt
// fake: and --network fake.
func init() {
	hypervisors["fake:"] = func() hypervisor.Driver { return fake.New(fake.Guest{}) }
	networks["fake"] = func(id api.NodeID) pretended {
		n := sdnfake.New()
		return pretended{stepper: works{}, chassis: n.Chassis(id), controller: n.Controller()}
	}
}

// works is the OVN of a node, always in order.
type works struct{}

// Step implements nodenetwork.Stepper.
func (works) Step(_ context.Context, i deploy.Intent) (deploy.Report, error) {
	db := deploy.DatabaseReport{Cluster: "pretended", Settled: true, Leads: true}
	return deploy.Report{Generation: i.Bootstrap.Generation, NB: db, SB: db, Chassis: true, Datapath: deploy.Netdev, Physical: []string{"external"}}, nil
}
