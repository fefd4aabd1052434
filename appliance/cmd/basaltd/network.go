package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/membership"
	"github.com/basalt-gpu/basalt/appliance/cluster/pki"
	"github.com/basalt-gpu/basalt/appliance/controlplane/network"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
	"github.com/basalt-gpu/basalt/appliance/node/agent"
	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
	nodenetwork "github.com/basalt-gpu/basalt/appliance/node/network"
	"github.com/basalt-gpu/basalt/appliance/node/supervisor"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/metadata"
	"github.com/basalt-gpu/basalt/sdn/ovn"
	"github.com/basalt-gpu/basalt/sdn/ovn/deploy"
	"github.com/basalt-gpu/basalt/sdn/resolver"
	"github.com/basalt-gpu/basalt/sdn/wireguard"
)

// fabric is the node's part of the cluster's network; nil: the node has none.
type fabric struct {
	self    deploy.Member
	paths   deploy.Paths
	tls     *tls.Config // of connections to other nodes' databases
	node    *nodenetwork.Node
	guests  *nodenetwork.Metadata
	service *metadata.Service
	egress  *nodenetwork.Egress
	chassis sdn.Chassis
	store   *store.Store

	// narrowest is the largest size of packets, in bytes, that has arrived at all other
	// nodes; 0: all that are sent do, or it is unknown.
	narrowest atomic.Int64

	pretended sdn.Controller // replaces OVN's; nil: OVN
}

// pretended contains the parts of a fake network.
type pretended struct {
	stepper    nodenetwork.Stepper
	chassis    sdn.Chassis
	controller sdn.Controller
}

// networks are the values of --network besides ovn and none; see drivers_fake.go.
var networks = map[string]func(api.NodeID) pretended{}

// openNetwork prepares the network; nothing is started yet.
func (n *node) openNetwork(c config, id api.NodeID) error {
	switch c.network {
	case "none", "":
		return nil
	case "ovn":
	default:
		if made := networks[c.network]; made != nil {
			return n.pretendNetwork(id, made(id))
		}
		return fmt.Errorf("--network %s: want ovn or none", c.network)
	}
	tunnels, err := nodenetwork.MemberOf(id, encap(c))
	if err != nil {
		return fmt.Errorf("--encap: %w", err)
	}
	// The address at which the other nodes will reach its databases, even while there are none:
	// databases that are created with another address would have to be created again.
	self, err := nodenetwork.MemberOf(id, peerHost(c))
	if err != nil {
		return fmt.Errorf("--peer-listen: %w", err)
	}
	external, err := nodenetwork.ParseExternal(c.external)
	if err != nil {
		return fmt.Errorf("--external: %w", err)
	}
	forbidden, err := nodenetwork.ParseForbidden(c.forbidden)
	if err != nil {
		return fmt.Errorf("--forbid: %w", err)
	}
	switch deploy.Datapath(c.datapath) {
	case deploy.Auto, deploy.System, deploy.Netdev:
	default:
		return fmt.Errorf("--datapath %s: want auto, system or netdev", c.datapath)
	}
	resolvers, err := nodenetwork.ParseResolvers(c.resolvers)
	if err != nil {
		return fmt.Errorf("--resolver: %w", err)
	}
	daemons, unmanaged, err := daemonsOf(c)
	if err != nil {
		return err
	}
	f := &fabric{self: self, store: n.store, paths: deploy.Paths{
		State: filepath.Join(c.data, "ovn"), Run: filepath.Join(c.run, "ovn"), OVSRun: filepath.Join(c.run, "ovs")}}
	if unmanaged {
		f.paths.OVSRun = "/run/openvswitch"
	}
	stepper, err := deploy.NewNode(deploy.Config{Paths: f.paths, Daemons: daemons, Unmanaged: func() bool { return unmanaged }, Log: func(a deploy.Action) {
		if a.Verb != deploy.Run { // which does not affect running daemons
			n.log.Info("network: " + a.String())
		}
	}})
	if err != nil {
		return err
	}
	f.node = &nodenetwork.Node{
		Cache: n.cache, Store: n.store, Self: self, Encap: tunnels.Address, Datapath: deploy.Datapath(c.datapath), External: externalLinks(c, external, n.log),
		Underlay: c.underlay, Forbidden: forbidden, Deploy: stepper, Log: n.log,
	}
	f.node.Tunnels, f.node.PacketSize = wireguard.NewNode(wireguard.Config{Dir: tunnelKeys(c)}), f.packetSize
	if n.cluster != nil {
		f.tls = n.cluster.certificates.AnyNodeConfig()
		f.node.TLS.Bundle, f.node.TLS.Cert, f.node.TLS.Key = pki.Files(membership.Dir(c.data))
	}
	db := "unix:" + filepath.Join(f.paths.OVSRun, "db.sock")
	f.chassis = ovn.NewChassis(ovn.ChassisOptions{DB: db})
	f.guests = &nodenetwork.Metadata{Cache: n.cache, Node: id, Cluster: n.clusterName(), Log: n.log}
	f.egress = &nodenetwork.Egress{Cache: n.cache, Store: n.store, Node: id, Counter: f.chassis, Ready: f.Works,
		File: filepath.Join(c.data, "egress.json"), Every: c.meterEvery, Log: n.log}
	service := metadata.NewService(metadata.Config{Source: f.guests, Switch: db, Log: n.log,
		Names: resolver.New(f.guests, resolver.NewForwarder(resolvers))})
	f.guests.Service, f.service = service, service
	n.closers = append(n.closers, f.chassis.Close, service.Close)
	n.network = f
	return nil
}

// pretendNetwork is openNetwork for a fake network, without metadata and egress.
func (n *node) pretendNetwork(id api.NodeID, p pretended) error {
	self, err := nodenetwork.MemberOf(id, "127.0.0.1")
	if err != nil {
		return err
	}
	n.network = &fabric{self: self, store: n.store, chassis: p.chassis, pretended: p.controller,
		node: &nodenetwork.Node{Cache: n.cache, Store: n.store, Self: self, Encap: self.Address, Deploy: p.stepper, Log: n.log}}
	return nil
}

// installed is the run folder of an installed node.
const installed = "/run/basalt"

// daemonsOf returns the supervisor of the network's programs, and whether the distribution's
// service runs Open vSwitch. A node with another run folder than the installed one is a demo or
// a test, and must be independent of the other services of its machine.
func daemonsOf(c config) (d supervisor.Daemons, unmanaged bool, err error) {
	state, logs := filepath.Join(c.run, "daemons"), filepath.Join(c.data, "log")
	if c.run != installed {
		d, err = supervisor.NewProcesses(state, logs)
		return d, false, err
	}
	d, err = supervisor.New(state, logs)
	return d, deploy.Unmanaged(), err
}

// clusterName returns the cluster's name, which is constant for a node without a cluster.
func (n *node) clusterName() string {
	if n.cluster != nil {
		return n.cluster.certificates.Cluster()
	}
	return "basalt"
}

// lacks returns the kinds that this node does not support, with the reason.
func (n *node) unavailable() map[api.Kind]string {
	all := map[api.Kind]string{}
	if why := lacksCeph(); why != "" {
		all[api.KindCephCluster] = why
	}
	if n.network == nil {
		for _, kind := range []api.Kind{api.KindNetwork, api.KindSecurityGroup, api.KindExternalNetwork, api.KindFloatingIP, api.KindLoadBalancer} {
			all[kind] = "networks are not available: basaltd runs without --network ovn"
		}
	}
	return all
}

// run returns the tasks that run on every node.
func (f *fabric) run() map[string]func(context.Context) error {
	if f.pretended != nil {
		return map[string]func(context.Context) error{"network": f.node.Run}
	}
	return map[string]func(context.Context) error{"network": f.node.Run, "metadata": f.guests.Run, "egress": f.egress.Run}
}

// Works implements agent.Ports.
func (f *fabric) Works(context.Context) error {
	if works, why := f.node.Works(); !works {
		return api.Errorf(api.CodeUnavailable, "%s", why)
	}
	return nil
}

// Plug implements agent.Ports.
func (f *fabric) Plug(ctx context.Context, p agent.Port, now bool) (agent.Tap, error) {
	if err := f.Works(ctx); err != nil {
		return agent.Tap{}, err
	}
	o, err := f.store.Get(store.Stale(ctx), api.KindNetwork, string(p.Network))
	if err != nil {
		return agent.Tap{}, err
	}
	net, err := api.Decode[api.Network](o)
	if err != nil {
		return agent.Tap{}, err
	}
	t, err := f.chassis.Plug(ctx, sdn.Plug{Port: sdn.PortID(p.ID), MAC: p.MAC, MTU: int(net.Spec.Mtu), Now: now, Queues: p.Queues})
	return agent.Tap{Name: t.Name, MTU: t.MTU, NoOffload: t.NoOffload}, err
}

// Unplug implements agent.Ports.
func (f *fabric) Unplug(ctx context.Context, port string) error {
	return f.chassis.Unplug(ctx, sdn.PortID(port))
}

// Plugged implements agent.Ports.
func (f *fabric) Plugged(ctx context.Context) ([]string, error) {
	if works, _ := f.node.Works(); !works {
		return nil, nil // without a network there are no ports
	}
	all, err := f.chassis.Ports(ctx)
	ids := make([]string, 0, len(all))
	for _, p := range all {
		ids = append(ids, string(p.Port))
	}
	return ids, err
}

// tunnelKeys is the folder of the private keys with which tunnels are encrypted.
func tunnelKeys(c config) string { return filepath.Join(c.data, "wireguard") }

// encap returns the address of this node's end of the tunnels: --encap, or the link that is
// declared for them, or the main path.
func encap(c config) string {
	return cmp.Or(c.encap, text(declaredAddress(c, hostnet.Tunnel)), peerHost(c))
}

// text returns the address, or "" for the zero Addr.
func text(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// peerHost returns this node's address on the main path to the others.
func peerHost(c config) string {
	if !c.clustered() {
		return "127.0.0.1" // there are no others
	}
	host, _, _ := net.SplitHostPort(c.peerListen[0]) // checked by selfOf
	return host
}

// lead configures the cluster's network while this node is the leader in the term.
func (f *fabric) lead(ctx context.Context, n *node, in uint64) {
	l := &network.Leader{
		Cache: n.cache, Store: term{n.store, in}, Cluster: n.clusterName(), Self: f.self, TLS: f.tls != nil, Log: n.log,
		Open: func(_ context.Context, members []deploy.Member, bootstrap deploy.Bootstrap) (sdn.Controller, error) {
			if f.pretended != nil {
				return f.pretended, nil
			}
			return f.open(members, bootstrap), nil
		},
	}
	_ = l.Run(ctx) // ends with the term
}

// open returns a controller that connects to OVN's databases when it is first used.
func (f *fabric) open(members []deploy.Member, bootstrap deploy.Bootstrap) *ovn.Controller {
	i := deploy.Intent{Node: f.self.Node, Members: members, Bootstrap: bootstrap}
	ends := func(d deploy.DB) []string { return strings.Split(i.Endpoint(d, f.paths.Run), ",") }
	return ovn.New(ovn.Options{NB: ends(deploy.NB), SB: ends(deploy.SB), TLS: f.tls})
}
