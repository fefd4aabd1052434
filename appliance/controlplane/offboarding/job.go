// Package offboarding deletes the objects of a service that has ended, in the
// background, while this node leads. The API server marks the service and suspends its
// organization, so that nothing new is created; Next returns the next step for the
// remaining objects:
//
//	balancers, floating IPs, backups, keys, users, instances ─► snapshots ─► volumes, images
//	─► networks, groups, projects ─► Terminated
//
// Each step waits until the objects of the one before are removed: agents first remove
// what they have created. The organization is kept: its use and documents refer to it.
//
// It also deletes what an organization runs that has not paid for as long as its terms
// allow (unpaid.go).
package offboarding

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
)

// Store is the required part of the cluster's state.
type Store interface {
	Get(ctx context.Context, kind api.Kind, id string) (api.Object, error)
	List(ctx context.Context, q api.ListQuery) (api.ListPage, error)
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
	objects.Watcher
}

const (
	// every is the time between steps while something is being deleted: agents take
	// longer.
	every = 2 * time.Second
	// idle is the time between steps otherwise; a service that ends wakes the loop.
	idle = time.Hour
)

// Kinds are the kinds that are read from the cache, which must have them.
var Kinds = []objects.Kind{objects.Of[api.Service](), objects.Of[api.Organization]()}

// filters select services that have ended, and organizations whose deletion is due.
var filters = []watchcache.Filter{
	watchcache.When(Kinds[0], func(was, now api.Service) bool { return ended(now) && !ended(was) }),
	watchcache.When(Kinds[1], func(_, now api.Organization) bool { return due(now) }),
}

// ended reports whether a service has ended and may have objects left.
func ended(s api.Service) bool {
	return s.Spec.TerminatedAt != nil && s.Status.Phase != api.ServiceTerminated
}

// due reports whether billing demands the deletion of what the organization runs.
func due(o api.Organization) bool {
	return o.Status.Billing != nil && o.Status.Billing.State == api.BillingDeleteDue
}

// Run runs steps until ctx ends, as long as there is something to delete. The cache
// must have Kinds.
func Run(ctx context.Context, c *watchcache.Cache, s Store, log *slog.Logger) {
	done := finished{}
	_ = watchcache.Run(ctx, c, Kinds, func(ctx context.Context, all *objects.Set) time.Duration {
		left, err := sweep(ctx, s, all, done, time.Now())
		if err != nil && ctx.Err() == nil {
			log.Warn("delete objects of ended services and unpaid organizations failed, retrying", "error", err)
		}
		if left {
			return every
		}
		return idle
	}, filters...) // ends with ctx
}

// Sweep runs one step of everything that is due in a store.
func Sweep(ctx context.Context, s Store, now time.Time) error {
	all, err := objects.Read(ctx, s, Kinds...)
	if err != nil {
		return fmt.Errorf("read the objects of services: %w", err)
	}
	_, err = sweep(ctx, s, all, finished{}, now)
	return err
}

// finished has the organizations of which nothing is left to delete, and the revisions
// that they had at that time.
type finished map[string]int64

// sweep runs one step of everything that is due, and continues with the others when one
// fails. It reports whether anything was due.
func sweep(ctx context.Context, s Store, all *objects.Set, done finished, now time.Time) (any bool, err error) {
	var errs []error
	// An object may have been changed meanwhile: the next step reads it again.
	failed := func(err error) {
		if code := api.CodeOf(err); err != nil && code != api.CodeConflict && code != api.CodeNotFound {
			errs = append(errs, err)
		}
	}
	for _, service := range objects.List[api.Service](all) {
		if ended(service) {
			any = true
			failed(end(ctx, s, service, now))
		}
	}
	for _, o := range objects.List[api.Organization](all) {
		id := o.Meta.ID
		if !due(o) || done[id] == o.Meta.Revision {
			continue
		}
		any = true
		nothing, err := deleteUnpaid(ctx, s, id, now)
		if failed(err); nothing {
			done[id] = o.Meta.Revision
		}
	}
	return any, errors.Join(errs...)
}

// end runs one step of a service's end.
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
	if err != nil {
		return fmt.Errorf("delete what a service had: %w", err)
	}
	return nil
}

// belongings returns the objects of an organization, and the sessions of its users,
// which belong to no organization.
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
