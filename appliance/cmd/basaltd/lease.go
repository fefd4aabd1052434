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

// openLease wires the lease: this node's own, its eyes as a witness, and its
// part when it leads.
// epoch is the last for which the node has cleared up.
func (cl *cluster) openLease(raft elector, epoch int64) {
	cl.openLeaderHint(raft)
	cl.leases = lease.NewServer(cl.self.Node, cl.leaderHint, nil)
	cl.witness = lease.NewProber(eyes{cl.prober, cl.client.Book(), cl.self.Node}, cl.leases.Sights, nil)
	cl.lease = lease.NewClient(lease.ClientOptions{
		Self: cl.self.Node, BootID: lease.BootID(), Epoch: epoch,
		Peers: cl.client, Leader: cl.leaderHint, Local: cl.leases.Heartbeat,
		Sights: cl.witness.Sights, Relays: cl.witness.Relays,
		OnLease: cl.tellFence,
		OnRefused: func(epoch int64) {
			cl.log.Warn("the cluster has declared this node lost: releasing objects that it no longer owns", "epoch", epoch)
		},
	})
	cl.server.Handle("POST "+lease.HeartbeatPath, cl.leases)
	cl.server.AllowRelay(func(method, path string) bool { return method == http.MethodPost && path == lease.HeartbeatPath })
}

// tellFence hands the deadline to basalt-fence, which kills when it passes.
func (cl *cluster) tellFence(until lease.Instant, epoch int64) {
	if cl.fence == nil {
		return
	}
	if err := cl.fence.SetLease(fence.Lease{Until: time.Duration(until), Node: string(cl.self.Node), Epoch: epoch}); err != nil {
		cl.log.Error("report lease to basalt-fence failed: it will stop this node's instances", "error", err)
	}
}

// leaseMargin is what must be left of the lease for something new to start.
const leaseMargin = 2 * time.Second

// leaseHolder is agent.Lease. A lease that basalt-fence has not heard of does
// not count: nobody would stop at its end what starts now.
type leaseHolder struct {
	lease *lease.Client
	fence *fence.Client // nil: there is none
}

func (l leaseHolder) Valid() bool {
	return l.lease.Valid(leaseMargin) && (l.fence == nil || l.fence.Covers(leaseMargin))
}

// keeper of instances that may run without a lease: agent.Fence.
type fenceKeeper struct{ *fence.Client }

func (f fenceKeeper) Keep(ids []api.InstanceID) error {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = string(id)
	}
	return f.Client.Keep(names)
}

// eyes is lease.Reach over the prober's standing connections.
type eyes struct {
	prober *transport.Prober
	book   *transport.Book
	self   api.NodeID
}

func (e eyes) Paths() map[api.NodeID][]string {
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

func (e eyes) Heard(node api.NodeID, path string) (last time.Time) {
	for _, h := range e.prober.Heard(node) {
		if h.Address == path {
			last = h.Last
		}
	}
	return last
}

// termAgain is how long what the lease server could not be told waits.
const termAgain = 100 * time.Millisecond

// followTerm tells the lease server who leads, and who there is.
func (cl *cluster) followTerm(ctx context.Context) error {
	var term uint64
	for ctx.Err() == nil {
		elected, changed := cl.store.LeadChange(), cl.directory.Changed()
		var again <-chan time.Time
		if err := cl.tellTerm(ctx, &term); err != nil {
			cl.log.Warn("leases", "error", err)
			again = time.After(termAgain)
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

// tellTerm tells it what has changed since the term that it was told of.
func (cl *cluster) tellTerm(ctx context.Context, told *uint64) error {
	now, nodes := cl.store.LeadTerm(), cl.directory.Nodes()
	switch {
	case now == 0 && *told != 0:
		cl.leases.Deposed()
	case now != *told: // the directory may not have heard of all of it
		var err error
		if nodes, err = api.All[api.Node](ctx, cl.store, api.ListQuery{Kind: api.KindNode}); err != nil {
			return fmt.Errorf("read members in term %d: %w", now, err)
		}
		cl.leases.Elected(now, leaseMembers(nodes))
	case now != 0:
		cl.leases.Members(leaseMembers(nodes))
	}
	*told = now
	cl.adopt()
	if now == 0 {
		return nil
	}
	return cl.revoke(nodes)
}

// revoke takes the lease of nodes of which an operator says that they are off.
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

// adopt takes on the epoch for which the agent has cleared up.
func (cl *cluster) adopt() {
	for _, n := range cl.directory.Nodes() {
		if n.Meta.ID == string(cl.self.Node) && n.Status.ObservedEpoch > cl.lease.State().Epoch {
			cl.lease.Adopt(n.Status.ObservedEpoch)
		}
	}
}

// health is what the planner is told of the nodes in a term; nothing before
// the lease server has begun the term.
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
		if lost[string(v.Node)] && now.Sub(v.Heard) < lease.Silence {
			continue // the verdict is carried out, and the node is back
		}
		if v.State >= lease.Suspect {
			all[string(v.Node)] = plan.Health{Suspect: true, Fenced: v.State == lease.Fenced, Why: v.Why}
		}
	}
	return string(cl.self.Node), all
}
