package payment

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

const (
	// checkEvery is the time between checks for what is due.
	checkEvery = 5 * time.Second
	perBatch   = 100 // checkouts that are deleted at once
)

// unavailableWaits is the wait between calls of a provider that cannot be reached.
var unavailableWaits = api.Backoff{First: 5 * time.Second, Last: 10 * time.Minute}

// Collector follows checkouts to their end while this node leads, independently of
// events.
type Collector struct {
	desk      *Desk
	checkedAt map[string]time.Time // when the provider was last asked about each checkout
	// Wait returns after d; tests replace it.
	Wait func(ctx context.Context, d time.Duration)
}

// NewCollector returns a Collector that writes to the desk's store, in the leader's
// term.
func NewCollector(d *Desk) *Collector {
	return &Collector{desk: d, checkedAt: map[string]time.Time{}, Wait: func(ctx context.Context, d time.Duration) {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	}}
}

// Run runs steps until ctx ends.
func (c *Collector) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := c.Step(ctx); err != nil && ctx.Err() == nil {
			c.desk.o.Log.Warn("follow checkouts failed, retrying", "error", err)
		}
		c.Wait(ctx, checkEvery)
	}
	return ctx.Err()
}

// Step does what is due now. The provider is asked about one checkout after the other;
// if it cannot be reached the others wait.
func (c *Collector) Step(ctx context.Context) error {
	all, err := api.All[api.Checkout](ctx, c.desk.o.Store, api.ListQuery{Kind: api.KindCheckout})
	if err != nil {
		return err
	}
	now := c.desk.o.Now().UTC()
	if err := c.tidy(ctx, all, now); err != nil {
		return err
	}
	var due []api.Checkout
	there := map[string]time.Time{}
	for _, x := range all {
		if x.Done() || x.Status.Session == "" {
			continue
		}
		there[x.Meta.ID] = c.checkedAt[x.Meta.ID]
		if !nextCheck(x, c.checkedAt[x.Meta.ID], now).After(now) {
			due = append(due, x)
		}
	}
	c.checkedAt = there
	if len(due) == 0 {
		return nil
	}
	return c.queryProvider(ctx, due, now)
}

// tidy deletes checkouts that ended long ago and ends those that got no page.
func (c *Collector) tidy(ctx context.Context, all []api.Checkout, now time.Time) error {
	var cmds []api.Command
	for _, x := range all {
		if len(cmds) == perBatch {
			break
		}
		if x.Done() {
			if x.Status.DoneAt == nil || now.Sub(*x.Status.DoneAt) > keepDone {
				cmds = append(cmds, api.Command{Op: api.OpDelete, Kind: api.KindCheckout, ID: x.Meta.ID, Expect: x.Meta.Revision})
			}
		} else if st, gone := abandoned(x, nil, now); gone {
			cmds = append(cmds, reported(x, st))
		}
	}
	if len(cmds) == 0 {
		return nil
	}
	_, err := c.desk.o.Store.Apply(ctx, api.Batch{At: now, Commands: cmds})
	return err
}

// queryProvider asks the provider, unless a pause after an error lasts, and writes the result.
func (c *Collector) queryProvider(ctx context.Context, due []api.Checkout, now time.Time) error {
	var was api.PaymentProviderStatus
	if o, err := c.desk.o.Store.Get(ctx, api.KindPaymentSettings, api.PaymentStatusID); err == nil {
		stored, err := api.Decode[api.StoredPaymentSettings](o)
		if err != nil {
			return err
		}
		was = stored.Status
	}
	if was.NextAt != nil && now.Before(*was.NextAt) && was.NextAt.Sub(now) < 2*unavailableWaits.Last {
		return nil
	}
	p, _, err := c.desk.provider(ctx)
	if err != nil {
		return err
	}
	// The checkout that was asked about last comes last, so that one that always fails
	// does not delay others.
	slices.SortStableFunc(due, func(a, b api.Checkout) int { return c.checkedAt[a.Meta.ID].Compare(c.checkedAt[b.Meta.ID]) })
	is := api.PaymentProviderStatus{}
	for _, x := range due {
		err := c.desk.settle(ctx, p, api.CheckoutID(x.Meta.ID))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.checkedAt[x.Meta.ID] = now
		if errors.Is(err, ErrUnknown) {
			err = c.unknown(ctx, x, now)
		}
		if err == nil {
			continue
		}
		c.desk.o.Log.Warn("settle checkout failed", "checkout", x.Meta.ID, "error", err)
		is = failed(was, err, now)
		if unavailable := new(unavailableError); errors.As(err, &unavailable) {
			break
		}
		is.NextAt = nil // only this checkout fails: others need not wait
	}
	return c.report(ctx, was, is, now)
}

// unknown ends a checkout that the provider has not known for a long time.
func (c *Collector) unknown(ctx context.Context, x api.Checkout, now time.Time) error {
	st, gone := abandoned(x, ErrUnknown, now)
	if !gone {
		return ErrUnknown
	}
	_, err := c.desk.o.Store.Apply(ctx, api.Batch{At: now, Commands: []api.Command{reported(x, st)}})
	return err
}

func (c *Collector) report(ctx context.Context, was, is api.PaymentProviderStatus, now time.Time) error {
	if string(api.Encode(was)) == string(api.Encode(is)) {
		return nil
	}
	_, err := c.desk.o.Store.Apply(ctx, api.Batch{At: now, Commands: []api.Command{
		{Op: api.OpReport, Kind: api.KindPaymentSettings, ID: api.PaymentStatusID, Expect: api.AnyRevision, Data: api.Encode(is)}}})
	return err
}

// failed returns the status after one more failure.
func failed(was api.PaymentProviderStatus, err error, now time.Time) api.PaymentProviderStatus {
	const most = 300 // bytes
	next := api.PaymentProviderStatus{Attempts: was.Attempts + 1, Since: was.Since}
	if next.Since == nil {
		next.Since = &now
	}
	at := now.Add(unavailableWaits.Wait(api.PaymentStatusID, next.Attempts))
	next.NextAt = &at
	text := err.Error()
	next.LastError = text[:min(len(text), most)]
	return next
}
