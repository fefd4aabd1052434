package main

import (
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/appliance/controlplane/network"
)

// tracer returns the tracer of packets through the network, or nil without a network.
func (n *node) tracer() server.Tracer {
	if n.network == nil {
		return nil
	}
	f := n.network
	return &network.Tracer{Store: n.store, Cluster: n.clusterName(), Self: f.self, TLS: f.node.TLS, Run: f.paths.Run}
}
