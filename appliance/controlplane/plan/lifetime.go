package plan

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/billing/meter"
)

// maxHours is how many hours of an object's use are recorded in one batch; after a
// longer time without a leader the rest is recorded in the next rounds.
const maxHours = 100

// lifetime describes an object that is billed for as long as it exists, whatever
// happens on the nodes: a floating IP, a snapshot.
type lifetime struct {
	kind    api.Kind
	meta    api.Meta
	meter   api.Meter
	of      api.PriceSelector // attributes by which its price may differ
	rate    int64             // units per second; 0 if it costs nothing yet
	since   time.Time         // time up to which its use has been recorded; zero if it has not begun
	advance func(to time.Time) any
}

// planLifetimes records the use of such objects, hour by hour and when they end. The
// records and the time up to which they go (assignment.meteredTo) are one batch, and so
// are the last record and the object's end: nothing is lost or counted twice, whichever
// leader continues. Objects for which commands are planned wait for the next round.
func planLifetimes(s *State, planned []api.Command, now time.Time) (cmds []api.Command) {
	busy := map[string]bool{}
	for _, c := range planned {
		busy[c.ID] = true
	}
	for _, f := range objects.Sorted(s.FloatingIPs) {
		a, rate := f.Assignment, int64(0)
		if a.Address != "" {
			rate = 1
		}
		cmds = append(cmds, record(busy, lifetime{api.KindFloatingIP, f.Meta, api.MeterAddress, api.PriceSelector{}, rate, a.MeteredTo, func(to time.Time) any {
			a.MeteredTo = to
			return a
		}}, now)...)
	}
	for _, x := range objects.Sorted(s.Snapshots) {
		a, rate := x.Assignment, int64(0)
		if x.Status.Phase == api.SnapshotReady || !a.MeteredTo.IsZero() {
			rate = x.Status.SizeBytes
		}
		cmds = append(cmds, record(busy, lifetime{api.KindSnapshot, x.Meta, api.MeterSnapshot, api.PriceSelector{StorageClass: a.Pool}, rate, a.MeteredTo, func(to time.Time) any {
			a.MeteredTo = to
			return a
		}}, now)...)
	}
	return cmds
}

func record(busy map[string]bool, l lifetime, now time.Time) []api.Command {
	if busy[l.meta.ID] {
		return nil
	}
	now = now.UTC()
	to, over := now.Truncate(time.Hour), l.meta.DeletedAt != nil
	switch {
	case over:
		to = l.meta.DeletedAt.UTC()
	case l.rate > 0 && l.since.IsZero():
		return assign(l.kind, l.meta, l.advance(now))
	}
	var cmds []api.Command
	if !l.since.IsZero() && to.After(l.since) {
		if limit := l.since.Truncate(time.Hour).Add(maxHours * time.Hour); to.After(limit) {
			to, over = limit, false
		}
		r := meter.Resource{ID: l.meta.ID, Name: l.meta.Name, Organization: l.meta.Organization, Project: l.meta.Project}
		cmds = meter.Lifetime(r, l.of, l.meter, uint64(max(l.rate, 0)), l.since, to)
		if !over {
			return append(cmds, assign(l.kind, l.meta, l.advance(to))...)
		}
	}
	if over {
		for _, f := range l.meta.Finalizers {
			if f == api.FinalizerMeter {
				return append(cmds, api.Command{Op: api.OpForget, Kind: l.kind, ID: l.meta.ID, Expect: l.meta.Revision, Finalizer: f})
			}
		}
	}
	return nil
}
