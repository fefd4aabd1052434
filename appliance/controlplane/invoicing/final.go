package invoicing

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/invoice"
)

// DraftFinalInvoices returns the commands that issue the final invoices of an organization
// now, and these invoices: of the periods that have ended and have no invoice, and of
// the current one until the end of this hour. Without anything to charge since the last
// invoice, there are no commands, and the invoice is that one. The commands are valid as
// long as no other document of the seller is written; otherwise applying them fails with
// CodeConflict or CodeExists.
func (b Billing) DraftFinalInvoices(ctx context.Context, id api.OrganizationID, now time.Time) ([]api.Command, []api.Invoice, error) {
	org, err := api.Get[api.Organization](ctx, b.Store, api.KindOrganization, string(id))
	if err != nil {
		return nil, nil, err
	}
	if org.Spec.Billing == nil {
		return nil, nil, api.Errorf(api.CodeState, "organization %s has no billing terms, so it receives no invoices", org.Meta.Name).At("organization")
	}
	zone, err := org.Spec.Billing.Zone()
	if err != nil {
		return nil, nil, err
	}
	series, revision, err := b.series(ctx, org.Spec.Parent) // read before what its revision guards
	if err != nil {
		return nil, nil, err
	}
	d, err := b.documents(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	all := d.Invoices
	f := finals{billing: b, org: org, series: series, revision: revision}
	for _, p := range invoice.Final(org.Spec.Billing.Since, all, zone, now) {
		if err := f.add(ctx, slices.Concat(all, f.issued), p, now); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case len(f.issued) > 0:
		return f.cmds, f.issued, nil
	case len(all) == 0:
		return nil, nil, api.Errorf(api.CodeState, "organization %s has nothing to invoice", org.Meta.Name).At("organization")
	}
	return nil, all[len(all)-1:], nil
}

// finals is the state of one draft of final invoices.
type finals struct {
	billing  Billing
	org      api.Organization
	series   api.SeriesSpec
	revision int64
	cmds     []api.Command // the first one updates the series
	issued   []api.Invoice
}

// add adds the invoice of a period, unless there is nothing to charge. all are the
// invoices so far.
func (f *finals) add(ctx context.Context, all []api.Invoice, p invoice.Period, now time.Time) error {
	id := api.OrganizationID(f.org.Meta.ID)
	d, err := f.billing.draft(ctx, f.org, all, p, now)
	if err != nil {
		return err
	}
	if unused, err := f.billing.unusedRest(ctx, id, p); err != nil || len(d.Late) == 0 && (unused || len(d.Preview.Lines) == 0) {
		return err
	}
	if err := invoice.CheckParts(f.org.Meta.Name, all, p); err != nil {
		return fmt.Errorf("issue a final invoice: %w", err)
	}
	cmds, spec, err := invoice.Issue(d, f.series, f.revision)
	if err != nil {
		return fmt.Errorf("issue the invoice of organization %s from %s on: %w", id, p.From.Format(time.RFC3339), err)
	}
	f.series.Invoices++
	f.cmds = append(append(cmds[:1:1], f.cmds[min(1, len(f.cmds)):]...), cmds[1:]...)
	f.issued = append(f.issued, api.Invoice{Kind: api.KindInvoice, Meta: api.Meta{ID: cmds[1].ID, Name: cmds[1].Name, Organization: f.org.Meta.ID, CreatedAt: now.UTC()}, Spec: spec})
	return nil
}
