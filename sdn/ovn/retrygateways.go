package ovn

import (
	"context"
	"maps"
	"slices"

	"github.com/basalt-gpu/basalt/sdn/ovn/nb"
	"github.com/basalt-gpu/basalt/sdn/ovn/sb"
	"github.com/ovn-kubernetes/libovsdb/client"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"
)

// RetryGateways makes the nodes decide again about routers' external ports that no
// node has claimed.
//
// When a member of the southbound database receives a claim of a port and
// another node's release of it at once, it reports no change to its clients.
// The ovn-controller with that claim then waits for a change that never comes,
// and the router has no gateway. Any change of a redirect port that
// ovn-controller monitors makes it decide again: it does not monitor
// external_ids, but ovn-northd also copies the option redirect-type, whose
// value "overlay" is the default (ovn-nb(5)).
func (c *Controller) RetryGateways(ctx context.Context) error {
	c.applying.Lock()
	defer c.applying.Unlock()
	north, err := c.nb.open(ctx)
	if err != nil {
		return err
	}
	south, err := c.sb.open(ctx)
	if err != nil {
		return err
	}
	if !north.Connected() || !south.Connected() {
		return nil // the caches are outdated
	}
	var ops []ovsdb.Operation
	for _, port := range c.unclaimed.next(unclaimed(north, south)) {
		ops = append(ops, toggleRedirect(north.Cache().Table(nb.LogicalRouterPortTable).Row(port).(*nb.LogicalRouterPort)))
	}
	for batch := range slices.Chunk(ops, maxOperations) {
		if err := c.transact(ctx, north, batch); err != nil {
			return err
		}
	}
	return nil
}

// toggleRedirect adds or removes the redirect-type "overlay".
func toggleRedirect(p *nb.LogicalRouterPort) ovsdb.Operation {
	const key, value = "redirect-type", "overlay"
	m := ovsdb.NewMutation("options", ovsdb.MutateOperationInsert, ovsMap(map[string]string{key: value}))
	if p.Options[key] == value {
		m = ovsdb.NewMutation("options", ovsdb.MutateOperationDelete, ovsMap(map[string]string{key: value}))
	}
	return ovsdb.Operation{Op: ovsdb.OperationMutate, Table: nb.LogicalRouterPortTable, Where: byUUID(p.UUID), Mutations: []ovsdb.Mutation{*m}}
}

// unclaimed returns the UUIDs of routers' external ports that have no node,
// although one that could claim them is up.
func unclaimed(north, south client.Client) []string {
	there := map[string]bool{}
	for _, m := range south.Cache().Table(sb.ChassisTable).RowsShallow() {
		there[m.(*sb.Chassis).Name] = true
	}
	without := map[string]bool{} // redirect ports without a chassis
	for _, m := range south.Cache().Table(sb.PortBindingTable).RowsShallow() {
		if b := m.(*sb.PortBinding); b.Chassis == nil {
			without[b.LogicalPort] = true
		}
	}
	groups, members := north.Cache().Table(nb.HAChassisGroupTable), north.Cache().Table(nb.HAChassisTable)
	var ports []string
	for id, m := range north.Cache().Table(nb.LogicalRouterPortTable).RowsShallow() {
		p := m.(*nb.LogicalRouterPort)
		if p.ExternalIDs[Owner] == "" || p.HaChassisGroup == nil || !without[redirectName(p.Name)] {
			continue
		}
		group, ok := groups.Row(*p.HaChassisGroup).(*nb.HAChassisGroup)
		if ok && slices.ContainsFunc(group.HaChassis, func(id string) bool {
			member, ok := members.Row(id).(*nb.HAChassis)
			return ok && there[member.ChassisName]
		}) {
			ports = append(ports, id)
		}
	}
	return ports
}

// checkCounts counts for each port the consecutive checks without a node.
type checkCounts map[string]int

// maxChecks is the largest number of checks between two retries.
const maxChecks = 64

// next records one more check, and returns the ports to retry: at the
// second check, because a claim in progress needs no retry, and then each
// time after twice as many checks, up to maxChecks.
func (l checkCounts) next(without []string) (due []string) {
	maps.DeleteFunc(l, func(port string, _ int) bool { return !slices.Contains(without, port) })
	for _, port := range without {
		l[port]++
		if n := l[port]; n > 1 && (n&(n-1) == 0 || n%maxChecks == 0) {
			due = append(due, port)
		}
	}
	slices.Sort(due)
	return due
}
