package network

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/network"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/sdn/ovn/deploy"
)

// Stepper is implemented by deploy.Node: it observes the node once, and performs
// what follows.
type Stepper interface {
	Step(ctx context.Context, i deploy.Intent) (deploy.Report, error)
}

// Intervals of steps: busyInterval while something is not as wanted.
const (
	busyInterval = time.Second
	idleInterval = 10 * time.Second
)

// Node deploys OVN's daemons on this node.
type Node struct {
	Cache    *watchcache.Cache
	Store    Store
	Self     deploy.Member
	Encap    netip.Addr // address of tunnels; Self has that of the databases
	Datapath deploy.Datapath
	// External returns the interfaces by physical network; nil: there are none.
	External func() map[string]string
	Underlay string
	// Forbidden has ranges that guests must not reach, in addition to the node's
	// addresses.
	Forbidden []netip.Prefix
	// Addresses returns the addresses of the node's interfaces; nil means
	// net.InterfaceAddrs.
	Addresses func() ([]net.Addr, error)
	TLS       deploy.TLS
	Deploy    Stepper
	// Tunnels encrypts the tunnels; nil: they cannot be encrypted.
	Tunnels Encrypter
	// PacketSize returns the size in bytes of packets that can be sent from Encap; 0: it is
	// unknown. A nil func means that it always is.
	PacketSize func() int
	Log        *slog.Logger

	written *network.Report // last report that was written to the store

	mu      sync.Mutex // guards the following fields
	report  deploy.Report
	tunnels encryption
	logged  string // last logged problems
}

// Run deploys until ctx ends; the daemons keep running.
func (n *Node) Run(ctx context.Context) error {
	return watchcache.Run(ctx, n.Cache, network.NodeKinds, n.step)
}

func (n *Node) step(ctx context.Context, s *objects.Set) time.Duration {
	if network.BootstrapOf(s).Generation == 0 {
		return busyInterval // waiting for the leader's decision
	}
	tunnels := n.encrypt(ctx, s) // before OVN's daemons are started, which send at once
	r, err := n.Deploy.Step(ctx, n.intent(s))
	if err != nil {
		r.Problems = append(r.Problems, deploy.Problem{What: err.Error()})
	}
	if r.Forbidden, err = n.forbidden(); err != nil {
		r.Problems = append(r.Problems, deploy.Problem{What: err.Error()})
	}
	n.setReport(r)
	if err := n.writeReport(ctx, network.Report{Report: r, Tunnels: tunnels.report}); err != nil && ctx.Err() == nil {
		n.Log.Warn("network: report status of node failed", "error", err)
		return busyInterval
	}
	if !r.Chassis || len(r.Problems) > 0 || !tunnels.settled() {
		return busyInterval
	}
	return idleInterval
}

func (n *Node) intent(s *objects.Set) deploy.Intent {
	var external map[string]string
	if n.External != nil {
		external = n.External()
	}
	return deploy.Intent{
		Node: n.Self.Node, Encap: n.Encap, Datapath: n.Datapath, External: external, Underlay: n.Underlay,
		Members: network.Members(s, n.Self), Bootstrap: network.BootstrapOf(s), TLS: n.TLS,
		Nodes: slices.Sorted(maps.Keys(objects.Map[api.Node](s))),
	}
}

// setReport stores the node's report, and logs changes of its problems.
func (n *Node) setReport(r deploy.Report) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.report = r
	if words := problems(r); words != n.logged {
		n.logged = words
		if words != "" {
			n.Log.Warn("network: " + words)
		} else {
			n.Log.Info("network: working", "datapath", string(r.Datapath))
		}
	}
}

// writeReport writes the report to the store if it has changed.
func (n *Node) writeReport(ctx context.Context, r network.Report) error {
	if n.written != nil && reflect.DeepEqual(*n.written, r) {
		return nil
	}
	_, err := n.Store.Apply(ctx, api.Batch{At: time.Now().UTC(), Commands: []api.Command{{
		Op: api.OpReport, Kind: api.KindChassis, ID: n.Self.Node, Name: n.Self.Node, Expect: api.AnyRevision, Data: api.Encode(r)}}})
	if err != nil {
		return fmt.Errorf("write chassis %s to the store: %w", n.Self.Node, err)
	}
	n.written = &r
	return nil
}

// Works reports whether instances with ports can run on this node, or the reason
// why not.
func (n *Node) Works() (bool, string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if why := n.tunnels.broken(); why != "" {
		return false, why
	}
	if n.report.Chassis {
		return true, ""
	}
	if words := problems(n.report); words != "" {
		return false, words
	}
	return false, "the network of this node is not ready yet"
}

func problems(r deploy.Report) string {
	words := make([]string, 0, len(r.Problems))
	for _, p := range r.Problems {
		if p.Part != "" {
			words = append(words, fmt.Sprintf("%s: %s", p.Part, p))
		} else {
			words = append(words, p.String())
		}
	}
	return strings.Join(words, "; ")
}

// ParseExternal parses NETWORK=INTERFACE, or INTERFACE alone.
func ParseExternal(all []string) (map[string]string, error) {
	out := map[string]string{}
	for _, s := range all {
		name, link, ok := strings.Cut(s, "=")
		if !ok {
			name, link = "external", s
		}
		if name == "" || link == "" || strings.ContainsAny(s, " :,") {
			return nil, fmt.Errorf("%q: want INTERFACE or NETWORK=INTERFACE", s)
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("%q: network %s already has an interface", s, name)
		}
		out[name] = link
	}
	return out, nil
}

// MemberOf returns this node as a member with its own address.
func MemberOf(id api.NodeID, address string) (deploy.Member, error) {
	a, err := netip.ParseAddr(address)
	if err != nil || !a.IsValid() || a.IsUnspecified() {
		return deploy.Member{}, fmt.Errorf("%q is not an address of this node", address)
	}
	return deploy.Member{Node: string(id), Address: a.Unmap().WithZone("")}, nil
}
