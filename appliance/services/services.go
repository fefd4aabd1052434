// Package services deletes what a service had that has ended, in the
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
package services

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/follow"
)

// Store is what this needs of the cluster's state.
type Store interface {
	List(ctx context.Context, q api.ListQuery) (api.ListPage, error)
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
	Watch(ctx context.Context, since int64) (<-chan api.Event, error) // services, and whatever else
}

const (
	// every is how often it looks while something is being deleted: agents take longer.
	every = 2 * time.Second
	// idle is how often it looks at nothing; a service that ends wakes it.
	idle = time.Hour
)

// ending are the services that have ended and are not through, by id.
type ending map[string]api.Service

// Apply takes in a change: there is something to do when one has ended.
func (e ending) Apply(ev api.Event) (changed bool, err error) {
	id := ev.Object.Meta.ID
	if ev.Object.Kind != api.KindService {
		return false, nil
	}
	delete(e, id)
	if ev.Type == api.EventRemove {
		return false, nil
	}
	s, err := api.Decode[api.Service](ev.Object)
	if err != nil || s.Spec.TerminatedAt == nil || s.Status.Phase == api.ServiceTerminated {
		return false, err
	}
	_, known := e[id]
	e[id] = s
	return !known, nil
}

// Run looks until ctx ends, as long as there is something to delete.
func Run(ctx context.Context, s Store, log *slog.Logger) {
	fresh := func() ending { return ending{} }
	_ = follow.Run(ctx, s, log, "services", fresh, func(ctx context.Context, e ending) time.Duration {
		if len(e) == 0 {
			return idle
		}
		if err := e.sweep(ctx, s, time.Now()); err != nil && ctx.Err() == nil {
			log.Warn("ended services", "error", err)
		}
		return every
	}) // ends with ctx
}

// Sweep takes each ended service of a store one step on.
func Sweep(ctx context.Context, s Store, now time.Time) error {
	all := ending{}
	if err := api.Each(ctx, s, api.ListQuery{Kind: api.KindService}, func(o api.Object) error {
		_, err := all.Apply(api.Event{Type: api.EventPut, Object: o})
		return err
	}); err != nil {
		return err
	}
	return all.sweep(ctx, s, now)
}

func (e ending) sweep(ctx context.Context, s Store, now time.Time) error {
	for _, id := range slices.Sorted(maps.Keys(e)) {
		service := e[id]
		has, err := belongings(ctx, s, string(service.Spec.Organization))
		if err != nil {
			return err
		}
		cmds := Next(service, has)
		if len(cmds) == 0 {
			continue
		}
		// Somebody may have been quicker with an object: the next look sees it.
		if _, err := s.Apply(ctx, api.Batch{At: now.UTC(), Commands: cmds}); err != nil &&
			api.CodeOf(err) != api.CodeConflict && api.CodeOf(err) != api.CodeNotFound {
			return err
		}
	}
	return nil
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
