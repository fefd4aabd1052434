package network

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ovn/deploy"
)

// observe is how often the leader reads the state of the network.
const observe = 5 * time.Second

// Leader applies the objects to the cluster's network. Run it while this node leads,
// with a store whose writes are valid in that term only.
type Leader struct {
	Cache   *watchcache.Cache
	Store   Store
	Cluster string        // name of the cluster, which marks its rows
	Self    deploy.Member // the only member of a node that is alone
	TLS     bool          // the nodes have certificates
	// Open connects to the northbound database.
	Open func(ctx context.Context, members []deploy.Member, f deploy.Bootstrap) (sdn.Controller, error)
	Log  *slog.Logger

	settled    time.Time // when a member last had databases with a leader
	controller sdn.Controller
	opened     target
	applied    *sdn.Topology
	lastError  string // the last error that was logged
}

// target is what the controller is connected to.
type target struct {
	members    []deploy.Member
	generation int
}

// Run runs steps until ctx ends.
func (l *Leader) Run(ctx context.Context) error {
	l.settled = time.Now()
	defer func() { l.close() }()
	return watchcache.Run(ctx, l.Cache, Kinds, func(ctx context.Context, s *objects.Set) time.Duration { return l.step(ctx, stateOf(s)) })
}

func (l *Leader) close() {
	if l.controller != nil {
		_ = l.controller.Close() // nothing is lost: it is opened again
	}
	l.controller, l.applied = nil, nil
}

func (l *Leader) step(ctx context.Context, s *state) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	members, reports, f := s.members(l.Self), s.reports(), s.bootstrap()
	for _, r := range reports {
		if r.Generation == f.Generation && r.NB.Settled && r.SB.Settled {
			l.settled = time.Now()
		}
	}
	next := Decisions{deploy.Decide(f, members, l.TLS, reports, time.Since(l.settled)), s.tunnels()}
	if !reflect.DeepEqual(next, s.decisions()) {
		if err := l.writeDecisions(ctx, s, next); err != nil {
			l.trouble("write decisions about OVN databases and tunnels failed", err)
		}
		return observe
	}
	l.forget(ctx, s)
	if f.NB == "" || f.SB == "" {
		return observe // their founder is creating them
	}
	if err := l.update(ctx, s, members, f); err != nil {
		l.trouble("update network failed", err)
		return observe
	}
	l.lastError = ""
	return observe
}

// update applies the objects to the network, and reports their statuses.
func (l *Leader) update(ctx context.Context, s *state, members []deploy.Member, f deploy.Bootstrap) (err error) {
	if now := (target{members, f.Generation}); l.controller == nil || !reflect.DeepEqual(now, l.opened) {
		l.close()
		if l.controller, err = l.Open(ctx, members, f); err != nil {
			l.controller = nil
			return err
		}
		l.opened = now
	}
	t, problems := sdn.Intent(s.objects(l.Cluster))
	if l.applied == nil || !reflect.DeepEqual(*l.applied, t) {
		l.applied = nil
		if err := l.controller.Apply(ctx, t); err != nil {
			return fmt.Errorf("apply the topology: %w", err)
		}
		l.applied = &t
	}
	seen, err := l.controller.Observe(ctx)
	if err != nil {
		l.close() // connect again
		return fmt.Errorf("observe the network: %w", err)
	}
	if err := l.report(ctx, statuses(s, t, seen, problems)); err != nil {
		return err
	}
	if err := l.controller.RetryGateways(ctx); err != nil {
		return fmt.Errorf("retry routers without a gateway: %w", err)
	}
	return nil
}

func (l *Leader) writeDecisions(ctx context.Context, s *state, f Decisions) error {
	_, err := l.Store.Apply(ctx, api.Batch{At: time.Now().UTC(), Commands: []api.Command{{
		Op: api.OpPutSpec, Kind: api.KindOVN, ID: ovnID, Name: ovnID, Expect: s.ovn[ovnID].Meta.Revision, Data: api.Encode(f)}}})
	if err != nil {
		return fmt.Errorf("write generation %d of the OVN databases and decision %d about tunnels: %w", f.Generation, f.Tunnels.Serial, err)
	}
	return nil
}

// forget removes the reports of nodes that are not members any more.
func (l *Leader) forget(ctx context.Context, s *state) {
	for id, c := range s.chassis {
		if _, there := s.nodes[id]; there {
			continue
		}
		cmd := api.Command{Op: api.OpDelete, Kind: api.KindChassis, ID: id, Expect: c.Meta.Revision}
		if _, err := l.Store.Apply(ctx, api.Batch{At: time.Now().UTC(), Commands: []api.Command{cmd}}); err != nil {
			l.trouble("remove chassis of removed node failed", err)
		}
	}
}

// maxCommands is the most commands in one batch, to keep log entries small.
const maxCommands = 256

func (l *Leader) report(ctx context.Context, cmds []api.Command) error {
	for batch := range slices.Chunk(cmds, maxCommands) {
		if _, err := l.Store.Apply(ctx, api.Batch{At: time.Now().UTC(), Commands: batch}); err != nil && api.CodeOf(err) != api.CodeConflict && api.CodeOf(err) != api.CodeNotFound {
			// An object that was changed or removed meanwhile is not an error.
			return fmt.Errorf("report %d statuses, the first of %s %s: %w", len(batch), batch[0].Kind, batch[0].ID, err)
		}
	}
	return nil
}

// trouble logs an error once.
func (l *Leader) trouble(what string, err error) {
	if err.Error() != l.lastError {
		l.lastError = err.Error()
		l.Log.Warn("network: "+what, "error", err)
	}
}
