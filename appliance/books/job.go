package books

import (
	"context"
	"log/slog"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing"
)

const (
	// settle is how long after its end a period is invoiced: records come late.
	settle = 2 * time.Hour
	// again is when a period without anything to invoice is looked at again, for
	// records that came late.
	again = 6 * time.Hour
	// pause between steps; after a long one so many times what it took.
	pause = time.Minute
	rest  = 10
)

// Writer writes in the leader's term, or not at all.
type Writer interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
}

// Job is the leader's part: it closes the books of each month.
type Job struct {
	Books Books
	Store Writer
	Log   *slog.Logger

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

// Step looks at every organization once. What goes wrong with one is logged,
// and tried again with the next step.
func (j *Job) Step(ctx context.Context, now time.Time) {
	all, err := api.All[api.Organization](ctx, j.Books.Store, api.ListQuery{Kind: api.KindOrganization})
	if err != nil {
		j.Log.Warn("books: the organizations cannot be read", "error", err)
		return
	}
	for _, org := range all {
		if org.Meta.DeletedAt != nil || ctx.Err() != nil {
			continue
		}
		j.try(ctx, "no invoice", org, j.issue(ctx, org, now))
		j.try(ctx, "its balance and budgets are not looked at", org, j.dun(ctx, org, now))
	}
}

// try notes what went wrong.
func (j *Job) try(ctx context.Context, what string, org api.Organization, err error) {
	if err != nil && !overtaken(err) && ctx.Err() == nil {
		j.Log.Warn("books: "+what, "organization", org.Meta.Name, "error", err)
	}
}

// issue the invoices of the periods that have ended. Each is one batch: a
// process that dies leaves it done or not begun.
func (j *Job) issue(ctx context.Context, org api.Organization, now time.Time) error {
	if org.Spec.Billing == nil {
		return nil
	}
	id := api.OrganizationID(org.Meta.ID)
	zone, err := org.Spec.Billing.Zone()
	if err != nil {
		return err
	}
	all, err := api.All[api.Invoice](ctx, j.Books.Store, api.ListQuery{Kind: api.KindInvoice, Organization: org.Meta.ID})
	if err != nil {
		return err
	}
	open, _ := billing.Open(org.Spec.Billing.Since, all, zone, now.Add(-settle))
	for _, p := range open {
		name := empty{org.Meta.ID, p.From}
		if at, seen := j.empty[name]; seen && now.Sub(at) < again {
			continue
		}
		series, revision, err := j.Books.series(ctx, org.Spec.Parent)
		if err != nil {
			return err
		}
		d := billing.Draft{Organization: org, At: now}
		if d.Book, err = j.Books.priceBook(ctx, id); err != nil {
			return err
		}
		if d.Preview, err = j.Books.rate(ctx, id, d.Book.Spec, p.From, p.To); err != nil {
			return err
		}
		if d.Late, err = j.Books.late(ctx, id, all, d.Book.Spec); err != nil {
			return err
		}
		if len(d.Preview.Lines)+len(d.Late) == 0 {
			if j.empty == nil {
				j.empty = map[empty]time.Time{}
			}
			j.empty[name] = now
			continue
		}
		cmds, spec, err := billing.Issue(d, series, revision)
		if err != nil {
			return err
		}
		out, err := j.Store.Apply(ctx, api.Batch{At: now.UTC(), Commands: cmds})
		if err != nil {
			return err
		}
		delete(j.empty, name)
		issued, err := api.Decode[api.Invoice](out[1])
		if err != nil {
			return err
		}
		all = append(all, issued) // of a later period: what it charges late is charged
		j.Log.Info("books: invoice", "organization", org.Meta.Name, "number", spec.Number, "from", spec.From, "to", spec.To, "micros", spec.TotalMicros, "currency", spec.Currency)
	}
	return nil
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
			return nil, api.Errorf(api.CodeState, "invoice %s is in %s, and the price book in %s", inv.Spec.Number, inv.Spec.Currency, book.Currency).
				WithHint("an organization keeps its currency: give it a price book in %s", inv.Spec.Currency)
		}
		rated, err := b.rate(ctx, org, billing.Completed(inv.Spec.Prices, book), inv.Spec.From, inv.Spec.To)
		if err != nil {
			return nil, err
		}
		lines = append(lines, billing.Late(inv, charged[api.InvoiceID(inv.Meta.ID)], rated)...)
	}
	return lines, nil
}
