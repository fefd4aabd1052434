// Package offboarding deletes what a service had that has ended, in the
// background, while this node leads. The API server marks the service and
// suspends its organization, so that nothing new comes; Next says what follows
// of what there is:
//
//	balancers, floating IPs, backups, keys, users, instances ─► snapshots ─► volumes, images
//	─► networks, groups, projects ─► Terminated
//
// Each step waits until the objects of the one before are gone: agents take
// down first what they have made. The organization stays: what was used leads
// to it.
//
// It also deletes what an organization runs that has not paid for so long that
// its terms say so (unpaid.go).
package offboarding

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
)

// Store is what this needs of the cluster's state.
type Store interface {
	Get(ctx context.Context, kind api.Kind, id string) (api.Object, error)
	List(ctx context.Context, q api.ListQuery) (api.ListPage, error)
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
	Watch(ctx context.Context, since int64) (<-chan api.Event, error) // of services and organizations at least
}

const (
	// every is how often it looks while something is being deleted: agents take longer.
	every = 2 * time.Second
	// idle is how often it looks at nothing; a service that ends wakes it.
	idle = time.Hour
)

// ending is what there is to do.
type ending struct {
	services map[string]api.Service // that have ended and are not through, by id
	unpaid   map[string]bool        // organizations whose deletion is due
}

func nothing() ending { return ending{map[string]api.Service{}, map[string]bool{}} }

// Apply takes in a change: there is something to do when a service has ended,
// and when an organization's deletion is due.
func (e ending) Apply(ev api.Event) (changed bool, err error) {
	id, gone := ev.Object.Meta.ID, ev.Type == api.EventRemove
	switch ev.Object.Kind {
	case api.KindService:
		_, known := e.services[id]
		delete(e.services, id)
		s, err := api.Decode[api.Service](ev.Object)
		if gone || err != nil || s.Spec.TerminatedAt == nil || s.Status.Phase == api.ServiceTerminated {
			return false, err
		}
		e.services[id] = s
		return !known, nil
	case api.KindOrganization:
		known := e.unpaid[id]
		delete(e.unpaid, id)
		o, err := api.Decode[api.Organization](ev.Object)
		if gone || err != nil || o.Status.Billing == nil || o.Status.Billing.State != api.BillingDeleteDue {
			return false, err
		}
		e.unpaid[id] = true
		return !known, nil
	}
	return false, nil
}

// Run looks until ctx ends, as long as there is something to delete.
func Run(ctx context.Context, s Store, log *slog.Logger) {
	_ = watchcache.Run(ctx, s, log, "services", nothing, func(ctx context.Context, e ending) time.Duration {
		if len(e.services)+len(e.unpaid) == 0 {
			return idle
		}
		if err := e.sweep(ctx, s, time.Now()); err != nil && ctx.Err() == nil {
			log.Warn("what has ended, or was not paid, is not deleted yet", "error", err)
		}
		return every
	}) // ends with ctx
}

// Sweep takes everything that there is to do in a store one step on.
func Sweep(ctx context.Context, s Store, now time.Time) error {
	all := nothing()
	for _, kind := range []api.Kind{api.KindService, api.KindOrganization} {
		if err := api.Each(ctx, s, api.ListQuery{Kind: kind}, func(o api.Object) error {
			_, err := all.Apply(api.Event{Type: api.EventPut, Object: o})
			return err
		}); err != nil {
			return err
		}
	}
	return all.sweep(ctx, s, now)
}

// sweep goes on with the others when one fails.
func (e ending) sweep(ctx context.Context, s Store, now time.Time) error {
	var errs []error
	// Somebody may have been quicker with an object: the next look sees it.
	failed := func(err error) {
		if code := api.CodeOf(err); err != nil && code != api.CodeConflict && code != api.CodeNotFound {
			errs = append(errs, err)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(e.services)) {
		failed(end(ctx, s, e.services[id], now))
	}
	for _, id := range slices.Sorted(maps.Keys(e.unpaid)) {
		done, err := e.delete(ctx, s, id, now)
		if failed(err); done {
			delete(e.unpaid, id)
		}
	}
	return errors.Join(errs...)
}

// end a service, one step on.
func end(ctx context.Context, s Store, service api.Service, now time.Time) error {
	has, err := belongings(ctx, s, string(service.Spec.Organization))
	if err != nil {
		return err
	}
	cmds := Next(service, has)
	if len(cmds) == 0 {
		return nil
	}
	_, err = s.Apply(ctx, api.Batch{At: now.UTC(), Commands: cmds})
	return err
}

// belongings are what an organization has, and the sessions of its own users,
// which lie in none.
func belongings(ctx context.Context, s Store, organization string) ([]api.Object, error) {
	var has []api.Object
	users := map[api.UserID]bool{}
	for _, kind := range kinds {
		if kind == api.KindSession {
			continue
		}
		found, err := list(ctx, s, api.ListQuery{Kind: kind, Organization: organization})
		if err != nil {
			return nil, err
		}
		has = append(has, found...)
		for _, o := range found {
			if kind == api.KindUser {
				users[api.UserID(o.Meta.ID)] = true
			}
		}
	}
	if len(users) == 0 {
		return has, nil
	}
	sessions, err := list(ctx, s, api.ListQuery{Kind: api.KindSession})
	for _, o := range sessions {
		if session, err := api.Decode[api.Session](o); err == nil && users[session.Spec.User] {
			has = append(has, o)
		}
	}
	return has, err
}

func list(ctx context.Context, s Store, q api.ListQuery) (out []api.Object, err error) {
	err = api.Each(ctx, s, q, func(o api.Object) error { out = append(out, o); return nil })
	return out, err
}
