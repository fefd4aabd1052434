package invoicing

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/dunning"
	"github.com/basalt-gpu/basalt/billing/invoice"
)

// checkBalance checks an organization's balance and budgets and writes the consequences:
// statuses, restrictions and suspensions. All of it is one batch, which is refused if
// the organization has changed since it was read. next is when the passing of time
// alone may have another consequence.
func (j *Job) checkBalance(ctx context.Context, id string, now time.Time) (next time.Time, err error) {
	// Read again, so that changes since then count: the consequences of an invoice, or
	// an operator's decision.
	org, o, err := j.organization(ctx, id)
	if err != nil {
		return next, err
	}
	state, reason := api.BillingOK, ""
	var cmds []api.Command
	var note *api.AuditNote
	var besides *api.CommandEvent // a second event
	if terms := org.Spec.Billing; terms != nil {
		s, err := j.balance(ctx, org, now)
		if err != nil {
			return next, err
		}
		st := dunning.NextStatus(now, *terms, s, statusOf(org))
		next = dunning.NextChange(now, *terms, s, st)
		state, reason = st.State, st.Message
		statusCmds := reported(o, api.OrganizationStatus{Billing: &st})
		if was := cmp.Or(statusOf(org).State, api.BillingOK); st.State != was {
			raise(statusCmds, billingEvents[st.State], st)
		}
		if st.DeleteWarnedAt != nil && statusOf(org).DeleteWarnedAt == nil {
			if len(statusCmds) > 0 {
				besides = statusCmds[0].Event
			}
			raise(statusCmds, "billing.delete_warning", st)
			note = api.BillingNote("WarnOfDeletion")
		}
		cmds = append(cmds, statusCmds...)
	} else if org.Status.Billing != nil {
		cmds = append(cmds, reported(o, api.OrganizationStatus{})...)
	}
	more, capped, why, err := j.budgets(ctx, org, now)
	if err != nil {
		return next, err
	}
	if zone, err := zoneOf(org); err == nil { // otherwise budgets returned the error
		next = dunning.Soonest(now, next, invoice.NextMonth(now, zone))
	}
	cmds = append(cmds, more...)
	if state, reason = dunning.Worst(state, reason, capped, why); !bytes.Equal(api.Encode(dunning.Restrict(org.Spec, state, reason)), api.Encode(org.Spec)) {
		spec := dunning.Restrict(org.Spec, state, reason)
		// First: the revision guards only this command.
		cmds = append([]api.Command{{Op: api.OpPutSpec, Kind: o.Kind, ID: o.Meta.ID, Expect: o.Meta.Revision, Labels: o.Meta.Labels,
			Data: api.Encode(spec), Limits: spec.Limits(), Event: besides}}, cmds...)
		j.Log.Info("invoicing: changed billing state of organization", "organization", org.Meta.Name, "state", state, "reason", reason)
	}
	if len(cmds) == 0 {
		return next, nil
	}
	_, err = j.Store.Apply(ctx, api.Batch{At: now.UTC(), Commands: cmds, Audit: note})
	if err != nil {
		return next, fmt.Errorf("write the billing state of organization %s: %w", id, err)
	}
	return next, nil
}

// balance returns the balance of an organization. Use without an invoice counts only
// for organizations that pay in advance: the others owe what is invoiced.
func (j *Job) balance(ctx context.Context, org api.Organization, now time.Time) (dunning.Balance, error) {
	return j.Billing.balanceBy(ctx, org, func(_ api.PriceBook, invoices []api.Invoice) (int64, error) {
		if org.Spec.Billing.Mode != api.BillingPrepaid {
			return 0, nil
		}
		return unbilled(org, invoices, now, func(p invoice.Period, until time.Time) (api.InvoicePreview, error) {
			return j.rateSoFar(ctx, org.Meta.ID, p, until)
		})
	})
}

// billingEvents are the webhook events that are raised when a state begins.
var billingEvents = map[api.BillingState]string{api.BillingOK: "billing.ok", api.BillingWarn: "billing.warn", api.BillingStop: "billing.stop",
	api.BillingSuspended: "billing.suspended", api.BillingDeleteDue: "billing.delete_due"}

// budgetEvent is the data of budget.alert.
type budgetEvent struct {
	ID     string           `json:"id"`
	Name   string           `json:"name"`
	Spec   api.BudgetSpec   `json:"spec"`
	Status api.BudgetStatus `json:"status"`
}

// raise adds an event to commands that change something.
func raise(cmds []api.Command, what string, data any) {
	for i := range cmds {
		cmds[i].Event = &api.CommandEvent{Type: what, Data: api.Encode(data)}
	}
}

// reported returns the command that reports a status, if it has changed.
func reported(o api.Object, status any) []api.Command {
	raw := api.Encode(status)
	if bytes.Equal(raw, o.Status) {
		return nil
	}
	return []api.Command{{Op: api.OpReport, Kind: o.Kind, ID: o.Meta.ID, Expect: api.AnyRevision, Data: raw}}
}

// budgets checks what was spent this month: it returns the commands for what has
// changed, and the state that the organization's own budgets demand.
func (j *Job) budgets(ctx context.Context, org api.Organization, now time.Time) (cmds []api.Command, state api.BillingState, reason string, err error) {
	state = api.BillingOK
	capped := map[string]string{} // project → reason
	var objects []api.Object
	if err = api.Each(ctx, j.Billing.Store, api.ListQuery{Kind: api.KindBudget, Organization: org.Meta.ID}, func(o api.Object) error {
		objects = append(objects, o)
		return nil
	}); err != nil {
		return nil, state, "", err
	}
	if len(objects) > 0 {
		rated, month, err := j.month(ctx, org, now)
		if err != nil {
			return nil, state, "", err
		}
		for _, o := range objects {
			b, err := api.Decode[api.Budget](o)
			if err != nil {
				return nil, state, "", err
			}
			st := dunning.Assess(b.Spec, b.Status, month, dunning.Spent(rated, b.Spec.Project), now)
			statusCmds := reported(o, st)
			if b.Status.Month != month && len(st.Alerts) > 0 || b.Status.Month == month && len(st.Alerts) > len(b.Status.Alerts) {
				raise(statusCmds, "budget.alert", budgetEvent{ID: o.Meta.ID, Name: o.Meta.Name, Spec: b.Spec, Status: st})
			}
			cmds = append(cmds, statusCmds...)
			why := "the budget " + o.Meta.Name + " of " + month + " is used"
			switch {
			case st.CappedAt == nil:
			case b.Spec.Project != "":
				capped[string(b.Spec.Project)] = why
			case b.Spec.Cap == api.CapSuspend:
				state, reason = dunning.Worst(state, reason, api.BillingSuspended, why)
			default:
				state, reason = dunning.Worst(state, reason, api.BillingStop, why)
			}
		}
	}
	err = api.Each(ctx, j.Billing.Store, api.ListQuery{Kind: api.KindProject, Organization: org.Meta.ID}, func(o api.Object) error {
		p, err := api.Decode[api.Project](o)
		if err != nil || o.Meta.DeletedAt != nil {
			return err
		}
		next := p.Spec
		if next.Restricted = nil; capped[o.Meta.ID] != "" {
			next.Restricted = &api.Restriction{Reason: capped[o.Meta.ID]}
		}
		if !bytes.Equal(api.Encode(next), api.Encode(p.Spec)) {
			cmds = append(cmds, api.Command{Op: api.OpPutSpec, Kind: o.Kind, ID: o.Meta.ID, Expect: o.Meta.Revision, Labels: o.Meta.Labels,
				Data: api.Encode(next), Limits: next.Limits()})
		}
		return nil
	})
	return cmds, state, reason, err
}

// zoneOf returns the time zone of the organization's months.
func zoneOf(org api.Organization) (*time.Location, error) {
	terms := api.OrganizationBilling{}
	if org.Spec.Billing != nil {
		terms = *org.Spec.Billing
	}
	return terms.Zone()
}

// month rates the organization's use of the calendar month up to now.
func (j *Job) month(ctx context.Context, org api.Organization, now time.Time) (api.InvoicePreview, string, error) {
	zone, err := zoneOf(org)
	if err != nil {
		return api.InvoicePreview{}, "", err
	}
	from, name := invoice.MonthOf(now, zone)
	if !from.Before(now) {
		return api.InvoicePreview{}, name, nil
	}
	p, err := j.rateSoFar(ctx, org.Meta.ID, invoice.Whole(from, invoice.PeriodEnd(from, zone)), now)
	return p, name, err
}
