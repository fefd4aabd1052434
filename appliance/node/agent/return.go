package agent

import (
	"context"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// gaveUp is the epoch after which this node has given up what was given to
// others; it starts from what the node said last.
func (a *Agent) gaveUp() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n, ok := a.cache.self(); ok {
		a.observed = max(a.observed, n.Status.ObservedEpoch)
	}
	return a.observed
}

// reconcileNode is the return of a node that was declared lost: it destroys
// what is no longer its own, says so, and only then takes work again.
//
//	assignment.epoch = 5, observed 4 ─► nothing is started
//	          │ give up: domains, vGPUs, files, local volumes that the store
//	          ▼          gives to others or does not know
//	status.observedEpoch = 5 ─► the planner makes the node Ready
func (a *Agent) reconcileNode(ctx context.Context) (time.Duration, error) {
	n, ok := a.cache.self()
	if !ok || n.Assignment.Epoch <= a.gaveUp() {
		return 0, nil
	}
	a.log.Warn("this node was declared lost: giving up what is no longer its own", "epoch", n.Assignment.Epoch)
	// What this node still believes to be its own is asked about too.
	for _, in := range all(a.cache, a.cache.instances) {
		if err := a.refresh(ctx, api.KindInstance, in.Meta.ID); err != nil {
			return 0, err
		}
	}
	if err := a.sweepRuns(ctx); err != nil {
		return 0, err
	}
	// A volume in the way does not keep the node from working: nobody else has
	// it, and the next sweep tries again.
	if err := a.sweepVolumes(ctx); err != nil {
		a.log.Warn("giving up volumes", "error", err)
	}
	a.mu.Lock()
	a.observed = max(a.observed, n.Assignment.Epoch)
	a.mu.Unlock()
	if err := a.reportNode(ctx); err != nil {
		return 0, err
	}
	for _, k := range a.cache.instanceKeys() {
		a.kick(k)
	}
	return 0, nil
}

// onDuty says whether this node does what only one of all should: the voter
// with the lowest id that is not lost, or where none votes the node itself.
func (a *Agent) onDuty() bool {
	me, voters := false, false
	for _, n := range all(a.cache, a.cache.nodes) {
		if !n.Assignment.Voter || n.Assignment.State == api.NodeLost || n.Meta.DeletedAt != nil {
			continue
		}
		if !voters {
			me = api.NodeID(n.Meta.ID) == a.o.NodeID
		}
		voters = true
	}
	if voters {
		return me
	}
	nodes := all(a.cache, a.cache.nodes)
	return len(nodes) == 0 || api.NodeID(nodes[0].Meta.ID) == a.o.NodeID
}

// onDutyFor says whether this node does what one of those should that reach the
// shared pool: not every node does, not even one that votes.
func (a *Agent) onDutyFor(name string, p sds.Driver) bool {
	var on api.Node
	for _, n := range all(a.cache, a.cache.nodes) {
		reaches := slices.ContainsFunc(n.Status.Pools, func(s api.StoragePool) bool { return s.Name == name && s.ID == p.PoolID() })
		if !reaches || n.Assignment.State == api.NodeLost || n.Meta.DeletedAt != nil {
			continue
		}
		if on.Meta.ID == "" || n.Assignment.Voter && !on.Assignment.Voter {
			on = n
		}
	}
	return api.NodeID(on.Meta.ID) == a.o.NodeID
}

// alone says whether there is no other node.
func (a *Agent) alone() bool {
	for _, n := range all(a.cache, a.cache.nodes) {
		if api.NodeID(n.Meta.ID) != a.o.NodeID {
			return false
		}
	}
	return true
}

// away says whether the node is lost, or not one of the cluster any more.
func (a *Agent) away(id api.NodeID) bool {
	n, ok := get(a.cache, a.cache.nodes, string(id))
	return !ok || n.Assignment.State == api.NodeLost || n.Meta.DeletedAt != nil
}

// removed says whether the node is not one of the cluster any more, for good.
func (a *Agent) removed(id api.NodeID) bool {
	n, ok := get(a.cache, a.cache.nodes, string(id))
	return !ok || n.Meta.DeletedAt != nil
}

func (a *Agent) nameOf(id api.NodeID) string {
	if n, ok := get(a.cache, a.cache.nodes, string(id)); ok {
		return n.Meta.Name
	}
	return string(id)
}
