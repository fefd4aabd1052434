package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/appliance/cluster/membership"
	"github.com/basalt-gpu/basalt/appliance/cluster/transport"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
)

// damagedNode is a member whose store is lost or damaged: it does not vote and serves nothing of
// the store. It keeps its lease, so that its instances continue to run, until it is ordered to
// rebuild the store (basalt node rebuild). Then the others remove it from Raft's members, it
// begins with an empty store, they add it again as a follower, and as a voter once it has
// caught up.
type damagedNode struct {
	*cluster
	c       config
	ordered chan struct{} // closed by Rebuild

	mu        sync.Mutex // guards what is below
	message   string
	isOrdered bool // reports whether ordered is closed
}

// runDamaged runs a node whose store is damaged. why is the damage; nil: the rebuild has been ordered
// already.
func runDamaged(ctx context.Context, c config, rec membership.Record, why error, log *slog.Logger) (err error) {
	id, err := nodeID(filepath.Join(c.data, "node-id"))
	if err != nil {
		return err
	}
	self, err := selfOf(c, id)
	if err != nil {
		return err
	}
	p := &damagedNode{c: c, ordered: make(chan struct{})}
	if p.cluster, err = openWire(c, rec, self, log); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	l, err := listenLocal(filepath.Join(c.run, "api.sock"))
	if err != nil {
		return err
	}
	if why != nil { // set before the socket is served
		p.setMessage(advice(why, slices.ContainsFunc(p.client.AddressBook().Nodes(), func(n api.NodeID) bool { return n != p.self.Node })))
		log.Error("open store failed; instances on this node continue to run", "error", p.Setup(ctx).Message)
	} else {
		p.order()
	}
	srv := &http.Server{Handler: membership.Handler(p), ConnContext: membership.WithPeer, ReadHeaderTimeout: 10 * time.Second}
	var running sync.WaitGroup
	running.Go(func() {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			p.requestRestart(err)
		}
	})
	ctx, cancel := context.WithCancel(ctx)
	running.Go(func() { p.live(ctx) })
	running.Go(func() { p.work(ctx) })
	select {
	case <-ctx.Done():
		err = ctx.Err()
	case err = <-p.restart:
	}
	end, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	_ = srv.Shutdown(end) // let the call that has ended this life receive its answer
	done()
	cancel()
	running.Wait()
	return err
}

// noStore is the elector of a node that is not part of Raft.
type noStore struct{}

func (noStore) Verify(context.Context) (uint64, error) { return 0, store.ErrNotLeader }
func (noStore) IsLeader() bool                         { return false }
func (noStore) LeaderID() string                       { return "" }
func (noStore) LeadershipChanged() <-chan struct{}     { return nil }

// live keeps the lease.
func (p *damagedNode) live(ctx context.Context) {
	var n api.Node
	for ; ; sleep(ctx, time.Second) {
		var err error
		if n, err = p.ownNode(ctx); err == nil {
			break
		}
		if ctx.Err() != nil {
			return
		}
		p.log.Warn("no other member is reachable; without one this node gets no lease", "error", err)
	}
	p.openLease(noStore{}, n.Status.ObservedEpoch)
	p.serve(ctx)
	var running sync.WaitGroup
	running.Go(func() { p.prober.Run(ctx) })
	running.Go(func() { p.report(ctx) })
	for _, run := range []func(context.Context) error{p.witness.Run, p.lease.Run, p.leaderHint.run} {
		running.Go(func() { _ = run(ctx) }) // ends with ctx
	}
	running.Wait()
}

// reportEvery is the interval of reports to the cluster.
const reportEvery = 5 * time.Second

// report reports the damage to the cluster, in place of the agent.
func (p *damagedNode) report(ctx context.Context) {
	began := time.Now().UTC()
	for ; ctx.Err() == nil; sleep(ctx, reportEvery) {
		n, err := p.ownNode(ctx)
		if err == nil {
			s := n.Status
			s.SeenAt, s.Version = time.Now().UTC(), version
			s.Conditions = []api.Condition{{Type: api.ConditionStore, Reason: "damaged", Message: p.Setup(ctx).Message, Since: began}}
			_, err = remote{p.client}.Apply(ctx, string(p.leaderHint.LeaderID()), api.Batch{Commands: []api.Command{
				{Op: api.OpReport, Kind: api.KindNode, ID: n.Meta.ID, Name: n.Meta.Name, Expect: api.AnyRevision, Data: api.Encode(s)}}})
		}
		if err != nil && ctx.Err() == nil {
			p.log.Warn("report damage of the store to the cluster failed", "error", err)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

const (
	ownNodePath = "/store/self"
	rebuildPath = "/store/rebuild"
	membersPath = "/store/standing"
)

// advice returns the description of the damage and the command that repairs it. among: there
// are other members from which the store can be rebuilt.
func advice(why error, among bool) string {
	if !among {
		return fmt.Sprintf("%v; this node has no other to make it anew of: put back a copy of all of its data directory, or empty that and restore a backup with: basalt cluster restore FILE", why)
	}
	return fmt.Sprintf("%v; to rebuild the store from the other nodes, run on this node: basalt node rebuild", why)
}

// memberView is the answer of a member with a store: its name and its view of the members.
type memberView struct {
	Name    string         `json:"name"`
	Members []store.Member `json:"members"`
}

// clusterView is the state of the cluster without this node.
type clusterView struct {
	self    string
	voters  []string // according to the member that lists the most; empty: no member has answered
	answers []string // IDs of the members with a store that have answered
	names   []string // their names, sorted
}

// majority returns how many voters must have a store and answer, and how many do.
func (s clusterView) majority() (need, have int) {
	for _, id := range s.voters {
		if id != s.self && slices.Contains(s.answers, id) {
			have++
		}
	}
	return len(s.voters)/2 + 1, have
}

// stuck reports whether no leader can be elected without this node's vote, unless more members
// return.
func (s clusterView) stuck() bool {
	need, have := s.majority()
	return have < need
}

// advice returns the command for a cluster that has lost the majority of its voters.
func (s clusterView) advice() string {
	where := "a node that still has its store"
	if len(s.names) > 0 {
		where += " (" + strings.Join(s.names, ", ") + ")"
	}
	what := "no other member with a store answers"
	if need, have := s.majority(); len(s.voters) > 0 {
		what = fmt.Sprintf("%d of the cluster's %d voters have a store and answer, and %d must, to let this node begin anew", have, len(s.voters), need)
	}
	name := "NODE"
	if len(s.names) > 0 {
		name = s.names[0]
	}
	return fmt.Sprintf("%s; bring the others back, or, if their stores are lost for good, switch them off and run on %s: basalt cluster recover --i-am %s; it alone is the cluster then", what, where, name)
}

// pollMembers polls the other members.
func (p *damagedNode) pollMembers(ctx context.Context) clusterView {
	out := clusterView{self: string(p.self.Node)}
	for _, n := range p.client.AddressBook().Nodes() {
		if n == p.self.Node {
			continue
		}
		quick, cancel := context.WithTimeout(ctx, 10*time.Second)
		var s memberView
		err := p.client.Call(quick, n, http.MethodPost, membersPath, struct{}{}, &s)
		cancel()
		if err != nil {
			continue
		}
		out.answers, out.names = append(out.answers, string(n)), append(out.names, s.Name)
		if len(s.Members) > len(out.voters) {
			out.voters = nil
			for _, m := range s.Members {
				if m.Voter {
					out.voters = append(out.voters, m.ID)
				}
			}
		}
	}
	slices.Sort(out.names)
	return out
}

// serveDamaged answers the calls of members without a store.
func (cl *cluster) serveDamaged(s *store.Store) {
	cl.server.Handle("POST "+ownNodePath, transport.JSON(func(ctx context.Context, caller api.NodeID, _ struct{}) (n api.Node, err error) {
		o, err := s.Get(ctx, api.KindNode, string(caller))
		if err != nil {
			return n, fmt.Errorf("read node %s: %w", caller, err)
		}
		return api.Decode[api.Node](o)
	}))
	cl.server.Handle("POST "+rebuildPath, transport.JSON(func(ctx context.Context, caller api.NodeID, _ struct{}) (struct{}, error) {
		return struct{}{}, s.RemoveMember(ctx, string(caller)) // MaintainVoters adds it again, without a vote
	}))
	cl.server.Handle("POST "+membersPath, transport.JSON(func(context.Context, api.NodeID, struct{}) (memberView, error) {
		return memberView{cl.self.Name, s.Members()}, nil
	}))
}

// each calls the other members until one answers without an error.
func (p *damagedNode) each(ctx context.Context, path string, out any) error {
	err := errors.New("this node knows no other member")
	for _, n := range p.client.AddressBook().Nodes() {
		if n == p.self.Node {
			continue
		}
		quick, cancel := context.WithTimeout(ctx, 10*time.Second)
		err = p.client.Call(quick, n, http.MethodPost, path, struct{}{}, out)
		cancel()
		if err == nil {
			return nil
		}
		err = fmt.Errorf("ask node %s: %w", n, err)
	}
	return err
}

func (p *damagedNode) ownNode(ctx context.Context) (n api.Node, err error) {
	return n, p.each(ctx, ownNodePath, &n)
}

// work waits for the order to rebuild, and executes it.
func (p *damagedNode) work(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-p.ordered:
	}
	for ; ctx.Err() == nil; sleep(ctx, time.Second) {
		err := p.rebuild(ctx)
		if err == nil {
			p.log.Info("rebuilding the store from other members")
			p.requestRestart(errBeginAnew)
			return
		}
		if s := p.pollMembers(ctx); s.stuck() {
			err = errors.New(s.advice())
		}
		p.setMessage(fmt.Sprintf("basalt node rebuild makes no progress: %v", err))
		p.log.Warn("rebuild store failed, retrying", "error", err)
	}
}

// rebuild removes this node from the voters and discards the store. It can be repeated from its
// beginning until the record marks it as done, because a node that is not one of Raft's
// members has not acknowledged anything.
func (p *damagedNode) rebuild(ctx context.Context) error {
	if err := p.each(ctx, rebuildPath, &struct{}{}); err != nil { // only the leader's answer succeeds
		return fmt.Errorf("remove this node from the voters: %w", err)
	}
	path := filepath.Join(p.c.data, "store")
	if _, err := os.Stat(path); err == nil {
		if err := os.RemoveAll(path + ".damaged"); err != nil {
			return err
		}
		if err := os.Rename(path, path+".damaged"); err != nil {
			return err
		}
	}
	if err := atomicfile.Sync(p.c.data); err != nil {
		return err
	}
	if err := store.NewWatermark(membership.WatermarkFile(p.dir), string(p.self.Node), ""); err != nil {
		return fmt.Errorf("create a watermark of the store: %w", err)
	}
	return p.change(func(r *membership.Record) { r.Rebuild = false })
}

func (p *damagedNode) setMessage(message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.message = message
}

func (p *damagedNode) order() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isOrdered {
		p.isOrdered = true
		close(p.ordered)
	}
}

// Setup implements membership.Node: it returns the state of the node.
func (p *damagedNode) Setup(context.Context) api.Setup {
	p.mu.Lock()
	defer p.mu.Unlock()
	return api.Setup{State: api.SetupDamaged, Message: p.message, Node: p.self.Name, NodeID: p.self.Node, Cluster: p.certificates.Cluster(),
		Addresses: []string{p.self.APIAddress}, PeerAddresses: p.self.PeerAddresses, Version: version}
}

// Rebuild orders the rebuild of the store.
func (p *damagedNode) Rebuild(context.Context) error {
	if err := p.change(func(r *membership.Record) { r.Rebuild = true }); err != nil {
		return err
	}
	p.order()
	return nil
}

// Leave fails: it is for members with a store.
func (p *damagedNode) Leave(context.Context) error { return isDamaged() }

// Init fails: it is for a node without a cluster.
func (p *damagedNode) Init(context.Context, string) error { return isDamaged() }

// Join fails: it is for a node without a cluster.
func (p *damagedNode) Join(context.Context, string) error { return isDamaged() }

// Restore fails: it is for a node without a cluster.
func (p *damagedNode) Restore(context.Context, io.Reader) error { return isDamaged() }

func isDamaged() error {
	return api.Errorf(api.CodeState, "this node is a member of a cluster whose store here is lost or damaged").
		WithHint("basalt cluster status says what is wrong; basalt node rebuild creates the store again")
}
