package network

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/network"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/metadata"
	"github.com/basalt-gpu/basalt/sdn/ovn"
	"github.com/basalt-gpu/basalt/sdn/resolver"
)

// guestKinds are the kinds that a node needs to serve its guests.
var guestKinds = append(network.HostKinds, objects.Of[api.Instance](), objects.Of[api.Migration](), objects.Of[api.Network](),
	objects.Of[api.Flavor](), objects.Of[api.Project]())

// Metadata serves metadata to the guests of this node. It implements
// metadata.Source and resolver.Source.
type Metadata struct {
	Cache   *watchcache.Cache
	Node    api.NodeID
	Cluster string
	Service interface {
		Apply(ctx context.Context, networks []metadata.Network) error
	}
	// SSHAuthority returns the public key of the SSH CA that guests accept for
	// their instance. A nil func means that there is no SSH gateway.
	SSHAuthority func(context.Context) (string, error)
	Log          *slog.Logger

	book   atomic.Pointer[map[guest]metadata.Instance]
	zones  atomic.Pointer[map[api.NetworkID]*resolver.Zone]
	logged string // last logged error
}

// guest identifies a guest that sends a request, by its network and address.
type guest struct {
	network api.NetworkID
	address netip.Addr
}

// Run updates the metadata until ctx ends.
func (m *Metadata) Run(ctx context.Context) error {
	return watchcache.Run(ctx, m.Cache, guestKinds, m.step)
}

// Lookup implements metadata.Source.
func (m *Metadata) Lookup(network api.NetworkID, address netip.Addr) (metadata.Instance, bool) {
	book := m.book.Load()
	if book == nil {
		return metadata.Instance{}, false
	}
	in, ok := (*book)[guest{network, address.Unmap().WithZone("")}]
	return in, ok
}

// Guest implements resolver.Source.
func (m *Metadata) Guest(network api.NetworkID, address netip.Addr) bool {
	_, ok := m.Lookup(network, address)
	return ok
}

// Zone implements resolver.Source.
func (m *Metadata) Zone(network api.NetworkID) *resolver.Zone {
	zones := m.zones.Load()
	if zones == nil {
		return nil
	}
	return (*zones)[network]
}

func (m *Metadata) step(ctx context.Context, s *objects.Set) time.Duration {
	authority := ""
	if m.SSHAuthority != nil {
		var err error
		if authority, err = m.SSHAuthority(ctx); err != nil {
			m.Log.Debug("network: CA of the SSH gateway is not available to guests yet", "error", err)
		}
	}
	networks, book := m.guests(s, authority)
	zones := names(s, networks)
	m.zones.Store(&zones)
	m.book.Store(&book)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := m.Service.Apply(ctx, networks); err != nil {
		if err.Error() != m.logged {
			m.logged = err.Error()
			m.Log.Warn("network: serve metadata failed, retrying", "error", err)
		}
		return busyInterval
	}
	m.logged = ""
	return idleInterval
}

// keysOf returns the SSH keys of an instance: its own, and the SSH gateway's CA.
func keysOf(in api.Instance, authority string) []string {
	if authority == "" {
		return in.Spec.SSHKeys
	}
	return append(slices.Clone(in.Spec.SSHKeys), api.AuthorityLine(authority, api.InstanceID(in.Meta.ID)))
}

// guests returns the networks and guests of this node, with guests that are being
// migrated to it.
func (m *Metadata) guests(s *objects.Set, authority string) ([]metadata.Network, map[guest]metadata.Instance) {
	coming := map[api.InstanceID]bool{}
	for _, x := range objects.Map[api.Migration](s) {
		if x.Assignment.Target == m.Node && x.Spec.Instance != "" && !x.Status.Phase.Ended() {
			coming[x.Spec.Instance] = true
		}
	}
	used, book := map[api.NetworkID]bool{}, map[guest]metadata.Instance{}
	for _, in := range objects.Map[api.Instance](s) {
		id := api.InstanceID(in.Meta.ID)
		if in.Assignment.Node != m.Node && !coming[id] {
			continue
		}
		for _, p := range in.Assignment.Ports {
			used[p.Network] = true
			x := metadata.Instance{
				ID: id, Name: in.Meta.Name, Project: api.ProjectID(in.Meta.Project), MAC: p.Mac,
				Flavor: objects.Map[api.Flavor](s)[string(in.Spec.Flavor)].Meta.Name, Node: objects.Map[api.Node](s)[string(m.Node)].Meta.Name, Cluster: m.Cluster,
				Keys: keysOf(in, authority), UserData: []byte(in.Spec.UserData),
			}
			x.Address4, _ = netip.ParseAddr(p.Address4) // the zero Addr if it has none
			x.Address6, _ = netip.ParseAddr(p.Address6)
			for _, a := range []netip.Addr{x.Address4, x.Address6} {
				if a.IsValid() {
					book[guest{p.Network, a}] = x
				}
			}
		}
	}
	var networks []metadata.Network
	for id := range used {
		n, ok := objects.Map[api.Network](s)[string(id)]
		if !ok {
			continue
		}
		cidr, err := netip.ParsePrefix(cmp.Or(n.Spec.Cidr4, n.Spec.Cidr6))
		if err != nil {
			continue // the leader reports it
		}
		networks = append(networks, metadata.Network{ID: id, Project: api.ProjectID(n.Meta.Project), MAC: ovn.MetadataMAC(id), CIDR: cidr, MTU: cmp.Or(int(n.Spec.Mtu), sdn.DefaultMTU)})
	}
	slices.SortFunc(networks, func(a, b metadata.Network) int { return cmp.Compare(a.ID, b.ID) })
	return networks, book
}
