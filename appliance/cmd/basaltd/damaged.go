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
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/member"
	"github.com/basalt-gpu/basalt/appliance/cluster/peer"
	"github.com/basalt-gpu/basalt/appliance/durable"
	"github.com/basalt-gpu/basalt/appliance/store"
)

// A member whose store is lost or damaged has no say in the cluster and shows
// nothing of it. It keeps its lease, so that its machines go on, until it is told
// to make the store anew (basalt node rebuild): the others take it out of Raft's
// members, it begins with an empty store, they let it follow again, and vote when
// it has caught up.
type patient struct {
	*cluster
	c       config
	ordered chan struct{} // closed by Rebuild

	mu      sync.Mutex // guards what is below
	message string
	told    bool // ordered is closed
}

// mend is the life of such a node. why is what is wrong; nil: it was told to
// rebuild already.
func mend(ctx context.Context, c config, rec member.Record, why error, log *slog.Logger) (err error) {
	id, err := nodeID(filepath.Join(c.data, "node-id"))
	if err != nil {
		return err
	}
	self, err := selfOf(c, id)
	if err != nil {
		return err
	}
	p := &patient{c: c, ordered: make(chan struct{})}
	if p.cluster, err = openWire(c, rec, self, log); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	l, err := listenLocal(filepath.Join(c.run, "api.sock"))
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: member.Handler(p), ConnContext: member.WithPeer, ReadHeaderTimeout: 10 * time.Second}
	var running sync.WaitGroup
	running.Go(func() {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			p.begin(err)
		}
	})
	ctx, cancel := context.WithCancel(ctx)
	running.Go(func() { p.live(ctx) })
	if why != nil {
		p.say(why.Error())
		log.Error("the store cannot be used; machines on this node go on", "error", why, "hint", "basalt node rebuild makes it anew of the other nodes'")
	} else {
		p.order()
	}
	running.Go(func() { p.work(ctx) })
	select {
	case <-ctx.Done():
		err = ctx.Err()
	case err = <-p.restart:
	}
	end, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	_ = srv.Shutdown(end) // the call that has ended this life still gets its answer
	done()
	cancel()
	running.Wait()
	return err
}

// noStore is Raft of a node that has no part in it: elector.
type noStore struct{}

func (noStore) Verify(context.Context) (uint64, error) { return 0, store.ErrNotLeader }
func (noStore) IsLeader() bool                         { return false }
func (noStore) LeaderID() string                       { return "" }

// live keeps the lease.
func (p *patient) live(ctx context.Context) {
	var n api.Node
	for ; ; sleep(ctx, time.Second) {
		var err error
		if n, err = p.ownNode(ctx); err == nil {
			break
		}
		if ctx.Err() != nil {
			return
		}
		p.log.Warn("no other member answers; without one there is no lease", "error", err)
	}
	p.openLease(noStore{}, n.Status.ObservedEpoch)
	p.serve(ctx)
	var running sync.WaitGroup
	running.Go(func() { p.prober.Run(ctx) })
	running.Go(func() { p.report(ctx) })
	for _, run := range []func(context.Context) error{p.witness.Run, p.lease.Run, p.guide.run} {
		running.Go(func() { _ = run(ctx) }) // ends with ctx
	}
	running.Wait()
}

// reportEvery is how often the cluster is told.
const reportEvery = 5 * time.Second

// report tells the cluster what is wrong here, in the agent's place.
func (p *patient) report(ctx context.Context) {
	began := time.Now().UTC()
	for ; ctx.Err() == nil; sleep(ctx, reportEvery) {
		n, err := p.ownNode(ctx)
		if err == nil {
			s := n.Status
			s.SeenAt, s.Version = time.Now().UTC(), version
			s.Conditions = []api.Condition{{Type: api.ConditionStore, Reason: "damaged", Message: p.Setup(ctx).Message, Since: began}}
			_, err = remote{p.client}.Apply(ctx, string(p.guide.LeaderID()), api.Batch{Commands: []api.Command{
				{Op: api.OpReport, Kind: api.KindNode, ID: n.Meta.ID, Name: n.Meta.Name, Expect: api.AnyRevision, Data: api.Encode(s)}}})
		}
		if err != nil && ctx.Err() == nil {
			p.log.Warn("the cluster does not hear what is wrong here", "error", err)
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
)

// serveDamaged answers what members without a store ask.
func (cl *cluster) serveDamaged(s *store.Store) {
	cl.server.Handle("POST "+ownNodePath, peer.JSON(func(ctx context.Context, caller api.NodeID, _ struct{}) (n api.Node, err error) {
		o, err := s.Get(ctx, api.KindNode, string(caller))
		if err != nil {
			return n, err
		}
		return api.Decode[api.Node](o)
	}))
	cl.server.Handle("POST "+rebuildPath, peer.JSON(func(ctx context.Context, caller api.NodeID, _ struct{}) (struct{}, error) {
		return struct{}{}, s.RemoveMember(ctx, string(caller)) // the council adds it again, without a vote
	}))
}

// each calls the other members until one's answer will do.
func (p *patient) each(ctx context.Context, path string, out any) error {
	err := errors.New("this node knows of no other member")
	for _, n := range p.client.Book().Nodes() {
		if n == p.self.Node {
			continue
		}
		quick, cancel := context.WithTimeout(ctx, 10*time.Second)
		err = p.client.Call(quick, n, http.MethodPost, path, struct{}{}, out)
		cancel()
		if err == nil {
			return nil
		}
	}
	return err
}

func (p *patient) ownNode(ctx context.Context) (n api.Node, err error) {
	return n, p.each(ctx, ownNodePath, &n)
}

// work waits for the order, and carries it out.
func (p *patient) work(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-p.ordered:
	}
	for ; ctx.Err() == nil; sleep(ctx, time.Second) {
		err := p.rebuild(ctx)
		if err == nil {
			p.log.Info("the store is made anew of the other members'")
			p.begin(errBeginAnew)
			return
		}
		p.say(fmt.Sprintf("making the store anew: %v", err))
		p.log.Warn("the store cannot be made anew yet", "error", err)
	}
}

// rebuild can be done again from its beginning, until the record says that it is
// done: a node that is not among Raft's members yet has told nobody anything.
func (p *patient) rebuild(ctx context.Context) error {
	if err := p.each(ctx, rebuildPath, &struct{}{}); err != nil { // the leader's will do
		return fmt.Errorf("leave the cluster's voters: %w", err)
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
	if err := durable.SyncDir(p.c.data); err != nil {
		return err
	}
	if err := store.NewPromise(member.PromiseFile(p.dir), string(p.self.Node), ""); err != nil {
		return err
	}
	return p.change(func(r *member.Record) { r.Rebuild = false })
}

func (p *patient) say(message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.message = message
}

func (p *patient) order() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.told {
		p.told = true
		close(p.ordered)
	}
}

// Setup says what the node is.
func (p *patient) Setup(context.Context) api.Setup {
	p.mu.Lock()
	defer p.mu.Unlock()
	return api.Setup{State: api.SetupDamaged, Message: p.message, Node: p.self.Name, NodeID: p.self.Node, Cluster: p.keeper.Cluster(),
		Addresses: []string{p.self.APIAddress}, PeerAddresses: p.self.PeerAddresses, Version: version}
}

// Rebuild makes the store anew.
func (p *patient) Rebuild(context.Context) error {
	if err := p.change(func(r *member.Record) { r.Rebuild = true }); err != nil {
		return err
	}
	p.order()
	return nil
}

// Leave is for members with a store.
func (p *patient) Leave(context.Context) error { return isDamaged() }

// Init is for a node without a cluster.
func (p *patient) Init(context.Context, string) error { return isDamaged() }

// Join is for a node without a cluster.
func (p *patient) Join(context.Context, string) error { return isDamaged() }

// Restore is for a node without a cluster.
func (p *patient) Restore(context.Context, io.Reader) error { return isDamaged() }

func isDamaged() error {
	return api.Errorf(api.CodeState, "this node is a member of a cluster whose store here is lost or damaged").
		WithHint("basalt cluster status says what is wrong; basalt node rebuild makes the store anew")
}
