package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptrace"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/lease"
	"github.com/basalt-gpu/basalt/appliance/cluster/membership"
	"github.com/basalt-gpu/basalt/appliance/cluster/pki"
	"github.com/basalt-gpu/basalt/appliance/cluster/transport"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
	"github.com/basalt-gpu/basalt/appliance/node/fence"
)

// cluster is a member's part of the cluster: the connections, the directory of members, the
// lease.
//
//	certificates (identity) ─► peers (connections) ─► store (Raft)
//	                       ▲                      │ Node objects
//	                       └────── directory ◄────┘
//	prober ─► leases (witness, heartbeats) ─► fence
type cluster struct {
	dir  string
	self membership.Self
	log  *slog.Logger

	mu  sync.Mutex // guards rec
	rec membership.Record

	certificates *pki.CertificateStore
	client       *transport.Client
	server       *transport.Server
	directory    *membership.Directory
	prober       *transport.Prober
	store        *store.Store

	leaderHint *leaderHint   // the leader, also where Raft does not know it
	leases     *lease.Server // the leader's part
	lease      *lease.Client // this node's own
	witness    *lease.Prober
	fence      *fence.Client

	splits splits // differences of tables that this node found as the leader

	restart chan error // the reason to open everything again
}

// openWire opens what a member needs before its store: its identity and the peer port, which is
// served from here on because Raft needs it.
func openWire(c config, rec membership.Record, self membership.Self, log *slog.Logger) (cl *cluster, err error) {
	cl = &cluster{dir: membership.Dir(c.data), self: self, log: log, rec: rec, restart: make(chan error, 1)}
	if cl.certificates, err = pki.Open(cl.dir); err != nil {
		return nil, fmt.Errorf("open the certificates in %s: %w", cl.dir, err)
	}
	book := new(transport.AddressBook)
	cl.client = transport.NewClient(cl.certificates, book, log)
	var server atomic.Pointer[transport.Server]
	cl.directory = membership.NewDirectory(membership.DirectoryOptions{
		Self: self, Known: rec.Peers, Publish: book.Replace, Save: cl.savePeers, Log: log,
		Disconnect: func(id api.NodeID) {
			if s := server.Load(); s != nil {
				s.Disconnect(id)
			}
		},
	})
	cl.server, err = transport.NewServer(transport.Options{Certificates: cl.certificates, Client: cl.client, Listen: c.peerListen, Member: cl.directory.Member, Log: log})
	if err != nil {
		return nil, fmt.Errorf("listen for other nodes at %s: %w", c.peerListen, err)
	}
	server.Store(cl.server)
	cl.prober = transport.NewProber(cl.client)
	if c.fence != "none" {
		cl.fence = fence.Dial(c.fence)
	}
	return cl, nil
}

func (cl *cluster) savePeers(peers map[api.NodeID][]string) error {
	return cl.change(func(r *membership.Record) { r.Peers = maps.Clone(peers) })
}

// change changes the membership record and writes it to the disk.
func (cl *cluster) change(f func(*membership.Record)) error {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	f(&cl.rec)
	if err := cl.rec.Save(cl.dir); err != nil {
		return fmt.Errorf("save the membership in %s: %w", cl.dir, err)
	}
	return nil
}

// storeOptions adds the options of a store that is one of several.
func (cl *cluster) storeOptions(o store.Options) store.Options {
	o.Transport = raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: cl.server.Raft(), MaxPool: 3, Timeout: 10 * time.Second, Logger: store.RaftLogger(cl.log),
	})
	o.Bootstrap = cl.rec.Founder && membership.Bootstrapping(cl.dir)
	o.Watermark = membership.WatermarkFile(cl.dir)
	o.Broken = func(why error) { cl.requestRestart(afterBroken(why)) }
	o.Remote = remote{cl.client}
	return o
}

// afterBroken returns the error with which the node ends when its store has failed: everything
// is opened again, which finds the cause, unless a restart cannot help.
func afterBroken(why error) error {
	var old *state.TooOld
	if errors.As(why, &old) {
		return why
	}
	return errBeginAnew
}

// remote implements store.Remote over the connections to other members.
type remote struct{ client *transport.Client }

func (r remote) call(ctx context.Context, leader, path string, in, out any) error {
	sent := false
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent = true }})
	err := r.client.Call(ctx, api.NodeID(leader), http.MethodPost, path, in, out)
	switch {
	case err == nil:
		return nil
	case isNotLeader(err):
		return store.ErrNotLeader
	case !sent:
		return fmt.Errorf("%w: %w", store.ErrNotSent, err)
	}
	return err //nolint:wrapcheck // the store returns the leader's errors as its own
}

// isNotLeader reports whether an error that came over the wire is store.ErrNotLeader.
func isNotLeader(err error) bool {
	var got, want *api.Error
	return errors.As(err, &got) && errors.As(store.ErrNotLeader, &want) && got.Code == want.Code && got.Message == want.Message
}

// Apply applies a batch on the leader.
func (r remote) Apply(ctx context.Context, leader string, b api.Batch) (out []api.Object, err error) {
	return out, r.call(ctx, leader, "/store/apply", b, &out)
}

// ReadIndex returns the leader's read index.
func (r remote) ReadIndex(ctx context.Context, leader string) (index uint64, err error) {
	return index, r.call(ctx, leader, "/store/index", nil, &index)
}

// openStore sets the store and mounts the calls that members make to each other.
func (cl *cluster) openStore(ctx context.Context, s *store.Store) {
	cl.store = s
	cl.server.Handle("POST /store/apply", transport.JSON(func(ctx context.Context, _ api.NodeID, b api.Batch) ([]api.Object, error) {
		return s.ApplyLocal(ctx, b)
	}))
	cl.server.Handle("POST /store/index", transport.JSON(func(ctx context.Context, _ api.NodeID, _ struct{}) (uint64, error) {
		return s.ReadIndex(ctx)
	}))
	cl.server.Handle("POST /certificate", transport.JSON(func(ctx context.Context, caller api.NodeID, csr []byte) (pki.Issued, error) {
		return membership.Sign(ctx, s, caller, csr, time.Now())
	}))
	cl.server.HandleJoin(transport.JSON(func(ctx context.Context, _ api.NodeID, r membership.Request) (membership.JoinResponse, error) {
		level, id, err := s.Settled()
		if err != nil {
			return membership.JoinResponse{}, fmt.Errorf("read the state of the store: %w", err)
		}
		return membership.Admit(ctx, s, membership.Cluster{Level: level, ID: id}, r, time.Now())
	}))
	cl.server.Handle("POST "+reachesPath, transport.JSON(func(ctx context.Context, _ api.NodeID, index uint64) (struct{}, error) {
		return struct{}{}, s.Reaches(ctx, index)
	}))
	cl.server.Handle("POST "+levelPath, transport.JSON(func(context.Context, api.NodeID, struct{}) (int, error) { return state.Level, nil }))
	cl.server.Handle("POST "+trustPath, transport.JSON(func(context.Context, api.NodeID, struct{}) (membership.Trust, error) {
		return membership.TrustOf(cl.certificates), nil
	}))
	cl.serveDamaged(s)
	cl.serveCompare(s)
	epoch := int64(0)
	if o, err := s.Get(store.Stale(ctx), api.KindNode, string(cl.self.Node)); err == nil {
		if n, err := api.Decode[api.Node](o); err == nil {
			epoch = n.Status.ObservedEpoch
		}
	}
	cl.openLease(s, epoch)
	cl.serve(ctx)
}

// serve serves the other members until ctx ends.
func (cl *cluster) serve(ctx context.Context) {
	go func() {
		if err := cl.server.Serve(ctx); err != nil && ctx.Err() == nil {
			cl.requestRestart(fmt.Errorf("serve other nodes: %w", err))
		}
	}()
}

const reachesPath = "/store/reaches"

// caughtUp reports an error unless the node has everything that this one, the leader, has.
func (cl *cluster) caughtUp(ctx context.Context, node api.NodeID) error {
	if err := cl.client.Call(ctx, node, http.MethodPost, reachesPath, cl.store.Stats().Commit, nil); err != nil {
		return fmt.Errorf("query whether node %s has caught up: %w", node, err)
	}
	return nil
}

// requestRestart ends the present life of the node with a reason. Only the first reason counts.
func (cl *cluster) requestRestart(why error) {
	select {
	case cl.restart <- why:
	default: // it ends already
	}
}

// sign requests a new certificate. The node can sign it itself if its store answers.
func (cl *cluster) sign(ctx context.Context, csr []byte) (pki.Issued, error) {
	issued, err := membership.Sign(ctx, cl.store, cl.self.Node, csr, time.Now())
	if err != nil {
		return issued, fmt.Errorf("sign a new certificate of node %s: %w", cl.self.Node, err)
	}
	return issued, nil
}

// run returns the tasks that run while the node is a member.
func (cl *cluster) run() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"directory": func(ctx context.Context) error {
			return cl.directory.Run(store.Stale(ctx), func(ctx context.Context, since int64) (<-chan api.Event, error) {
				return cl.store.WatchKinds(ctx, since, api.KindNode)
			})
		},
		"voters": func(ctx context.Context) error {
			return membership.MaintainVoters(ctx, cl.self.Node, cl.store, cl.directory, cl.caughtUp, cl.log)
		},
		"certificate": func(ctx context.Context) error {
			cl.certificates.Run(ctx, cl.sign, membership.Follow(cl.store, cl.certificates, cl.sign), cl.log)
			return ctx.Err()
		},
		"prober":      func(ctx context.Context) error { cl.prober.Run(ctx); return ctx.Err() },
		"witness":     cl.witness.Run,
		"lease":       cl.lease.Run,
		"leader hint": cl.leaderHint.run,
		"term":        cl.followTerm,
		"presence":    cl.register,
		"membership":  cl.watchRemoval,
	}
}

// register writes this node's addresses to the cluster, and retries until it succeeds.
func (cl *cluster) register(ctx context.Context) error {
	for ctx.Err() == nil {
		var err error
		if cl.rec.Founder {
			err = membership.WriteFirstObjects(ctx, cl.store, cl.dir, cl.rec, cl.self)
		} else {
			err = membership.PublishSelf(ctx, cl.store, cl.self)
		}
		if err == nil {
			<-ctx.Done()
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	return ctx.Err()
}

// watchRemoval ends this life once the node has been removed from the cluster.
func (cl *cluster) watchRemoval(ctx context.Context) error {
	for ctx.Err() == nil {
		changed := cl.directory.Changed()
		if cl.directory.Removed() {
			return cl.endMembership("the node was removed from the cluster")
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
	return ctx.Err()
}

// endMembership records that the node is no longer a member, and restarts it.
func (cl *cluster) endMembership(why string) error {
	cl.log.Warn(why)
	if err := cl.change(func(r *membership.Record) { r.State = api.SetupLeft }); err != nil {
		return err
	}
	cl.requestRestart(errBeginAnew)
	return nil
}

// errBeginAnew makes the process open everything again, according to its membership record.
var errBeginAnew = errors.New("begin anew")

// close closes the connections.
func (cl *cluster) close() error {
	cl.client.Close()
	_ = cl.server.Close() // closed already if Serve has run
	if cl.fence != nil {
		return cl.fence.Close()
	}
	return nil
}

// restore creates a store from a backup and makes this node the founder of a new cluster.
func restore(c config, dir string, self membership.Self, backup io.Reader) error {
	path := filepath.Join(c.data, "store")
	info, err := store.RestoreInto(path, string(self.Node), backup)
	if err != nil {
		return fmt.Errorf("restore the store into %s: %w", path, err)
	}
	var m backupMeta
	if err := m.decode(info.Cluster); err != nil {
		return err
	}
	if err := membership.Create(dir, m.Cluster, self, &m.CA, time.Now()); err != nil {
		return fmt.Errorf("create the membership of cluster %s: %w", m.Cluster, err)
	}
	return nil
}
