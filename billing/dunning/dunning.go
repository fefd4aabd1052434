package dunning

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/ledger"
)

// Balance is an organization's prepaid credit or debt.
type Balance struct {
	BalanceMicros  int64 // prepaid; negative: owed
	UnbilledMicros int64 // usage since the last invoice
	Open           []api.OpenInvoice
	DueAgain       time.Time // when what had been paid was returned; zero: it was not
	Collection     Collection
}

// BalanceOf computes an organization's balance from its documents. Credit notes
// reduce their invoice, payments the oldest invoices first.
func BalanceOf(org api.OrganizationID, d ledger.Documents, currency string, unbilled int64) (Balance, error) {
	s := Balance{UnbilledMicros: unbilled}
	journal, err := d.Journal()
	if err != nil {
		return s, fmt.Errorf("derive the journal of organization %s: %w", org, err)
	}
	ledgers, err := ledger.Ledgers(journal)
	if err != nil {
		return s, fmt.Errorf("post the journal of organization %s: %w", org, err)
	}
	if l := ledgers[currency]; l != nil {
		s.BalanceMicros = -l.Balance(ledger.Receivable(org))
	}
	credited := map[api.InvoiceID]int64{}
	for _, n := range d.CreditNotes {
		credited[n.Spec.Invoice] += n.Spec.TotalMicros
	}
	for _, inv := range d.Invoices {
		if left := inv.Spec.TotalMicros - credited[api.InvoiceID(inv.Meta.ID)]; left > 0 {
			s.Open = append(s.Open, api.OpenInvoice{Invoice: api.InvoiceID(inv.Meta.ID), Number: inv.Spec.Number, DueAt: inv.Spec.DueAt, LeftMicros: left})
		}
	}
	slices.SortFunc(s.Open, func(a, b api.OpenInvoice) int {
		return cmp.Or(b.DueAt.Compare(a.DueAt), cmp.Compare(b.Number, a.Number))
	})
	// The total debt belongs to the most recent invoices.
	owed := max(0, -s.BalanceMicros)
	for i := range s.Open {
		s.Open[i].LeftMicros = min(s.Open[i].LeftMicros, owed)
		owed -= s.Open[i].LeftMicros
	}
	s.Open = slices.DeleteFunc(s.Open, func(o api.OpenInvoice) bool { return o.LeftMicros == 0 })
	slices.Reverse(s.Open)
	s.DueAgain = dueAgain(d.Payments, currency, s.Open)
	return s, nil
}

// NextStatus decides the consequences of a balance. was is the previous decision: it records
// since when prepaid credit is used up, which, unlike due dates, cannot be derived.
func NextStatus(now time.Time, terms api.OrganizationBilling, s Balance, was api.BillingStatus) api.BillingStatus {
	grace := now.Before(terms.GraceUntil)
	if grace {
		terms.DeleteAfterDays = 0 // it is not announced either
	}
	next := api.BillingStatus{State: api.BillingOK}
	switch terms.Mode {
	case api.BillingPrepaid:
		next = prepaidStatus(now, terms, s, was)
	case api.BillingInvoice:
		if !s.Collection.Waits {
			next = invoiceStatus(now, terms, s, was)
		}
	}
	if grace && worse(next.State, api.BillingWarn) {
		next.State = api.BillingWarn
		next.Message += fmt.Sprintf("; no further action until %s UTC", terms.GraceUntil.UTC().Format(time.DateTime))
	}
	if terms.Mode == api.BillingInvoice && s.Collection.postpones(now, next, was) {
		next = was
		next.State = cmp.Or(was.State, api.BillingOK)
	}
	if next.Since = now.UTC(); next.State == was.State {
		next.Since = was.Since
	}
	return next
}

func prepaidStatus(now time.Time, terms api.OrganizationBilling, s Balance, was api.BillingStatus) api.BillingStatus {
	left := s.BalanceMicros - s.UnbilledMicros
	switch {
	case left > -terms.CreditMicros && left < terms.WarnBelow():
		return api.BillingStatus{State: api.BillingWarn, Message: "the prepaid balance is low"}
	case left > -terms.CreditMicros:
		return api.BillingStatus{State: api.BillingOK}
	}
	exhausted := was.ExhaustedAt
	if exhausted == nil || exhausted.After(now) {
		at := now.UTC()
		exhausted = &at
	}
	next := api.BillingStatus{ExhaustedAt: exhausted, Message: "the prepaid balance is used up"}
	return unpaid(now, *exhausted, 0, terms, next, was)
}

func invoiceStatus(now time.Time, terms api.OrganizationBilling, s Balance, was api.BillingStatus) api.BillingStatus {
	if len(s.Open) == 0 || now.Before(s.unpaidSince()) {
		return api.BillingStatus{State: api.BillingOK}
	}
	o, since := s.Open[0], s.unpaidSince()
	next := api.BillingStatus{Message: fmt.Sprintf("invoice %s was due on %s", o.Number, o.DueAt.UTC().Format(time.DateOnly))}
	if since.After(o.DueAt) {
		next.Message = fmt.Sprintf("a payment of invoice %s was returned on %s", o.Number, since.UTC().Format(time.DateOnly))
	}
	return unpaid(now, since, terms.DaysUntilStop(), terms, next, was)
}

const day = 24 * time.Hour

// DeleteNotice is the least time between the warning of an organization's deletion and
// the deletion, also when NextStatus was not called for a while or the terms have changed.
const DeleteNotice = 7 * day

// deadlines returns the deadlines for an amount that is unpaid since a time.
func deadlines(since time.Time, stopDays int64, terms api.OrganizationBilling) (stop, suspend, remove time.Time) {
	suspend = since.Add(time.Duration(max(stopDays, terms.DaysUntilSuspension())) * day)
	return since.Add(time.Duration(stopDays) * day), suspend, suspend.Add(time.Duration(terms.DeleteAfterDays) * day)
}

// unpaid decides the consequences of an amount that is unpaid since a time.
func unpaid(now, since time.Time, stopDays int64, terms api.OrganizationBilling, next, was api.BillingStatus) api.BillingStatus {
	stop, suspend, remove := deadlines(since, stopDays, terms)
	switch {
	case now.Before(stop):
		next.State = api.BillingWarn
	case now.Before(suspend):
		next.State = api.BillingStop
	case terms.DeleteAfterDays == 0 || now.Before(remove.Add(-DeleteNotice)):
		next.State = api.BillingSuspended
	default:
		return announceDeletion(now, remove, next, was)
	}
	return next
}

// announceDeletion warns of the deletion, which is due at remove, but not before DeleteNotice
// after the warning.
func announceDeletion(now, remove time.Time, next, was api.BillingStatus) api.BillingStatus {
	warned := now.UTC()
	if was.DeleteWarnedAt != nil && !was.DeleteWarnedAt.After(now) {
		warned = *was.DeleteWarnedAt
	}
	if soonest := warned.Add(DeleteNotice); remove.Before(soonest) {
		remove = soonest
	}
	remove = remove.UTC()
	next.DeleteWarnedAt, next.DeleteAt = &warned, &remove
	next.State = api.BillingSuspended
	if !now.Before(remove) {
		next.State = api.BillingDeleteDue
	}
	next.Message += fmt.Sprintf("; its resources are permanently deleted on %s UTC", remove.Format(time.DateTime))
	return next
}

var badness = []api.BillingState{api.BillingOK, api.BillingWarn, api.BillingStop, api.BillingSuspended, api.BillingDeleteDue}

// worse reports whether a is more severe than b.
func worse(a, b api.BillingState) bool { return slices.Index(badness, a) > slices.Index(badness, b) }

// Restrict returns the spec of an organization in a billing state: restricted from stop
// on, suspended from suspended on. A suspension set by another role is left unchanged,
// and only a suspension by billing is lifted.
func Restrict(s api.OrganizationSpec, state api.BillingState, reason string) api.OrganizationSpec {
	s.Restricted = nil
	if !worse(api.BillingStop, state) {
		s.Restricted = &api.Restriction{Reason: reason}
	}
	byBilling := s.Suspended != nil && s.Suspended.By == api.RoleBilling
	switch {
	case worse(api.BillingSuspended, state):
		if byBilling {
			s.Suspended = nil
		}
	case s.Suspended == nil || byBilling:
		s.Suspended = &api.OrganizationSuspension{Reason: reason, By: api.RoleBilling}
	}
	return s
}

// Worst returns the more severe of two states, with its reason.
func Worst(a api.BillingState, why string, b api.BillingState, because string) (api.BillingState, string) {
	if worse(b, a) {
		return b, because
	}
	return a, why
}

// NextChange returns when the result of NextStatus for the same balance may differ from the
// current one, st; zero: never.
func NextChange(now time.Time, terms api.OrganizationBilling, s Balance, st api.BillingStatus) time.Time {
	moments := []time.Time{terms.GraceUntil}
	if st.DeleteAt != nil {
		moments = append(moments, *st.DeleteAt)
	}
	steps := func(since time.Time, stopDays int64) {
		stop, suspend, remove := deadlines(since, stopDays, terms)
		moments = append(moments, since, stop, suspend, remove, remove.Add(-DeleteNotice))
	}
	switch {
	case terms.Mode == api.BillingPrepaid && st.ExhaustedAt != nil:
		steps(*st.ExhaustedAt, 0)
	case terms.Mode == api.BillingInvoice && len(s.Open) > 0:
		steps(s.unpaidSince(), terms.DaysUntilStop())
		moments = append(moments, s.Collection.ChargingUntil, s.Collection.RetryUntil)
	}
	return Soonest(now, moments...)
}

// Soonest returns the earliest of the times after now; zero if there is none.
func Soonest(now time.Time, moments ...time.Time) (first time.Time) {
	for _, m := range moments {
		if m.After(now) && (first.IsZero() || m.Before(first)) {
			first = m
		}
	}
	return first
}
