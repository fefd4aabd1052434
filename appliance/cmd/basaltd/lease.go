package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/lease"
	"github.com/basalt-gpu/basalt/appliance/cluster/transport"
	"github.com/basalt-gpu/basalt/appliance/controlplane/plan"
	"github.com/basalt-gpu/basalt/appliance/node/fence"
)

// openLease creates the parts of the lease: this node's own lease, its observations as a
// witness, and its part as the leader. epoch is the last one for which the node has released
// what it no longer owns.
func (cl *cluster) openLease(raft elector, epoch int64) {
	cl.openLeaderHint(raft)
	cl.leases = lease.NewServer(cl.self.Node, cl.leaderHint, nil)
	cl.witness = lease.NewProber(pathReach{cl.prober, cl.client.AddressBook(), cl.self.Node}, cl.leases.Reports, nil)
	cl.lease = lease.NewClient(lease.ClientOptions{
		Self: cl.self.Node, BootID: lease.BootID(), Epoch: epoch,
		Peers: cl.client, Leader: cl.leaderHint, Local: cl.leases.Heartbeat,
		Reports: cl.witness.Reports, Relays: cl.witness.Relays,
		OnLease: cl.setFenceLease,
		OnRefused: func(epoch int64) {
			cl.log.Warn("the cluster has declared this node lost: releasing objects that it no longer owns", "epoch", epoch)
		},
	})
	cl.server.Handle("POST "+lease.HeartbeatPath, cl.leases)
	cl.server.AllowRelay(func(method, path string) bool { return method == http.MethodPost && path == lease.HeartbeatPath })
}

// setFenceLease passes the lease to basalt-fence, which kills instances when it expires.
func (cl *cluster) setFenceLease(until lease.Instant, epoch int64) {
	if cl.fence == nil {
		return
	}
	if err := cl.fence.SetLease(fence.Lease{Until: time.Duration(until), Node: string(cl.self.Node), Epoch: epoch}); err != nil {
		cl.log.Error("report lease to basalt-fence failed: it will stop this node's instances", "error", err)
	}
}

// leaseMargin is the remaining validity that a lease must have for something new to start.
const leaseMargin = 2 * time.Second

// leaseHolder implements agent.Lease. A lease that basalt-fence has not received is not valid,
// because nothing would stop new instances when it expires.
type leaseHolder struct {
	lease *lease.Client
	fence *fence.Client // nil: no basalt-fence
}

func (l leaseHolder) Valid() bool {
	return l.lease.Valid(leaseMargin) && (l.fence == nil || l.fence.Covers(leaseMargin))
}

// fenceKeeper implements agent.Fence: it keeps instances that may run without a lease.
type fenceKeeper struct{ *fence.Client }

func (f fenceKeeper) Keep(ids []api.InstanceID) error {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = string(id)
	}
	return f.Client.Keep(names)
}

// pathReach implements lease.Reach with the prober's permanent connections.
type pathReach struct {
	prober *transport.Prober
	book   *transport.AddressBook
	self   api.NodeID
}

func (e pathReach) Paths() map[api.NodeID][]string {
	all := map[api.NodeID][]string{}
	for _, n := range e.book.Nodes() {
		if n == e.self {
			continue
		}
		for _, p := range e.book.Paths(n) {
			all[n] = append(all[n], p.Address)
		}
	}
	return all
}

func (e pathReach) LastAnswer(node api.NodeID, path string) (last time.Time) {
	for _, h := range e.prober.PathStates(node) {
		if h.Address == path {
			last = h.Last
		}
	}
	return last
}

// termRetry is the delay before a failed update of the lease server is retried.
const termRetry = 100 * time.Millisecond

// followTerm keeps the term and the members of the lease server up to date.
func (cl *cluster) followTerm(ctx context.Context) error {
	var term uint64
	for ctx.Err() == nil {
		elected, changed := cl.store.LeadershipChanged(), cl.directory.Changed()
		var again <-chan time.Time
		if err := cl.updateTerm(ctx, &term); err != nil {
			cl.log.Warn("update the lease server failed", "error", err)
			again = time.After(termRetry)
		}
		select {
		case <-ctx.Done():
		case <-elected:
		case <-changed:
		case <-again:
		}
	}
	return ctx.Err()
}

// updateTerm updates the lease server with what has changed since the term *last.
func (cl *cluster) updateTerm(ctx context.Context, last *uint64) error {
	now, nodes := cl.store.LeaderTerm(), cl.directory.Nodes()
	switch {
	case now == 0 && *last != 0:
		cl.leases.Deposed()
	case now != *last: // the directory may not be up to date
		var err error
		if nodes, err = api.All[api.Node](ctx, cl.store, api.ListQuery{Kind: api.KindNode}); err != nil {
			return fmt.Errorf("read members in term %d: %w", now, err)
		}
		cl.leases.Elected(now, leaseMembers(nodes))
	case now != 0:
		cl.leases.Members(leaseMembers(nodes))
	}
	*last = now
	cl.adopt()
	if now == 0 {
		return nil
	}
	return cl.revoke(nodes)
}

// revoke revokes the leases of nodes that an operator has declared to be off.
func (cl *cluster) revoke(nodes []api.Node) error {
	var errs []error
	for _, n := range nodes {
		if n.Spec.Off && n.Assignment.State != api.NodeLost {
			if err := cl.leases.Revoke(api.NodeID(n.Meta.ID)); err != nil {
				errs = append(errs, fmt.Errorf("revoke lease of node %s: %w", n.Meta.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}

func leaseMembers(nodes []api.Node) []lease.Member {
	out := make([]lease.Member, 0, len(nodes))
	for _, n := range nodes {
		out = append(out, lease.Member{ID: api.NodeID(n.Meta.ID), Name: n.Meta.Name, Epoch: n.Assignment.Epoch, Lost: n.Assignment.State == api.NodeLost})
	}
	return out
}

// adopt sets the lease's epoch to the one for which the agent has released what it no longer
// owns.
func (cl *cluster) adopt() {
	for _, n := range cl.directory.Nodes() {
		if n.Meta.ID == string(cl.self.Node) && n.Status.ObservedEpoch > cl.lease.State().Epoch {
			cl.lease.Adopt(n.Status.ObservedEpoch)
		}
	}
}

// health returns the planner's view of the nodes in a term. The map is nil until the lease
// server has begun the term.
func (cl *cluster) health(term uint64) (string, map[string]plan.Health) {
	now, verdicts := cl.leases.Verdicts()
	if len(verdicts) == 0 {
		return string(cl.self.Node), nil
	}
	lost := map[string]bool{}
	for _, n := range cl.directory.Nodes() {
		lost[n.Meta.ID] = n.Assignment.State == api.NodeLost
	}
	all := map[string]plan.Health{}
	for _, v := range verdicts {
		if v.Term != term {
			return string(cl.self.Node), nil
		}
		if lost[string(v.Node)] && now.Sub(v.LastHeartbeat) < lease.Silence {
			continue // the verdict has been applied, and the node is back
		}
		if v.State >= lease.Suspect {
			all[string(v.Node)] = plan.Health{Suspect: true, Fenced: v.State == lease.Fenced, Why: v.Why}
		}
	}
	return string(cl.self.Node), all
}
