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
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Store is what this needs of the cluster's state.
type Store interface {
	List(ctx context.Context, q api.ListQuery) (api.ListPage, error)
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
}

// every is how often it looks: deleting takes agents longer.
const every = 2 * time.Second

// Run looks until ctx ends.
func Run(ctx context.Context, s Store, log *slog.Logger) {
	for ctx.Err() == nil {
		if err := Sweep(ctx, s, time.Now()); err != nil && ctx.Err() == nil {
			log.Warn("ended services", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(every):
		}
	}
}

// Sweep takes each ended service one step on.
func Sweep(ctx context.Context, s Store, now time.Time) error {
	all, err := list(ctx, s, api.ListQuery{Kind: api.KindService})
	if err != nil {
		return err
	}
	for _, o := range all {
		service, err := api.Decode[api.Service](o)
		if err != nil {
			return err
		}
		if service.Spec.TerminatedAt == nil || service.Status.Phase == api.ServiceTerminated {
			continue
		}
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
