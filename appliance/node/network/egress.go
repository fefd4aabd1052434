package network

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/billing/meter"
	"github.com/basalt-gpu/basalt/sdn"
)

// Egress records the traffic that leaves this node into external networks. Every
// gateway node counts every project's traffic, whether or not the project's router
// is on it now, so that nothing has to be coordinated when a router moves.
//
// The switch counts, also while this process is down; the book on the disk has how
// much of each counter is recorded already. Records are written to it before they
// are committed, and committed again after a crash, under the same IDs. What a
// counter had when the switch itself restarted is charged up to the last time that
// it was read.
type Egress struct {
	Cache   *watchcache.Cache
	Store   Store
	Node    api.NodeID
	Counter interface {
		Egress(ctx context.Context, exits []sdn.Exit) ([]sdn.Egress, error)
	}
	// Ready returns nil when the node's network is up, otherwise the reason. A nil
	// func means that it is up.
	Ready func(ctx context.Context) error
	File  string        // path of the book
	Every time.Duration // interval of records; 5 min if 0
	Now   func() time.Time
	Log   *slog.Logger

	book     *egressBook // nil until it is read
	recorded time.Time   // time of the last records
	logged   string      // last logged error
}

// Run meters until ctx ends.
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
		return busyInterval // Node reports the reason
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := e.record(ctx, s); err != nil {
		if err.Error() != e.logged && ctx.Err() == nil {
			e.logged = err.Error()
			e.Log.Warn("network: record outbound traffic failed", "error", err)
		}
		return busyInterval
	}
	e.logged = ""
	// Counters are read right after each full hour, so that what was counted is
	// charged to the right hour.
	now := e.Now()
	return max(time.Millisecond, min(idleInterval, e.Every, now.Truncate(time.Hour).Add(time.Hour).Sub(now)))
}

// record reads the counters, and records the traffic when that is due.
func (e *Egress) record(ctx context.Context, s *objects.Set) (err error) {
	if e.book == nil {
		if e.book, err = readEgressBook(e.File); err != nil {
			return err
		}
	}
	routers, floating := objects.List[api.Router](s), objects.List[api.FloatingIP](s)
	seen, err := e.Counter.Egress(ctx, sdn.Exits(routers, floating))
	if err != nil {
		return fmt.Errorf("read the counters of routers and floating IPs: %w", err)
	}
	owners := map[string]meter.Resource{}
	for _, r := range routers {
		owners[r.Meta.ID] = e.resource(r.Meta)
	}
	for _, f := range floating {
		owners[f.Meta.ID] = e.resource(f.Meta)
	}
	e.book.count(seen, owners)
	if err := e.commit(ctx); err != nil { // left by a crash or a failure
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

// commit writes the records to the disk, commits them to the store, and removes
// them from the disk. While the store is unreachable no new records are created;
// counting continues.
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
			return fmt.Errorf("write %d usage records to the store: %w", n, err)
		}
		cmds = cmds[n:]
	}
	e.book.Pending = nil
	return e.book.write(e.File)
}
