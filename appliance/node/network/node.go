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

// Stepper is deploy.Node: one look at the node, and what follows from it.
type Stepper interface {
	Step(ctx context.Context, i deploy.Intent) (deploy.Report, error)
}

// Looking again: soon while something is not as it should be.
const (
	lookBusy = time.Second
	lookIdle = 10 * time.Second
)

// Node keeps OVN's daemons as they should be on this node.
type Node struct {
	Cache    *watchcache.Cache
	Store    Store
	Self     deploy.Member
	Encap    netip.Addr // where tunnels end; Self's is where its databases are
	Datapath deploy.Datapath
	External map[string]string // physical network: interface
	Underlay string
	// Forbidden ranges that guests must not reach, on top of the node's addresses.
	Forbidden []netip.Prefix
	// Addresses of the node's cards; nil: net.InterfaceAddrs.
	Addresses func() ([]net.Addr, error)
	TLS       deploy.TLS
	Deploy    Stepper
	Log       *slog.Logger

	told *deploy.Report // what the cluster knows

	mu     sync.Mutex // guards what follows
	report deploy.Report
	said   string
}

// Run until ctx ends; the daemons run on.
func (n *Node) Run(ctx context.Context) error {
	return watchcache.Run(ctx, n.Cache, network.NodeKinds, n.step)
}

func (n *Node) step(ctx context.Context, s *objects.Set) time.Duration {
	if network.Founding(s).Generation == 0 {
		return lookBusy // the leader decides first
	}
	r, err := n.Deploy.Step(ctx, n.intent(s))
	if err != nil {
		r.Problems = append(r.Problems, deploy.Problem{What: err.Error()})
	}
	if r.Forbidden, err = n.forbidden(); err != nil {
		r.Problems = append(r.Problems, deploy.Problem{What: err.Error()})
	}
	n.take(r)
	if err := n.tell(ctx, r); err != nil && ctx.Err() == nil {
		n.Log.Warn("network: report status of node failed", "error", err)
		return lookBusy
	}
	if !r.Chassis || len(r.Problems) > 0 {
		return lookBusy
	}
	return lookIdle
}

func (n *Node) intent(s *objects.Set) deploy.Intent {
	return deploy.Intent{
		Node: n.Self.Node, Encap: n.Encap, Datapath: n.Datapath, External: n.External, Underlay: n.Underlay,
		Members: network.Members(s, n.Self), Founding: network.Founding(s), TLS: n.TLS,
		Nodes: slices.Sorted(maps.Keys(objects.Map[api.Node](s))),
	}
}

// take keeps what the node's status says, and logs what is new in it.
func (n *Node) take(r deploy.Report) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.report = r
	if words := problems(r); words != n.said {
		n.said = words
		if words != "" {
			n.Log.Warn("network: " + words)
		} else {
			n.Log.Info("network: working", "datapath", string(r.Datapath))
		}
	}
}

// tell the leader, when something has changed.
func (n *Node) tell(ctx context.Context, r deploy.Report) error {
	if n.told != nil && reflect.DeepEqual(*n.told, r) {
		return nil
	}
	_, err := n.Store.Apply(ctx, api.Batch{At: time.Now().UTC(), Commands: []api.Command{{
		Op: api.OpReport, Kind: api.KindChassis, ID: n.Self.Node, Name: n.Self.Node, Expect: api.AnyRevision, Data: api.Encode(r)}}})
	if err == nil {
		n.told = &r
	}
	return err
}

// Works reports whether instances with ports can run here, and why not.
func (n *Node) Works() (bool, string) {
	n.mu.Lock()
	defer n.mu.Unlock()
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

// ParseExternal reads NETWORK=INTERFACE, or INTERFACE alone.
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

// MemberOf is this node as a member, at an address of its own.
func MemberOf(id api.NodeID, address string) (deploy.Member, error) {
	a, err := netip.ParseAddr(address)
	if err != nil || !a.IsValid() || a.IsUnspecified() {
		return deploy.Member{}, fmt.Errorf("%q is not an address of this node", address)
	}
	return deploy.Member{Node: string(id), Address: a.Unmap().WithZone("")}, nil
}
