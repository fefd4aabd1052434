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

// counter is the counter of an exit.
type counter struct {
	name  string
	bytes uint64
	since time.Time // the last change
}

// settled is how long a counter must be unchanged before it is removed.
const settled = time.Second

// Egress returns the counts that Leave has added.
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

// leads reports whether this node is connected to the external network. The
// caller holds mu.
func (c *Chassis) leads(x api.ExternalNetworkID) bool {
	return slices.ContainsFunc(c.n.topology.External, func(n sdn.ExternalNetwork) bool { return n.ID == x && slices.Contains(n.Gateways, c.node) })
}

// Leave simulates traffic of an owner's exit. It returns false if nothing
// counts it.
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

// Restart simulates a restart of the switch: all counters are lost.
func (c *Chassis) Restart() {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	clear(c.egress)
}
