package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/appliance/cluster/membership"
	"github.com/basalt-gpu/basalt/appliance/cluster/transport"
	"github.com/basalt-gpu/basalt/appliance/controlplane/network"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/appliance/node/firewall"
	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
	"github.com/basalt-gpu/basalt/appliance/node/hostnet/trial"
	"github.com/basalt-gpu/basalt/appliance/node/listen"
	"github.com/basalt-gpu/basalt/sdn/ovn/deploy"
	"github.com/basalt-gpu/basalt/sdn/wireguard"

	cephdeploy "github.com/basalt-gpu/basalt/sds/ceph/deploy"
)

// inForce returns the declared network of an installed node that is in force, also while it
// is on trial. It is nil if none is declared, or if this basaltd is not the installed one.
func inForce(c config) (n *hostnet.Network, onTrial bool, err error) {
	if c.run != installed {
		return nil, false, nil
	}
	s, err := trial.Read(trial.System)
	if err != nil {
		return nil, false, fmt.Errorf("read the state of the declared network: %w", err)
	}
	if n, onTrial, err = s.InForce(); err != nil {
		return n, onTrial, fmt.Errorf("read the declared network: %w", err)
	}
	return n, onTrial, nil
}

// devices returns the names of the interfaces on which the packets of a declared link arrive.
func devices(c config, n *hostnet.Network, l *hostnet.Link) []string {
	name := l.Name
	if d, ok := trial.Device(n, l); ok {
		name = d.Name
	}
	if c.underlay == name {
		return []string{name, deploy.Underlay} // its addresses are on the bridge
	}
	return []string{name}
}

// addressesOf returns the addresses that a declared link has now.
func addressesOf(c config, n *hostnet.Network, l *hostnet.Link) (all []netip.Addr) {
	for _, name := range devices(c, n, l) {
		i, err := net.InterfaceByName(name)
		if err != nil {
			continue
		}
		list, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range list {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				all = append(all, p.Addr())
			}
		}
	}
	return all
}

// listenAt opens a port: at ROLE:PORT on the addresses of the links with the role, which it
// follows, otherwise at HOST:PORT.
func listenAt(c config, what, address string, log *slog.Logger) (net.Listener, error) {
	role, port, ok := listen.ParseRole(address)
	if !ok {
		return transport.Listen(net.ListenConfig{}, address) //nolint:wrapcheck // it names the address
	}
	//nolint:wrapcheck // it names the port
	return listen.New(listen.Options{What: what, Port: port, Log: log, Addresses: func() []netip.Addr {
		n, _, err := inForce(c)
		if err != nil { // it must remain reachable with a declaration that this release cannot read
			log.Warn("read declared network failed, listening on all addresses", "service", what, "error", err)
			n = nil
		}
		return listen.Addresses(n, role, func(l *hostnet.Link) []netip.Addr { return addressesOf(c, n, l) })
	}})
}

// externalLinks returns the function that returns the interfaces of external networks by
// physical network: those of --external, or else the links with role external.
func externalLinks(c config, given map[string]string, log *slog.Logger) func() map[string]string {
	declared := func() map[string]string {
		n, _, err := inForce(c)
		if n == nil || err != nil {
			return nil
		}
		all := map[string]string{}
		for name, l := range n.ExternalLinks() {
			if b := n.Bridge(l); b != nil {
				all[name] = b.External()
			} else {
				all[name] = devices(c, n, l)[0]
			}
		}
		return all
	}
	if len(given) == 0 {
		return declared
	}
	if all := declared(); len(all) > 0 {
		log.Warn("--external takes precedence over the declared links with role external; remove it from basaltd.yaml", "external", fmt.Sprint(given), "declared", fmt.Sprint(all))
	}
	return func() map[string]string { return given }
}

// portOf returns the port of an address at which other machines reach the node, or 0.
func portOf(address string) uint16 {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return 0
	}
	if a, err := netip.ParseAddr(host); host == "localhost" || err == nil && a.IsLoopback() {
		return 0
	}
	port, _ := strconv.ParseUint(text, 10, 16) // 0: none
	return uint16(port)
}

// firewallPorts returns the ports of the node's services according to its configuration.
func firewallPorts(c config) firewall.Ports {
	p := firewall.Ports{API: portOf(c.listen), SSHGateway: portOf(c.sshListen), AppGateway: portOf(c.appListen), EncapSet: c.encap != ""}
	for _, a := range c.peerListen {
		if port := portOf(a); port != 0 && !slices.Contains(p.Peers, port) {
			p.Peers = append(p.Peers, port)
		}
	}
	if c.network == "ovn" {
		p.OVN = []hostnet.PortRange{{First: deploy.PortNB, Last: deploy.PortSBRaft}}
	}
	if wireguard.Open(tunnelKeys(c)) {
		p.EncryptionDevices = wireguard.Devices
		for _, port := range wireguard.Ports {
			p.Encryption = append(p.Encryption, hostnet.PortRange{First: port, Last: port})
		}
	}
	p.Ceph = []hostnet.PortRange{{First: cephdeploy.MonPort, Last: cephdeploy.MonPort}, {First: cephdeploy.FirstPort, Last: cephdeploy.LastPort}}
	return p
}

// firewallRules returns the rules of a declared network; none if its firewall is not enabled.
func firewallRules(c config, n *hostnet.Network) ([]firewall.Rule, []firewall.Link) {
	if n == nil || !n.Filtered() {
		return nil, nil
	}
	links := firewall.Links(n, func(l *hostnet.Link) []string { return devices(c, n, l) })
	return firewall.Rules(firewall.Services(n, firewallPorts(c)), links), links
}

// wantedFirewall returns what the packet filter is to be.
func wantedFirewall(c config, n *hostnet.Network, onTrial bool, nodes []netip.Addr) firewall.Wanted {
	w := firewall.Wanted{Permanent: !onTrial}
	if rules, links := firewallRules(c, n); links != nil {
		w.Ruleset = firewall.Ruleset(rules, links, nodes)
	}
	return w
}

// loadFirewall implements trial.Trial.Firewall. It does not need the running basaltd.
func loadFirewall(c config) func(context.Context, *hostnet.Network, bool) error {
	return func(ctx context.Context, n *hostnet.Network, onTrial bool) error {
		w := wantedFirewall(c, n, onTrial, knownNodes(c))
		if w.Ruleset == "" {
			return firewall.System.Remove(ctx, w.Permanent)
		}
		return firewall.System.Install(ctx, w.Ruleset, w.Permanent)
	}
}

// nodesFile has the addresses of the cluster's nodes as this node last knew them.
func nodesFile(c config) string { return filepath.Join(c.data, "firewall-nodes.json") }

// knownNodes returns the addresses of the cluster's nodes that are known without the store.
func knownNodes(c config) []netip.Addr {
	var all []netip.Addr
	if data, err := os.ReadFile(nodesFile(c)); err == nil && json.Unmarshal(data, &all) == nil {
		return all
	}
	r, err := membership.Load(membership.Dir(c.data))
	if err != nil {
		return nil
	}
	for _, addresses := range r.Peers {
		for _, a := range addresses {
			if p, err := netip.ParseAddrPort(a); err == nil {
				all = append(all, p.Addr())
			}
		}
	}
	return all
}

// clusterAddresses returns the addresses of the cluster's nodes: those at which they are reached,
// and those of all interfaces, which every node reports. Ranges that operators give with
// --forbid are left out; single addresses cannot be told apart.
func clusterAddresses(s *objects.Set) []netip.Addr {
	var all []netip.Addr
	ranges, _ := network.Hosts(s)
	for _, p := range ranges {
		if p.IsSingleIP() {
			all = append(all, p.Addr())
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

// firewallEvery is how often the declared network is read, which a command changes.
const firewallEvery = 3 * time.Second

// keepFirewall keeps the packet filter of an installed node as its network declares it, with
// the addresses of the present nodes.
func (n *node) keepFirewall(c config) func(context.Context) error {
	reconciler := &firewall.Reconciler{Host: firewall.System, Log: n.log}
	var written []netip.Addr
	return func(ctx context.Context) error {
		return watchcache.Run(ctx, n.cache, network.HostKinds, func(ctx context.Context, s *objects.Set) time.Duration {
			nodes := clusterAddresses(s)
			if !slices.Equal(nodes, written) {
				if data, err := json.Marshal(nodes); err == nil && atomicfile.WriteFile(nodesFile(c), data, 0o600) == nil {
					written = nodes
				}
			}
			declared, onTrial, err := inForce(c)
			if err != nil {
				n.log.Warn("read declared network failed, the firewall stays as it is", "error", err)
				return time.Minute
			}
			reconciler.Step(ctx, wantedFirewall(c, declared, onTrial, nodes), time.Now())
			return firewallEvery
		})
	}
}
