package network

import (
	"context"
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

// observe is how often the leader asks what has become of the network.
const observe = 5 * time.Second

// Leader makes the network of the cluster. Run it while this node leads, with a
// store whose writes hold in that term only.
type Leader struct {
	Cache   *watchcache.Cache
	Store   Store
	Cluster string        // owns the rows
	Self    deploy.Member // the only member of a node that is alone
	TLS     bool          // the nodes have certificates
	// Open connects to the northbound database.
	Open func(ctx context.Context, members []deploy.Member, f deploy.Founding) (sdn.Controller, error)
	Log  *slog.Logger

	settled    time.Time // a member last had databases with a leader
	controller sdn.Controller
	opened     target
	applied    *sdn.Topology
	said       string // the last trouble in the log
}

// target is what the controller is connected to.
type target struct {
	members    []deploy.Member
	generation int
}

// Run until ctx ends.
func (l *Leader) Run(ctx context.Context) error {
	l.settled = time.Now()
	defer func() { l.close() }()
	return watchcache.Run(ctx, l.Cache, Kinds, func(ctx context.Context, s *objects.Set) time.Duration { return l.step(ctx, stateOf(s)) })
}

func (l *Leader) close() {
	if l.controller != nil {
		_ = l.controller.Close() // nothing is lost: it is asked again
	}
	l.controller, l.applied = nil, nil
}

func (l *Leader) step(ctx context.Context, s *state) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	members, reports, f := s.members(l.Self), s.reports(), s.founding()
	for _, r := range reports {
		if r.Generation == f.Generation && r.NB.Settled && r.SB.Settled {
			l.settled = time.Now()
		}
	}
	if next := deploy.Decide(f, members, l.TLS, reports, time.Since(l.settled)); !reflect.DeepEqual(next, f) {
		if err := l.put(ctx, s, next); err != nil {
			l.trouble("write decision about OVN databases failed", err)
		}
		return observe
	}
	l.forget(ctx, s)
	if f.NB == "" || f.SB == "" {
		return observe // their founder is at it
	}
	if err := l.make(ctx, s, members, f); err != nil {
		l.trouble("update network failed", err)
		return observe
	}
	l.said = ""
	return observe
}

// make the network as the objects say, and say what has become of them.
func (l *Leader) make(ctx context.Context, s *state, members []deploy.Member, f deploy.Founding) (err error) {
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
			return err
		}
		l.applied = &t
	}
	seen, err := l.controller.Observe(ctx)
	if err != nil {
		l.close() // connect anew
		return err
	}
	if err := l.report(ctx, statuses(s, t, seen, problems)); err != nil {
		return err
	}
	return l.controller.Remind(ctx)
}

func (l *Leader) put(ctx context.Context, s *state, f deploy.Founding) error {
	_, err := l.Store.Apply(ctx, api.Batch{At: time.Now().UTC(), Commands: []api.Command{{
		Op: api.OpPutSpec, Kind: api.KindOVN, ID: ovnID, Name: ovnID, Expect: s.ovn[ovnID].Meta.Revision, Data: api.Encode(f)}}})
	return err
}

// forget what nodes said that are members no more.
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

// maxCommands in one batch keeps log entries small.
const maxCommands = 256

func (l *Leader) report(ctx context.Context, cmds []api.Command) error {
	for batch := range slices.Chunk(cmds, maxCommands) {
		if _, err := l.Store.Apply(ctx, api.Batch{At: time.Now().UTC(), Commands: batch}); err != nil && api.CodeOf(err) != api.CodeConflict && api.CodeOf(err) != api.CodeNotFound {
			return err // not that an object has changed or gone meanwhile
		}
	}
	return nil
}

// trouble goes into the log once.
func (l *Leader) trouble(what string, err error) {
	if err.Error() != l.said {
		l.said = err.Error()
		l.Log.Warn("network: "+what, "error", err)
	}
}
