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
	perBatch   = 100 // objects that are deleted at once
	// settledEvery is the time between checks of what may still change although its outcome
	// is known, and settledPerStep limits those checks.
	settledEvery   = 12 * time.Hour
	settledPerStep = 10
)

// unavailableWaits is the wait between calls of a provider that cannot be reached.
var unavailableWaits = api.Backoff{First: 5 * time.Second, Last: 10 * time.Minute}

// Collector follows checkouts, cards and refunds to their end while this node leads, independently of
// events, tops up, and pays invoices.
type Collector struct {
	service   *Service
	checkedAt map[string]time.Time    // when the provider was last asked about each checkout, card and refund
	looked    map[string]time.Time    // when the provider was last asked for new disputes and refunds
	balances  map[string]balanceCheck // by top-up
	owed      map[string]balanceCheck // by automatic payment
	// Wait returns after d; tests replace it.
	Wait func(ctx context.Context, d time.Duration)
}

// NewCollector returns a Collector that writes to the service's store, in the leader's
// term.
func NewCollector(svc *Service) *Collector {
	return &Collector{service: svc, checkedAt: map[string]time.Time{}, looked: map[string]time.Time{}, Wait: func(ctx context.Context, d time.Duration) {
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
			c.service.o.Log.Warn("follow checkouts failed, retrying", "error", err)
		}
		c.Wait(ctx, checkEvery)
	}
	return ctx.Err()
}

// Step does what is due now. The provider is asked about one page after the other;
// if it cannot be reached the others wait.
func (c *Collector) Step(ctx context.Context) error {
	all, err := api.All[api.Checkout](ctx, c.service.o.Store, api.ListQuery{Kind: api.KindCheckout})
	if err != nil {
		return err
	}
	cards, err := api.All[api.Card](ctx, c.service.o.Store, api.ListQuery{Kind: api.KindCard})
	if err != nil {
		return err
	}
	now := c.service.o.Now().UTC()
	if err := c.tidy(ctx, append(checkoutChores(all, now), cardChores(cards, now)...), now); err != nil {
		return err
	}
	refunds, err := api.All[api.Refund](ctx, c.service.o.Store, api.ListQuery{Kind: api.KindRefund})
	if err != nil {
		return err
	}
	disputes, err := api.All[api.Dispute](ctx, c.service.o.Store, api.ListQuery{Kind: api.KindDispute})
	if err != nil {
		return err
	}
	pages := slices.Concat(c.checkoutPages(all), c.cardPages(cards), c.refundPages(refunds, now), c.disputePages(disputes, now))
	if _, _, err := c.service.provider(ctx); err == nil { // otherwise there is nothing new
		pages = slices.Concat(pages, c.lookPages("disputes", now, c.service.settleDisputes), c.lookPages("refunds", now, c.service.settleFoundRefunds))
	}
	if due := c.due(pages, now); len(due) > 0 {
		if err := c.queryProvider(ctx, due, now); err != nil {
			return err
		}
	}
	// Last: what was paid meanwhile counts.
	if err := c.topUps(ctx, cards, now); err != nil {
		return err
	}
	return c.autoPays(ctx, cards, now)
}

// due returns the pages that the provider is to be asked about now. Those whose outcome is
// known are checked twice a day, a few in each step.
func (c *Collector) due(pages []page, now time.Time) (due []page) {
	there, settled := map[string]time.Time{}, 0
	for _, x := range pages {
		last := c.checkedAt[x.id]
		there[x.id] = last
		switch {
		case x.settled && (settled == settledPerStep || !last.IsZero() && now.Sub(last).Abs() < settledEvery):
		case x.settled:
			settled++
			due = append(due, x)
		case !nextCheck(x.created, last, now).After(now):
			due = append(due, x)
		}
	}
	c.checkedAt = there
	return due
}

// tidy writes the first of the commands; the others follow in the next step.
func (c *Collector) tidy(ctx context.Context, cmds []api.Command, now time.Time) error {
	if len(cmds) == 0 {
		return nil
	}
	_, err := c.service.apply(ctx, "delete or end old checkouts and cards", api.Batch{At: now, Commands: cmds[:min(len(cmds), perBatch)]})
	return err
}

// queryProvider asks the provider, unless a pause after an error lasts, and writes the result.
func (c *Collector) queryProvider(ctx context.Context, due []page, now time.Time) error {
	var was api.PaymentProviderStatus
	if o, err := c.service.o.Store.Get(ctx, api.KindPaymentSettings, api.PaymentStatusID); err == nil {
		stored, err := api.Decode[api.StoredPaymentSettings](o)
		if err != nil {
			return err
		}
		was = stored.Status
	}
	if was.NextAt != nil && now.Before(*was.NextAt) && was.NextAt.Sub(now) < 2*unavailableWaits.Last {
		return nil
	}
	p, _, err := c.service.provider(ctx)
	if err != nil {
		return err
	}
	// The page that was asked about last comes last, so that one that always fails
	// does not delay others.
	slices.SortStableFunc(due, func(a, b page) int { return c.checkedAt[a.id].Compare(c.checkedAt[b.id]) })
	is := api.PaymentProviderStatus{}
	for _, x := range due {
		err := x.settle(ctx, p)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.checkedAt[x.id] = now
		if errors.Is(err, ErrUnknown) {
			err = c.unknown(ctx, x, now)
		}
		if err == nil {
			continue
		}
		c.service.o.Log.Warn("settle page failed", "id", x.id, "error", err)
		is = failed(was, err, now)
		if unavailable := new(unavailableError); errors.As(err, &unavailable) {
			break
		}
		is.NextAt = nil // only this page fails: others need not wait
	}
	return c.report(ctx, was, is, now)
}

// unknown ends a page that the provider has not known for a long time.
func (c *Collector) unknown(ctx context.Context, x page, now time.Time) error {
	if gone, err := x.end(ctx, now); gone {
		return err
	}
	return ErrUnknown
}

func (c *Collector) report(ctx context.Context, was, is api.PaymentProviderStatus, now time.Time) error {
	if string(api.Encode(was)) == string(api.Encode(is)) {
		return nil
	}
	_, err := c.service.apply(ctx, "report the status of the payment provider", api.Batch{At: now, Commands: []api.Command{
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
