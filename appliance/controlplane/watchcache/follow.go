// Package watchcache keeps a part's picture of the store's objects up to date and
// has it looked at when it has changed.
package watchcache

import (
	"context"
	"log/slog"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

const (
	// Settle is how long a change waits for others: events come in groups.
	Settle = 20 * time.Millisecond
	pause  = 500 * time.Millisecond // before a watch that broke is begun anew
)

// Store is what is followed.
type Store interface {
	Watch(ctx context.Context, since int64) (<-chan api.Event, error)
}

// Picture is a part's idea of the objects.
type Picture interface {
	// Apply takes in one change, and says whether it is one to look at.
	Apply(e api.Event) (changed bool, err error)
}

// Run keeps a picture, which begins as fresh makes it, up to date and calls
// step when it has changed, and after as long as step said last. It ends with
// ctx. part is named in the log.
func Run[P Picture](ctx context.Context, s Store, log *slog.Logger, part string, fresh func() P, step func(ctx context.Context, p P) time.Duration) error {
	for ctx.Err() == nil {
		if err := once(ctx, s, log, part, fresh(), step); err != nil && ctx.Err() == nil {
			log.Warn(part+": the store's changes cannot be followed", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return ctx.Err()
}

func once[P Picture](ctx context.Context, s Store, log *slog.Logger, part string, p P, step func(ctx context.Context, p P) time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := s.Watch(ctx, 0)
	if err != nil {
		return err
	}
	synced, due := false, false
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case e, ok := <-events:
			switch {
			case !ok:
				return ctx.Err() // too slow: start anew
			case e.Type == api.EventSync:
				synced = true
			default:
				changed, err := p.Apply(e)
				if err != nil {
					log.Error(part+": an object that cannot be read is left out", "error", err)
				}
				if !changed {
					continue
				}
			}
			if synced && !due { // the first of a group: others may never end
				due = true
				timer.Reset(Settle)
			}
		case <-timer.C:
			due = false
			timer.Reset(step(ctx, p))
		}
	}
}

// Apply takes a change into the objects of its kind, by id.
func Apply[T any](m map[string]T, e api.Event) error {
	if e.Type == api.EventRemove {
		delete(m, e.Object.Meta.ID)
		return nil
	}
	t, err := api.Decode[T](e.Object)
	if err == nil {
		m[e.Object.Meta.ID] = t
	}
	return err
}
