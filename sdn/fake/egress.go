package fake

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
)

// counter of an exit.
type counter struct {
	name  string
	bytes uint64
	since time.Time // it has said so
}

// settled counters do not change any more.
const settled = time.Second

// Egress counts what Leave says.
func (c *Chassis) Egress(_ context.Context, exits []sdn.Exit) ([]sdn.Egress, error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.broken != nil {
		return nil, api.Errorf(api.CodeUnavailable, "%v", c.broken)
	}
	exits = slices.DeleteFunc(slices.Clone(exits), func(e sdn.Exit) bool { return !c.leads(e.External) })
	for _, e := range exits {
		if c.egress[e] == nil {
			c.counted++
			c.egress[e] = &counter{name: fmt.Sprintf("%s-%d", c.node, c.counted), since: time.Now()}
		}
	}
	var all []sdn.Egress
	for e, n := range c.egress {
		seen := sdn.Egress{Counter: n.name, Bytes: n.bytes}
		switch {
		case slices.Contains(exits, e):
			seen.Owner = e.Owner
		case time.Since(n.since) >= settled:
			delete(c.egress, e)
			continue
		}
		all = append(all, seen)
	}
	slices.SortFunc(all, func(a, b sdn.Egress) int { return cmp.Compare(a.Counter, b.Counter) })
	return all, nil
}

// leads tells whether the external network comes to this node; mu is held.
func (c *Chassis) leads(x api.ExternalNetworkID) bool {
	return slices.ContainsFunc(c.n.topology.External, func(n sdn.ExternalNetwork) bool { return n.ID == x && slices.Contains(n.Gateways, c.node) })
}

// Leave is so much leaving by an exit of the owner's; false: nobody counts it.
func (c *Chassis) Leave(owner string, bytes uint64) bool {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	for e, n := range c.egress {
		if e.Owner == owner {
			n.bytes, n.since = n.bytes+bytes, time.Now()
			return true
		}
	}
	return false
}

// Restart of the switch: every counter is gone.
func (c *Chassis) Restart() {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	clear(c.egress)
}
