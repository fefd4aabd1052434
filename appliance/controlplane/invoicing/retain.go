package invoicing

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Retention deletes usage records that are older than Keep, on the leader. The sums of
// their hours are kept, and so is everything that invoices are computed from.
type Retention struct {
	Records interface {
		Records(ctx context.Context, q api.RecordQuery) (api.RecordPage, error)
	}
	Store Writer
	Keep  time.Duration
	Log   *slog.Logger
}

const (
	// expireEvery is the time between two steps.
	expireEvery = time.Hour
	// batchPause between two batches lets others write when there is much to delete.
	batchPause = 20 * time.Millisecond
)

// Run runs steps until ctx ends. Call it while this node leads, with the store of that
// term.
func (r Retention) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := r.Step(ctx, time.Now()); err != nil && ctx.Err() == nil {
			r.Log.Warn("invoicing: delete old usage records failed", "error", err)
		}
		sleep(ctx, expireEvery)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// expiryAt returns the time before which records are deleted: whole hours of them, so
// that an hour has all of its records or none.
func expiryAt(now time.Time, keep time.Duration) time.Time {
	return now.UTC().Add(-max(keep, api.MinKeepRecords) - 1).Truncate(time.Hour).Add(1)
}

// Step deletes all records that are too old, in batches of limited size.
func (r Retention) Step(ctx context.Context, now time.Time) error {
	before := expiryAt(now, r.Keep)
	q := api.RecordQuery{To: before.Add(-1), Limit: 1}
	for ctx.Err() == nil {
		page, err := r.Records.Records(ctx, q)
		switch {
		case err != nil:
			return fmt.Errorf("list usage records up to %s: %w", q.To.Format(time.RFC3339), err)
		case len(page.Items) > 0: // q is unchanged, as there may be more of them
			cmd := api.ExpireRecords(page.Items[0].Meta.Organization, before)
			if _, err := r.Store.Apply(ctx, api.Batch{At: now.UTC(), Commands: []api.Command{cmd}}); err != nil {
				return fmt.Errorf("delete usage records of organization %s: %w", cmd.Organization, err)
			}
			sleep(ctx, batchPause)
		case page.More:
			q.After = page.Next
		default:
			return nil
		}
	}
	return ctx.Err()
}
