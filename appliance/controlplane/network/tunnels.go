package network

import (
	"cmp"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/sdn/wireguard"
)

// tunnels returns the next stage of the encryption of tunnels.
func (s *state) tunnels() wireguard.State {
	nodes := map[string]wireguard.Report{}
	for id, n := range s.nodes {
		if !lost(n) {
			nodes[id] = s.chassis[id].Status.Tunnels
		}
	}
	spec := s.security.Spec
	return wireguard.Decide(s.decisions().Tunnels, wireguard.Wanted{On: spec.EncryptTunnels, Rotation: spec.TunnelKeyRotation}, nodes)
}

// lost reports whether nothing waits for a node: one that is only suspected may still
// send and receive.
func lost(n api.Node) bool {
	return n.Assignment.State == api.NodeLost || n.Spec.Off || n.Meta.DeletedAt != nil
}

// Tunnels returns what a node has to do for the encryption of its tunnels: the stage, and
// the other nodes.
func Tunnels(s *objects.Set, self string) (wireguard.State, []wireguard.Peer) {
	chassis := objects.Map[Chassis](s)
	var peers []wireguard.Peer
	for id, n := range objects.Map[api.Node](s) {
		if id != self {
			peers = append(peers, wireguard.Peer{Node: id, Name: n.Meta.Name, Report: chassis[id].Status.Tunnels, Lost: lost(n)})
		}
	}
	slices.SortFunc(peers, func(a, b wireguard.Peer) int { return cmp.Compare(a.Node, b.Node) })
	return objects.Map[OVN](s)[ovnID].Spec.Tunnels, peers
}
