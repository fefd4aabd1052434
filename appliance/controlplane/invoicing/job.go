package invoicing

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/invoice"
	"github.com/basalt-gpu/basalt/billing/pricebook"
)

const (
	// Delay is how long after its end a period is invoiced: records may be late.
	Delay = 2 * time.Hour
	// emptyRetry is after how long a period without anything to invoice is checked
	// again, for late records.
	emptyRetry = 6 * time.Hour
	// pause is the shortest time between steps; after a long step it is restFactor times
	// its duration.
	pause      = time.Minute
	restFactor = 3
	// workers is how many organizations are processed at once, so that their writes
	// share the disk's syncs.
	workers = 16
)

// Writer writes in the leader's term, or fails.
type Writer interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
}

// Changes reports which organizations have changed.
type Changes interface {
	Touched(ctx context.Context, since int64, kinds ...api.Kind) (api.Touched, error)
}

// Job is the leader's part: it issues the invoices of each month. It processes an
// organization when something of it has changed, when the passing of time alone may
// have consequences, and every hour (agenda).
type Job struct {
	Billing Billing
	Store   Writer
	Changes Changes // of the same store
	Log     *slog.Logger

	mark    int64
	parents map[string]string // the seller of each organization that was touched
	issuing sync.Mutex        // held while an invoice gets its number: two at once would refuse each other

	mu      sync.Mutex // guards the fields below
	agenda  agenda
	running running
	// empty is when a period was last found to have nothing to invoice.
	empty map[emptyPeriod]time.Time
}

// emptyPeriod identifies a period of an organization.
type emptyPeriod struct {
	org  string
	from time.Time
}

// Run runs steps until ctx ends. Call it while this node leads, with the store of that
// term.
func (j *Job) Run(ctx context.Context) {
	for {
		began := time.Now()
		j.Step(ctx, began)
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(pause, restFactor*time.Since(began))):
		}
	}
}

// Step processes every organization that is due. A failure of one is logged, and
// retried with the next step.
func (j *Job) Step(ctx context.Context, now time.Time) {
	if err := j.readChanges(ctx); err != nil {
		j.Log.Warn("invoicing: list organizations failed", "error", err)
		return
	}
	due := make(chan string)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for id := range due {
				if err := j.process(ctx, id, now); err != nil && ctx.Err() == nil {
					j.Log.Warn("invoicing: read organization failed", "organization", id, "error", err)
				}
			}
		})
	}
	for _, id := range j.agenda.due(now) {
		if ctx.Err() != nil {
			break
		}
		due <- id
	}
	close(due)
	wg.Wait()
}

// readChanges adds the touched organizations to the agenda. It asks for them before
// anything is read: changes meanwhile are reported the next time.
func (j *Job) readChanges(ctx context.Context) error {
	t, err := j.Changes.Touched(ctx, j.mark, watched...)
	if err != nil {
		return fmt.Errorf("read which organizations have changed: %w", err)
	}
	var known []string
	if t.All {
		if err := api.Each(ctx, j.Billing.Store, api.ListQuery{Kind: api.KindOrganization}, func(o api.Object) error {
			known = append(known, o.Meta.ID)
			return nil
		}); err != nil {
			return err
		}
	}
	if j.agenda == nil {
		j.agenda, j.parents = agenda{}, map[string]string{}
	}
	if err := j.touchSellers(ctx, t); err != nil {
		return err
	}
	j.agenda.touched(t, known)
	j.running.touched(t)
	j.mark = t.Mark
	return nil
}

// process processes an organization, and decides when it is due again: after an error,
// with the next step.
func (j *Job) process(ctx context.Context, id string, now time.Time) error {
	org, _, err := j.organization(ctx, id)
	if api.CodeOf(err) == api.CodeNotFound || err == nil && org.Meta.DeletedAt != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		delete(j.agenda, id)
		j.running.drop(id)
		return nil
	}
	if err != nil {
		return err
	}
	issued, err := j.issue(ctx, org, now)
	fine := j.logFailure(ctx, "create invoice failed", org, err)
	checked, err := j.checkBalance(ctx, id, now)
	if j.logFailure(ctx, "check balance and budgets failed", org, err) && fine {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.agenda.reschedule(id, now, issued, checked)
	}
	return nil
}

func (j *Job) organization(ctx context.Context, id string) (org api.Organization, o api.Object, err error) {
	if o, err = j.Billing.Store.Get(ctx, api.KindOrganization, id); err != nil {
		return org, o, fmt.Errorf("read organization %s: %w", id, err)
	}
	org, err = api.Decode[api.Organization](o)
	return org, o, err
}

// logFailure logs an error, unless it is a conflict, and reports whether there was
// none.
func (j *Job) logFailure(ctx context.Context, what string, org api.Organization, err error) (fine bool) {
	if err != nil && !overtaken(err) && ctx.Err() == nil {
		j.Log.Warn("invoicing: "+what, "organization", org.Meta.Name, "error", err)
	}
	return err == nil
}

// issue issues the invoices of the periods that have ended. Each is one batch: after a
// crash it is issued or not begun. next is when the current period will have ended.
func (j *Job) issue(ctx context.Context, org api.Organization, now time.Time) (next time.Time, err error) {
	if org.Spec.Billing == nil {
		return next, nil
	}
	id := api.OrganizationID(org.Meta.ID)
	zone, err := org.Spec.Billing.Zone()
	if err != nil {
		return next, err
	}
	all, err := api.All[api.Invoice](ctx, j.Billing.Store, api.ListQuery{Kind: api.KindInvoice, Organization: org.Meta.ID})
	if err != nil {
		return next, err
	}
	open, present := invoice.Open(org.Spec.Billing.Since, all, zone, now.Add(-Delay))
	next = present.To.Add(Delay)
	if len(open) > 0 {
		j.issuing.Lock()
		defer j.issuing.Unlock()
	}
	for _, p := range open {
		name := emptyPeriod{org.Meta.ID, p.From}
		if j.wasEmpty(name, now) {
			continue
		}
		series, revision, err := j.Billing.series(ctx, org.Spec.Parent)
		if err != nil {
			return next, err
		}
		d, err := j.Billing.draft(ctx, org, all, p, now)
		if err != nil {
			return next, err
		}
		if len(d.Preview.Lines)+len(d.Late) == 0 {
			j.setEmpty(name, now)
			continue
		}
		cmds, spec, err := invoice.Issue(d, series, revision)
		if err != nil {
			return next, fmt.Errorf("issue the invoice of organization %s from %s on: %w", id, p.From.Format(time.RFC3339), err)
		}
		out, err := j.Store.Apply(ctx, api.Batch{At: now.UTC(), Commands: cmds})
		if err != nil {
			return next, fmt.Errorf("write invoice %s of organization %s: %w", spec.Number, id, err)
		}
		j.setEmpty(name, time.Time{})
		issued, err := api.Decode[api.Invoice](out[1])
		if err != nil {
			return next, err
		}
		all = append(all, issued) // late lines of this invoice are not charged again by later ones
		j.Log.Info("invoicing: issued invoice", "organization", org.Meta.Name, "number", spec.Number, "from", spec.From, "to", spec.To, "micros", spec.TotalMicros, "currency", spec.Currency)
	}
	return next, nil
}

// draft returns the content of the invoice of a period, if it is issued now.
func (b Billing) draft(ctx context.Context, org api.Organization, all []api.Invoice, p invoice.Period, now time.Time) (d invoice.Draft, err error) {
	id := api.OrganizationID(org.Meta.ID)
	d = invoice.Draft{Organization: org, Period: p, At: now}
	if d.Seller, err = b.seller(ctx, org); err != nil {
		return d, err
	}
	if d.Book, err = b.priceBook(ctx, id); err != nil {
		return d, err
	}
	if d.Prices, err = b.held(ctx, id, p.Start, p.To); err != nil {
		return d, err
	}
	if d.Taxes, err = b.taxSettings(ctx, org.Spec.Parent); err != nil {
		return d, err
	}
	taxes, err := b.decide(ctx, d.Taxes, org, now)
	if err != nil {
		return d, err
	}
	if d.Preview, err = b.rate(ctx, id, d.Prices, taxes, p); err != nil {
		return d, err
	}
	d.Late, err = b.late(ctx, id, all, d.Book.Spec)
	return d, err
}

func (j *Job) wasEmpty(name emptyPeriod, now time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	at, seen := j.empty[name]
	return seen && now.Sub(at) < emptyRetry
}

// setEmpty records that a period was empty; the zero time means that it is not.
func (j *Job) setEmpty(name emptyPeriod, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if now.IsZero() {
		delete(j.empty, name)
		return
	}
	if j.empty == nil {
		j.empty = map[emptyPeriod]time.Time{}
	}
	j.empty[name] = now
}

// overtaken reports whether another process has issued the invoice, or used its number,
// meanwhile.
func overtaken(err error) bool {
	return err != nil && (api.CodeOf(err) == api.CodeConflict || api.CodeOf(err) == api.CodeExists)
}

// late returns the lines for use of invoiced periods that became known later.
func (b Billing) late(ctx context.Context, org api.OrganizationID, all []api.Invoice, book api.PriceBookSpec) (lines []api.InvoiceLine, err error) {
	charged := map[api.InvoiceID][]api.InvoiceLine{}
	for _, inv := range all {
		for _, l := range inv.Spec.Lines {
			if l.Kind == api.LineLate {
				charged[l.Invoice] = append(charged[l.Invoice], l)
			}
		}
	}
	for _, inv := range all {
		if inv.Spec.Currency != book.Currency {
			return nil, api.Errorf(api.CodeState, "invoice %s is in %s, but the price book is in %s", inv.Spec.Number, inv.Spec.Currency, book.Currency).
				WithHint("the currency of an organization cannot change: assign a price book in %s", inv.Spec.Currency)
		}
		taxes, known := invoice.TaxationOf(inv.Spec)
		if !known {
			continue
		}
		rated, err := b.rate(ctx, org, pricebook.Of(inv.Spec).Completed(book), taxes, invoice.PeriodOf(inv.Spec))
		if err != nil {
			return nil, err
		}
		lines = append(lines, invoice.LateLines(inv, charged[api.InvoiceID(inv.Meta.ID)], rated)...)
	}
	return lines, nil
}
