package network

import (
	"context"
	"errors"

	"github.com/basalt-gpu/basalt/appliance/controlplane/network"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/sdn/ovn/deploy"
	"github.com/basalt-gpu/basalt/sdn/wireguard"
)

// Encrypter is implemented by wireguard.Node: it carries out a stage of the encryption of
// tunnels as far as possible.
type Encrypter interface {
	Step(ctx context.Context, i wireguard.Intent) wireguard.Report
}

// encryption is a stage and what the node has carried out of it.
type encryption struct {
	state   wireguard.State
	report  wireguard.Report
	waiting string // why not all other nodes are connected
}

// settled reports whether nothing is to be done until something changes.
func (e encryption) settled() bool {
	return e.waiting == "" && (!e.state.On() || e.state.Stage() == wireguard.Encrypted)
}

// broken returns why no instance with ports can run on the node, or "".
func (e encryption) broken() string {
	if e.state.Send == 0 || e.report.Problem == "" {
		return ""
	}
	return "tunnels cannot be encrypted: " + e.report.Problem
}

// encrypt carries out the present stage of the encryption of tunnels.
func (n *Node) encrypt(ctx context.Context, s *objects.Set) encryption {
	if n.Tunnels == nil {
		return encryption{}
	}
	in := wireguard.Intent{Node: n.Self.Node, Address: n.Encap.Unmap().WithZone("")}
	in.State, in.Peers = network.Tunnels(s, n.Self.Node)
	if n.PacketSize != nil {
		in.MTU = n.PacketSize()
	}
	n.mu.Lock()
	in.Userspace = n.Datapath == deploy.Netdev || n.report.Datapath == deploy.Netdev
	n.mu.Unlock()
	e := encryption{state: in.State, report: n.Tunnels.Step(ctx, in)}
	e.waiting = wireguard.Waiting(in, e.report)
	n.mu.Lock()
	defer n.mu.Unlock()
	if was := n.tunnels; was.state.Stage() != e.state.Stage() || was.waiting != e.waiting {
		n.Log.Info("encryption of tunnels", "stage", e.state.Stage(), "waiting", e.waiting)
	}
	n.tunnels = e
	return e
}

// Encryption returns the stage of the encryption of tunnels, and why this node does not
// exchange encrypted packets with all others. The stage is empty while it is off.
func (n *Node) Encryption() (stage string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.tunnels.state.On() {
		return "", nil
	}
	if n.tunnels.waiting != "" {
		err = errors.New(n.tunnels.waiting)
	}
	return n.tunnels.state.Stage(), err
}
