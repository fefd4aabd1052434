package upgrade

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
)

// Every is the interval at which leader and nodes check an upgrade in progress.
const Every = time.Second

// Store accepts the leader's writes.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
}

// Kinds are the kinds of objects that leader and nodes follow; the cache must contain
// them.
var Kinds = []objects.Kind{objects.Of[api.Upgrade]()}

// Cluster provides what the leader has to know of the cluster.
type Cluster interface {
	// Nodes returns all nodes, without Quiet.
	Nodes(ctx context.Context) ([]Node, error)
	// Leaving returns the nodes from which an instance is being moved.
	Leaving(ctx context.Context) (map[api.NodeID]bool, error)
	// HandOver transfers leadership to another voter.
	HandOver(ctx context.Context) error
}

// Leader advances the upgrade. Run it while this node leads, with a store that accepts
// writes in that term only.
type Leader struct {
	Cache   *watchcache.Cache
	Store   Store
	Cluster Cluster
	Log     *slog.Logger

	quiet     map[api.NodeID]time.Time // since when no instance is leaving the node
	lastError string                   // the last error that was logged
}

// Run advances the upgrade until ctx ends.
func (l *Leader) Run(ctx context.Context) error {
	l.quiet = map[api.NodeID]time.Time{}
	return watchcache.Run(ctx, l.Cache, Kinds, l.step)
}

// Of returns the only upgrade, or nil.
func Of(s *objects.Set) *api.Upgrade {
	for _, u := range objects.List[api.Upgrade](s) {
		return &u
	}
	return nil
}

// Over reports whether an upgrade needs no further work.
func Over(u *api.Upgrade) bool {
	return u == nil || u.Meta.DeletedAt != nil || u.Status.Phase == api.UpgradeDone &&
		!slices.ContainsFunc(u.Status.Nodes, func(n api.UpgradeNode) bool { return n.Drains })
}

func (l *Leader) step(ctx context.Context, s *objects.Set) time.Duration {
	u := Of(s)
	if Over(u) {
		return time.Hour // until something changes
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := l.advance(ctx, *u); err != nil && ctx.Err() == nil && err.Error() != l.lastError {
		l.lastError = err.Error()
		l.Log.Warn("advance upgrade failed", "error", err)
	}
	return Every
}

// advance observes the cluster and performs the next step. The following call sees what
// was written.
func (l *Leader) advance(ctx context.Context, u api.Upgrade) error {
	nodes, err := l.Cluster.Nodes(ctx)
	if err != nil {
		return fmt.Errorf("list the nodes of the upgrade: %w", err)
	}
	now := time.Now().UTC()
	if u.Unfinished() {
		if err := l.observe(ctx, nodes, now); err != nil {
			return err
		}
	}
	s := Next(Facts{Upgrade: u, Nodes: nodes, Now: now})
	if status := api.Encode(s.Status); !bytes.Equal(status, api.Encode(u.Status)) {
		if s.Status.Phase != u.Status.Phase {
			l.Log.Info("the upgrade is "+string(s.Status.Phase), "version", u.Spec.Version, "reason", s.Status.Reason)
		}
		_, err := l.Store.Apply(ctx, api.Batch{At: now, Commands: []api.Command{
			{Op: api.OpReport, Kind: api.KindUpgrade, ID: u.Meta.ID, Expect: u.Meta.Revision, Data: status}}})
		if err != nil {
			return fmt.Errorf("report upgrade %s: %w", u.Meta.ID, err)
		}
	}
	if d := s.Drain; d != nil {
		spec := d.Node.Spec
		spec.Drain = d.On
		_, err := l.Store.Apply(ctx, api.Batch{At: now, Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindNode, ID: d.Node.Meta.ID,
			Expect: d.Node.Meta.Revision, Name: d.Node.Meta.Name, Labels: d.Node.Meta.Labels, Data: api.Encode(spec)}}})
		if err == nil {
			return nil
		}
		if api.CodeOf(err) != api.CodeConflict { // the node has reported in the meantime
			return fmt.Errorf("change whether node %s is drained: %w", d.Node.Meta.Name, err)
		}
	}
	if s.HandOver {
		l.Log.Info("transfer leadership before this node is upgraded")
		if err := l.Cluster.HandOver(ctx); err != nil {
			return fmt.Errorf("transfer leadership: %w", err)
		}
	}
	return nil
}

// observe sets for how long no instance has been leaving each drained node.
func (l *Leader) observe(ctx context.Context, nodes []Node, now time.Time) error {
	leaving, err := l.Cluster.Leaving(ctx)
	if err != nil {
		return fmt.Errorf("list the nodes that leave: %w", err)
	}
	for i := range nodes {
		id := api.NodeID(nodes[i].Meta.ID)
		if since, ok := l.quiet[id]; leaving[id] || !nodes[i].Spec.Drain {
			delete(l.quiet, id)
		} else if !ok {
			l.quiet[id] = now
		} else {
			nodes[i].Quiet = now.Sub(since)
		}
	}
	return nil
}
