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

// Directory follows the Node objects: it knows the members and their addresses.
// Before the store has been read it uses the record.
type Directory struct {
	self       Self
	publish    func(map[api.NodeID][]string) // to the address book
	disconnect func(api.NodeID)              // for a node that is no longer a member
	save       func(map[api.NodeID][]string) error
	log        *slog.Logger
	changed    *broadcast.Broadcaster

	mu              sync.Mutex // guards what is below
	synced, removed bool
	nodes           map[api.NodeID]api.Node
	peers           map[api.NodeID][]string // last published
}

// DirectoryOptions are the options of a Directory.
type DirectoryOptions struct {
	Self       Self
	Known      map[api.NodeID][]string // from the record
	Publish    func(map[api.NodeID][]string)
	Disconnect func(api.NodeID)
	Save       func(map[api.NodeID][]string) error
	Log        *slog.Logger
}

// NewDirectory creates a directory and publishes the addresses from the record.
func NewDirectory(o DirectoryOptions) *Directory {
	d := &Directory{self: o.Self, publish: o.Publish, disconnect: o.Disconnect, save: o.Save, log: o.Log, changed: broadcast.New(),
		nodes: map[api.NodeID]api.Node{}, peers: maps.Clone(o.Known)}
	if d.peers == nil {
		d.peers = map[api.NodeID][]string{}
	}
	d.peers[o.Self.Node] = o.Self.PeerAddresses
	d.publish(maps.Clone(d.peers))
	return d
}

// Member reports whether a node is a member and may talk to this one. Before the
// node has received the cluster's state, it accepts every valid certificate.
func (d *Directory) Member(id api.NodeID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.synced || id == d.self.Node {
		return true
	}
	_, ok := d.nodes[id]
	return ok
}

// Nodes returns the nodes in this node's copy of the store.
func (d *Directory) Nodes() []api.Node {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]api.Node, 0, len(d.nodes))
	for _, n := range d.nodes {
		out = append(out, n)
	}
	return out
}

// Removed reports whether the node was a member and was removed, as far as this
// node knows: a node that was disconnected at that time does not know it.
func (d *Directory) Removed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.removed
}

// Changed returns a channel that is closed when the results of Nodes and Removed
// may have changed. It must be obtained before calling them.
func (d *Directory) Changed() <-chan struct{} { return d.changed.Next() }

// Run follows the store until ctx ends. ctx must permit stale reads: the nodes of a
// minority must continue to talk to each other.
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

// replace replaces the nodes. If the store does not contain this node, it is a new
// member whose store is not complete yet, or a removed one. Both continue with what
// they have.
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
		d.disconnect(id)
	}
	if err := d.save(peers); err != nil {
		d.log.Warn("save addresses of members failed", "error", err)
	}
}
