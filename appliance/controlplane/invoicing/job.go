package invoicing

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/invoice"
	"github.com/basalt-gpu/basalt/billing/pricebook"
)

const (
	// settle is how long after its end a period is invoiced: records come late.
	settle = 2 * time.Hour
	// again is when a period without anything to invoice is looked at again, for
	// records that came late.
	again = 6 * time.Hour
	// pause between steps; after a long one so many times what it took.
	pause = time.Minute
	rest  = 3
	// looks at once, whose writes share the disk's syncs.
	looks = 16
)

// Writer writes in the leader's term, or not at all.
type Writer interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
}

// Changes describes who is worth a look.
type Changes interface {
	Touched(ctx context.Context, since int64, kinds ...api.Kind) (api.Touched, error)
}

// Job is the leader's part: it closes the books of each month. It looks at an
// organization when something of it has changed, when the passing of time may
// change what follows of it, and every hour (agenda).
type Job struct {
	Books   Books
	Store   Writer
	Changes Changes // of the same store
	Log     *slog.Logger

	mark    int64
	parents map[string]string // the seller of each organization that was touched
	issuing sync.Mutex        // held while an invoice takes its number: two at once would refuse each other

	mu      sync.Mutex // guards what is below
	agenda  agenda
	running running
	// empty is when a period was last seen to have nothing to invoice.
	empty map[empty]time.Time
}

// empty names a period.
type empty struct {
	org  string
	from time.Time
}

// Run until ctx ends. Call it while this node leads, with the store of that term.
func (j *Job) Run(ctx context.Context) {
	for {
		began := time.Now()
		j.Step(ctx, began)
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(pause, rest*time.Since(began))):
		}
	}
}

// Step looks at every organization that is due. What goes wrong with one is
// logged, and tried again with the next step.
func (j *Job) Step(ctx context.Context, now time.Time) {
	if err := j.news(ctx); err != nil {
		j.Log.Warn("invoicing: list organizations failed", "error", err)
		return
	}
	due := make(chan string)
	var wg sync.WaitGroup
	for range looks {
		wg.Go(func() {
			for id := range due {
				if err := j.look(ctx, id, now); err != nil && ctx.Err() == nil {
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

// news puts on the agenda who was touched. It asks for that before anything is
// read: what changes meanwhile is said the next time.
func (j *Job) news(ctx context.Context) error {
	t, err := j.Changes.Touched(ctx, j.mark, watched...)
	if err != nil {
		return err
	}
	var known []string
	if t.All {
		if err := api.Each(ctx, j.Books.Store, api.ListQuery{Kind: api.KindOrganization}, func(o api.Object) error {
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

// look at an organization, and decide when to look again: after an error, with
// the next step.
func (j *Job) look(ctx context.Context, id string, now time.Time) error {
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
	fine := j.try(ctx, "create invoice failed", org, err)
	dunned, err := j.dun(ctx, id, now)
	if j.try(ctx, "check balance and budgets failed", org, err) && fine {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.agenda.looked(id, now, issued, dunned)
	}
	return nil
}

func (j *Job) organization(ctx context.Context, id string) (org api.Organization, o api.Object, err error) {
	if o, err = j.Books.Store.Get(ctx, api.KindOrganization, id); err != nil {
		return org, o, err
	}
	org, err = api.Decode[api.Organization](o)
	return org, o, err
}

// try notes what went wrong.
func (j *Job) try(ctx context.Context, what string, org api.Organization, err error) (fine bool) {
	if err != nil && !overtaken(err) && ctx.Err() == nil {
		j.Log.Warn("invoicing: "+what, "organization", org.Meta.Name, "error", err)
	}
	return err == nil
}

// issue the invoices of the periods that have ended. Each is one batch: a
// process that dies leaves it done or not begun. next is when the present one
// has ended.
func (j *Job) issue(ctx context.Context, org api.Organization, now time.Time) (next time.Time, err error) {
	if org.Spec.Billing == nil {
		return next, nil
	}
	id := api.OrganizationID(org.Meta.ID)
	zone, err := org.Spec.Billing.Zone()
	if err != nil {
		return next, err
	}
	all, err := api.All[api.Invoice](ctx, j.Books.Store, api.ListQuery{Kind: api.KindInvoice, Organization: org.Meta.ID})
	if err != nil {
		return next, err
	}
	open, present := invoice.Open(org.Spec.Billing.Since, all, zone, now.Add(-settle))
	next = invoice.PeriodEnd(present, zone).Add(settle)
	if len(open) > 0 {
		j.issuing.Lock()
		defer j.issuing.Unlock()
	}
	for _, p := range open {
		name := empty{org.Meta.ID, p.From}
		if j.wasEmpty(name, now) {
			continue
		}
		series, revision, err := j.Books.series(ctx, org.Spec.Parent)
		if err != nil {
			return next, err
		}
		d := invoice.Draft{Organization: org, At: now}
		if d.Book, err = j.Books.priceBook(ctx, id); err != nil {
			return next, err
		}
		if d.Prices, err = j.Books.held(ctx, id, p.From, p.To); err != nil {
			return next, err
		}
		if d.Preview, err = j.Books.rate(ctx, id, d.Prices, p.From, p.To); err != nil {
			return next, err
		}
		if d.Late, err = j.Books.late(ctx, id, all, d.Book.Spec); err != nil {
			return next, err
		}
		if len(d.Preview.Lines)+len(d.Late) == 0 {
			j.setEmpty(name, now)
			continue
		}
		cmds, spec, err := invoice.Issue(d, series, revision)
		if err != nil {
			return next, err
		}
		out, err := j.Store.Apply(ctx, api.Batch{At: now.UTC(), Commands: cmds})
		if err != nil {
			return next, err
		}
		j.setEmpty(name, time.Time{})
		issued, err := api.Decode[api.Invoice](out[1])
		if err != nil {
			return next, err
		}
		all = append(all, issued) // of a later period: what it charges late is charged
		j.Log.Info("invoicing: issued invoice", "organization", org.Meta.Name, "number", spec.Number, "from", spec.From, "to", spec.To, "micros", spec.TotalMicros, "currency", spec.Currency)
	}
	return next, nil
}

func (j *Job) wasEmpty(name empty, now time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	at, seen := j.empty[name]
	return seen && now.Sub(at) < again
}

// setEmpty notes that a period was empty; at the zero time: that it is not.
func (j *Job) setEmpty(name empty, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if now.IsZero() {
		delete(j.empty, name)
		return
	}
	if j.empty == nil {
		j.empty = map[empty]time.Time{}
	}
	j.empty[name] = now
}

// overtaken: somebody else has issued it, or has used the number, meanwhile.
func overtaken(err error) bool {
	return err != nil && (api.CodeOf(err) == api.CodeConflict || api.CodeOf(err) == api.CodeExists)
}

// late are the lines for what became known of invoiced periods since.
func (b Books) late(ctx context.Context, org api.OrganizationID, all []api.Invoice, book api.PriceBookSpec) (lines []api.InvoiceLine, err error) {
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
		rated, err := b.rate(ctx, org, pricebook.Of(inv.Spec).Completed(book), inv.Spec.From, inv.Spec.To)
		if err != nil {
			return nil, err
		}
		lines = append(lines, invoice.Late(inv, charged[api.InvoiceID(inv.Meta.ID)], rated)...)
	}
	return lines, nil
}
