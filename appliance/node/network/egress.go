package network

import (
	"context"
	"log/slog"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/billing/meter"
	"github.com/basalt-gpu/basalt/sdn"
)

// Egress records what leaves this node into external networks. Every node that
// leads there counts every project's, whether or not its router is there now:
// when the router moves, nobody needs to be told.
//
// The switch counts, and goes on while this process is dead; the book on the
// disk says how much of each counter is recorded already. Records are written
// there before they are committed and committed again after a crash, under the
// same ids. What a counter had when the switch itself died is charged up to the
// last look at it.
type Egress struct {
	Cache   *watchcache.Cache
	Store   Store
	Node    api.NodeID
	Counter interface {
		Egress(ctx context.Context, exits []sdn.Exit) ([]sdn.Egress, error)
	}
	// Ready reports whether the node's network is up; nil: it is.
	Ready func(ctx context.Context) error
	File  string        // the book
	Every time.Duration // records; 0: 5 min
	Now   func() time.Time
	Log   *slog.Logger

	book     *egressBook // nil: not read yet
	recorded time.Time   // last
	said     string
}

// Run until ctx ends.
func (e *Egress) Run(ctx context.Context) error {
	if e.Now == nil {
		e.Now = time.Now
	}
	if e.Every <= 0 {
		e.Every = 5 * time.Minute
	}
	return watchcache.Run(ctx, e.Cache, []objects.Kind{objects.Of[api.Router](), objects.Of[api.FloatingIP]()}, e.step)
}

func (e *Egress) step(ctx context.Context, s *objects.Set) time.Duration {
	if e.Ready != nil && e.Ready(ctx) != nil {
		return lookBusy // which the node says itself
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := e.look(ctx, s); err != nil {
		if err.Error() != e.said && ctx.Err() == nil {
			e.said = err.Error()
			e.Log.Warn("network: record outbound traffic failed", "error", err)
		}
		return lookBusy
	}
	e.said = ""
	// A look right after each full hour puts what was counted into the right one.
	now := e.Now()
	return max(time.Millisecond, min(lookIdle, e.Every, now.Truncate(time.Hour).Add(time.Hour).Sub(now)))
}

// look at the counters, and record what they say when it is time to.
func (e *Egress) look(ctx context.Context, s *objects.Set) (err error) {
	if e.book == nil {
		if e.book, err = readEgressBook(e.File); err != nil {
			return err
		}
	}
	routers, floating := objects.List[api.Router](s), objects.List[api.FloatingIP](s)
	seen, err := e.Counter.Egress(ctx, sdn.Exits(routers, floating))
	if err != nil {
		return err
	}
	owners := map[string]meter.Resource{}
	for _, r := range routers {
		owners[r.Meta.ID] = e.resource(r.Meta)
	}
	for _, f := range floating {
		owners[f.Meta.ID] = e.resource(f.Meta)
	}
	e.book.count(seen, owners)
	if err := e.commit(ctx); err != nil { // of before a crash, or a failure
		return err
	}
	now := e.Now()
	if now.Sub(e.recorded) < e.Every && now.Truncate(time.Hour).Equal(e.recorded.Truncate(time.Hour)) {
		return nil
	}
	e.book.record(now)
	e.recorded = now
	e.book.forget(seen, owners)
	return e.commit(ctx)
}

func (e *Egress) resource(m api.Meta) meter.Resource {
	return meter.Resource{ID: m.ID, Name: m.Name, Organization: m.Organization, Project: m.Project, Node: e.Node}
}

// commit the records: first to the disk, then to the store, and then they no
// longer need to be on the disk. While the store is away nothing new is
// recorded; what leaves is counted on.
func (e *Egress) commit(ctx context.Context) error {
	if len(e.book.Pending) == 0 {
		return nil
	}
	if !e.book.written {
		if err := e.book.write(e.File); err != nil {
			return err
		}
	}
	for cmds := e.book.Pending; len(cmds) > 0; {
		n := min(len(cmds), maxCommands)
		if _, err := e.Store.Apply(ctx, api.Batch{At: e.Now().UTC(), Commands: cmds[:n]}); err != nil {
			return err
		}
		cmds = cmds[n:]
	}
	e.book.Pending = nil
	return e.book.write(e.File)
}
