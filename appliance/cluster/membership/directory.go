package membership

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/broadcast"
)

// Directory follows the Node objects: where each member is, and who is one.
// Before the store has said anything it goes by the record.
type Directory struct {
	self    Self
	publish func(map[api.NodeID][]string) // to the address book
	kick    func(api.NodeID)              // a member that is none any more
	save    func(map[api.NodeID][]string) error
	log     *slog.Logger
	changed *broadcast.Broadcaster

	mu              sync.Mutex // guards what is below
	synced, removed bool
	nodes           map[api.NodeID]api.Node
	peers           map[api.NodeID][]string // as published
}

// DirectoryOptions of a directory.
type DirectoryOptions struct {
	Self    Self
	Known   map[api.NodeID][]string // from the record
	Publish func(map[api.NodeID][]string)
	Kick    func(api.NodeID)
	Save    func(map[api.NodeID][]string) error
	Log     *slog.Logger
}

// NewDirectory makes a directory and publishes what the record knows.
func NewDirectory(o DirectoryOptions) *Directory {
	d := &Directory{self: o.Self, publish: o.Publish, kick: o.Kick, save: o.Save, log: o.Log, changed: broadcast.New(),
		nodes: map[api.NodeID]api.Node{}, peers: maps.Clone(o.Known)}
	if d.peers == nil {
		d.peers = map[api.NodeID][]string{}
	}
	d.peers[o.Self.Node] = o.Self.PeerAddresses
	d.publish(maps.Clone(d.peers))
	return d
}

// Member reports whether a node may speak. A node that has not heard of the
// cluster's state yet believes every certificate: it knows nothing better.
func (d *Directory) Member(id api.NodeID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.synced || id == d.self.Node {
		return true
	}
	_, ok := d.nodes[id]
	return ok
}

// Nodes as the store has them here.
func (d *Directory) Nodes() []api.Node {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]api.Node, 0, len(d.nodes))
	for _, n := range d.nodes {
		out = append(out, n)
	}
	return out
}

// Removed reports whether the node was a member and is none any more, as far as it
// was told: a node that was cut off when it happened is not.
func (d *Directory) Removed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.removed
}

// Changed is closed when what Nodes and Removed say may have changed: take it
// before asking them.
func (d *Directory) Changed() <-chan struct{} { return d.changed.Next() }

// Run follows the store until ctx ends. ctx must make reads stale: a minority's
// nodes must go on talking to each other.
func (d *Directory) Run(ctx context.Context, watch func(ctx context.Context, since int64) (<-chan api.Event, error)) error {
	for ctx.Err() == nil {
		events, err := watch(ctx, 0)
		if err == nil {
			d.follow(events)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	return ctx.Err()
}

func (d *Directory) follow(events <-chan api.Event) {
	fresh := map[api.NodeID]api.Node{}
	inSnapshot := true
	for e := range events {
		id := api.NodeID(e.Object.Meta.ID)
		switch e.Type {
		case api.EventSync:
			inSnapshot = false
			d.replace(fresh)
			continue
		case api.EventRemove:
			delete(fresh, id)
		case api.EventPut:
			n, err := api.Decode[api.Node](e.Object)
			if err != nil {
				d.log.Error("decode node object failed", "error", err)
				continue
			}
			fresh[id] = n
		}
		if !inSnapshot {
			d.replace(fresh)
		}
	}
}

// replace takes in the nodes that there are. A store without this node is a new
// member's, which has not been told all yet, or the last that a removed one
// hears: both go on with what they know.
func (d *Directory) replace(nodes map[api.NodeID]api.Node) {
	defer d.changed.Broadcast()
	d.mu.Lock()
	if _, self := nodes[d.self.Node]; !self {
		d.removed = d.synced
		d.mu.Unlock()
		return
	}
	d.removed = false
	var gone []api.NodeID
	for id := range d.peers {
		if _, ok := nodes[id]; !ok && id != d.self.Node {
			gone = append(gone, id)
		}
	}
	peers := map[api.NodeID][]string{d.self.Node: d.self.PeerAddresses}
	for id, n := range nodes {
		if id != d.self.Node {
			peers[id] = n.Spec.PeerAddresses
		}
	}
	changed := !maps.EqualFunc(peers, d.peers, slices.Equal)
	d.synced, d.nodes, d.peers = true, maps.Clone(nodes), peers
	d.mu.Unlock()
	if !changed {
		return
	}
	d.publish(maps.Clone(peers))
	for _, id := range gone {
		d.kick(id)
	}
	if err := d.save(peers); err != nil {
		d.log.Warn("save addresses of members failed", "error", err)
	}
}
