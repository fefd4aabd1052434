package vatcheck

import (
	"cmp"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/vat"
	"github.com/basalt-gpu/basalt/billing/tax"
)

// The waits until a number is verified again: after an answer, and after attempts without
// one.
var (
	validWait   = api.Backoff{First: 7 * 24 * time.Hour, Last: 7 * 24 * time.Hour}
	invalidWait = api.Backoff{First: 24 * time.Hour, Last: 24 * time.Hour}
	retryWaits  = api.Backoff{First: 5 * time.Minute, Last: 6 * time.Hour}
)

// State is what the verifications depend on.
type State struct {
	Settings      []api.StoredTaxSettings
	Organizations []api.Organization
	Checks        []api.VATCheck
}

// Plan returns the commands that make the verifications match the numbers that need one,
// and those that are due, the longest overdue first. Those that the commands create or
// change are due when they have been applied.
func Plan(s State, now time.Time) (cmds []api.Command, due []api.VATCheck) {
	wanted, order := s.wanted()
	seen := map[string]bool{}
	for _, c := range s.Checks {
		w, is := wanted[c.Meta.ID]
		switch {
		case !is:
			cmds = append(cmds, api.Command{Op: api.OpDelete, Kind: api.KindVATCheck, ID: c.Meta.ID, Expect: c.Meta.Revision})
			continue
		case w.spec != c.Spec:
			cmds = append(cmds, replaced(c, w)...)
		case overdue(c.Status, now):
			due = append(due, c)
		}
		seen[c.Meta.ID] = true
	}
	for _, id := range order {
		if !seen[id] {
			cmds = append(cmds, api.Command{Op: api.OpPutSpec, Kind: api.KindVATCheck, ID: id, Name: id, Organization: wanted[id].organization, Data: api.Encode(wanted[id].spec)})
		}
	}
	slices.SortStableFunc(due, func(a, b api.VATCheck) int {
		return cmp.Or(nextAt(a).Compare(nextAt(b)), cmp.Compare(a.Meta.ID, b.Meta.ID))
	})
	return cmds, due
}

type want struct {
	organization string
	spec         api.VATCheckSpec
}

// wanted returns the verifications that there should be, by ID, and their IDs in order.
func (s State) wanted() (out map[string]want, order []string) {
	settings := map[string]api.TaxSettings{}
	for _, x := range s.Settings {
		settings[x.Meta.Organization] = x.Spec
	}
	out = map[string]want{}
	for _, o := range s.Organizations {
		seller := settings[string(o.Spec.Parent)]
		if !seller.VerifyNumbers || o.Meta.DeletedAt != nil {
			continue
		}
		number := tax.Reversible(seller, o.Spec.Billing)
		if number == "" {
			continue
		}
		requester, err := vat.Number(seller.Country, seller.TaxID)
		if err != nil { // the settings were refused with it
			requester = ""
		}
		id := string(api.VATCheckIDOf(api.OrganizationID(o.Meta.ID)))
		out[id] = want{o.Meta.ID, api.VATCheckSpec{Number: number, Requester: requester, Customer: cmp.Or(o.Spec.DisplayName, o.Meta.Name)}}
		order = append(order, id)
	}
	slices.Sort(order)
	return out, order
}

// replaced returns the commands for a verification of another number, by another seller, or
// of a customer with another name.
// What is known of the same number stays until it is verified again.
func replaced(c api.VATCheck, w want) []api.Command {
	st := api.VATCheckStatus{}
	if c.Spec.Number == w.spec.Number {
		st = c.Status
		st.NextAt, st.Attempts, st.NameDiffers = nil, 0, vat.NamesDiffer(st.Name, w.spec.Customer)
	}
	return []api.Command{
		{Op: api.OpPutSpec, Kind: api.KindVATCheck, ID: c.Meta.ID, Name: c.Meta.ID, Organization: w.organization, Expect: c.Meta.Revision, Data: api.Encode(w.spec)},
		{Op: api.OpReport, Kind: api.KindVATCheck, ID: c.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(st)},
	}
}

func nextAt(c api.VATCheck) (at time.Time) {
	if c.Status.NextAt != nil {
		at = *c.Status.NextAt
	}
	return at
}

// overdue reports whether a number is to be verified now. A clock that was set back does
// not delay that by more than twice the longest wait.
func overdue(st api.VATCheckStatus, now time.Time) bool {
	return st.NextAt == nil || !st.NextAt.After(now) || st.NextAt.Sub(now) > 2*validWait.Last
}

// answered returns the status after an answer.
func answered(c api.VATCheck, a Answer, now time.Time) api.VATCheckStatus {
	wait, state := invalidWait, api.VATInvalid
	if a.Valid {
		wait, state = validWait, api.VATValid
	}
	next := now.Add(wait.Wait(c.Meta.ID, 1))
	return api.VATCheckStatus{State: state, CheckedAt: &now, Consultation: a.Consultation, Name: a.Name, Address: a.Address,
		NameDiffers: a.Valid && vat.NamesDiffer(a.Name, c.Spec.Customer), NextAt: &next}
}

// unanswered returns the status after an attempt without an answer: the last answer stays.
func unanswered(c api.VATCheck, f *Failure, now time.Time) api.VATCheckStatus {
	st := c.Status
	st.Attempts++
	st.LastError = f.Reason
	if st.State == "" {
		st.State = api.VATPending
	}
	next := now.Add(retryWaits.Wait(c.Meta.ID, st.Attempts))
	st.NextAt = &next
	return st
}
