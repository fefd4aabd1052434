// Package fake is a network in memory: a Controller and any number of Chassis
// over one Topology. It forwards no packets; it implements the contract of
// package sdn about which ports exist, which may be plugged, and what is
// reported of them.
package fake

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
)

// Network is the state shared by the Controller and all Chassis.
type Network struct {
	// mu guards the following fields, and those of the chassis.
	mu       sync.Mutex
	topology sdn.Topology
	chassis  map[api.NodeID]*Chassis
	down     error // of the databases
	changed  chan struct{}
}

// New returns an empty network.
func New() *Network {
	return &Network{chassis: map[api.NodeID]*Chassis{}, changed: make(chan struct{})}
}

// Controller returns the controller of the network.
func (n *Network) Controller() sdn.Controller { return controller{n} }

// Chassis returns the chassis of a node; the same at each call.
func (n *Network) Chassis(node api.NodeID) *Chassis {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.chassis[node] == nil {
		n.chassis[node] = &Chassis{n: n, node: node, plugged: map[sdn.PortID]sdn.Plugged{}, egress: map[sdn.Exit]*counter{}}
	}
	return n.chassis[node]
}

// Fail makes the databases unreachable, until it is called with nil.
func (n *Network) Fail(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = err
	n.change()
}

// Topology returns the topology that was applied last.
func (n *Network) Topology() sdn.Topology {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.topology
}

// change wakes all waiters. The caller holds mu.
func (n *Network) change() {
	close(n.changed)
	n.changed = make(chan struct{})
}

type controller struct{ n *Network }

func (c controller) Apply(_ context.Context, t sdn.Topology) error {
	if _, problems := t.Check(); len(problems) > 0 {
		p := problems[0]
		return api.Errorf(api.CodeInvalid, "%s %s: %s", p.Kind, p.ID, p.Error.Message)
	}
	if t.Cluster == "" {
		return errors.New("sdn/fake: Topology.Cluster is empty")
	}
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.n.down != nil {
		return c.n.unavailable()
	}
	c.n.topology = t
	c.n.change()
	return nil
}

func (n *Network) unavailable() error {
	return api.Errorf(api.CodeUnavailable, "the network databases are not reachable: %v", n.down)
}

func (c controller) Observe(context.Context) (sdn.State, error) {
	n := c.n
	n.mu.Lock()
	defer n.mu.Unlock()
	s := sdn.State{Ports: map[sdn.PortID]sdn.PortState{}, Chassis: map[api.NodeID]sdn.ChassisState{}, Gateways: map[api.ProjectID]api.NodeID{}, Backends: map[api.LoadBalancerID]sdn.BackendState{}}
	if n.down != nil {
		return sdn.State{}, n.unavailable()
	}
	for node := range n.chassis {
		s.Chassis[node] = sdn.ChassisState{Hostname: string(node), Current: true}
	}
	for _, p := range n.topology.Ports {
		s.Ports[p.ID] = n.where(p)
	}
	for _, r := range n.topology.Routers {
		i := slices.IndexFunc(n.topology.External, func(x sdn.ExternalNetwork) bool { return x.ID == r.External })
		if i >= 0 && len(n.topology.External[i].Gateways) > 0 {
			s.Gateways[r.Project] = n.topology.External[i].Gateways[0]
		}
	}
	for _, l := range n.topology.LoadBalancers {
		if !l.Health {
			continue
		}
		var state sdn.BackendState
		for _, b := range l.Backends {
			if s.Ports[b.Port].Up {
				state.Up++
			} else {
				state.Down++
			}
		}
		s.Backends[l.ID] = state
	}
	return s, nil
}

// RetryGateways does nothing: a router has its gateway at once.
func (controller) RetryGateways(context.Context) error { return nil }

func (controller) Close() error { return nil }

// where returns where the port is: on the first of its nodes that has plugged
// it.
func (n *Network) where(p sdn.Port) sdn.PortState {
	nodes := p.Nodes
	if len(nodes) == 0 {
		nodes = slices.Sorted(maps.Keys(n.chassis))
	}
	for _, node := range nodes {
		if c := n.chassis[node]; c != nil {
			if _, ok := c.plugged[p.ID]; ok {
				return sdn.PortState{Up: true, Node: node}
			}
		}
	}
	return sdn.PortState{}
}

// Chassis is the chassis of one node.
type Chassis struct {
	n       *Network
	node    api.NodeID
	plugged map[sdn.PortID]sdn.Plugged
	broken  error
	egress  map[sdn.Exit]*counter
	counted int // counters created so far
}

var _ sdn.Chassis = (*Chassis)(nil)

// Break makes the chassis unhealthy, until it is called with nil.
func (c *Chassis) Break(err error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	c.broken = err
	c.n.change()
}

// Plug connects a port.
func (c *Chassis) Plug(ctx context.Context, p sdn.Plug) (sdn.Tap, error) {
	if _, ok := p.Port.Instance(); !ok {
		return sdn.Tap{}, api.Errorf(api.CodeInvalid, "%q is not a valid port ID of an instance", p.Port)
	}
	tap := sdn.Tap{Name: tapName(p.Port), MTU: cmp.Or(p.MTU, sdn.DefaultMTU)}
	c.n.mu.Lock()
	if c.broken != nil {
		defer c.n.mu.Unlock()
		return sdn.Tap{}, api.Errorf(api.CodeUnavailable, "%v", c.broken)
	}
	c.plugged[p.Port] = sdn.Plugged{Port: p.Port, Tap: tap, MAC: p.MAC}
	c.n.change()
	c.n.mu.Unlock()
	for {
		c.n.mu.Lock()
		installed, changed := c.installed(p.Port), c.n.changed
		c.n.mu.Unlock()
		if installed || p.Now {
			return tap, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return sdn.Tap{}, api.Errorf(api.CodeUnavailable, "port %s is not active: %v", p.Port, context.Cause(ctx))
		}
	}
}

// tapName returns a name within the limit for network devices: 15 bytes.
func tapName(id sdn.PortID) string {
	sum := sha256.Sum256([]byte(id))
	return "tap" + hex.EncodeToString(sum[:6])
}

// installed reports whether the Topology has the port and allows it on this
// node. The caller holds mu.
func (c *Chassis) installed(id sdn.PortID) bool {
	for _, p := range c.n.topology.Ports {
		if p.ID == id {
			return len(p.Nodes) == 0 || slices.Contains(p.Nodes, c.node)
		}
	}
	return false
}

// Unplug removes a port.
func (c *Chassis) Unplug(_ context.Context, id sdn.PortID) error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.broken != nil {
		return api.Errorf(api.CodeUnavailable, "%v", c.broken)
	}
	delete(c.plugged, id)
	c.n.change()
	return nil
}

// Ports returns the plugged ports.
func (c *Chassis) Ports(context.Context) ([]sdn.Plugged, error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	var all []sdn.Plugged
	for id, p := range c.plugged {
		p.Installed = c.installed(id)
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b sdn.Plugged) int { return strings.Compare(string(a.Port), string(b.Port)) })
	return all, nil
}

// Health returns the error of Break.
func (c *Chassis) Health(context.Context) error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.broken != nil {
		return fmt.Errorf("chassis %s: %w", c.node, c.broken)
	}
	return nil
}

// Close does nothing: plugged ports remain.
func (c *Chassis) Close() error { return nil }
