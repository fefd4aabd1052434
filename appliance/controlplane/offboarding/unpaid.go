package offboarding

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// runs are the steps in which what an organization runs is deleted, when it has
// not paid: what costs, and what was made of it. Projects, networks, users and
// keys stay, and with them the way to log in and pay.
var runs = [][]api.Kind{
	{api.KindLoadBalancer, api.KindFloatingIP, api.KindBackup, api.KindInstance},
	{api.KindSnapshot, api.KindSSHGuest},
	{api.KindVolume, api.KindImage},
}

// Doomed reports whether what an organization runs is to be deleted now: billing
// has said so, has warned, and the time is over; and its terms still want it.
func Doomed(o api.Organization, now time.Time) bool {
	st, terms := o.Status.Billing, o.Spec.Billing
	return st != nil && terms != nil && st.State == api.BillingDeleteDue && terms.DeleteAfterDays > 0 && !now.Before(terms.GraceUntil) &&
		st.DeleteWarnedAt != nil && st.DeleteAt != nil && !now.Before(*st.DeleteAt) && o.Meta.DeletedAt == nil
}

// Unpaid is the next step of the deletion of what a doomed organization has.
// All of it is refused when the organization has changed since it was read.
func Unpaid(o api.Object, has []api.Object) (cmds []api.Command, left []api.Object) {
	if cmds, left = deletions(runs, has); len(cmds) == 0 {
		return nil, left
	}
	unchanged := api.Command{Op: api.OpReport, Kind: o.Kind, ID: o.Meta.ID, Expect: o.Meta.Revision, Data: o.Status}
	return append([]api.Command{unchanged}, cmds...), left
}

// deleteUnpaid takes the deletion of what a doomed organization runs one step on;
// done: nothing is left.
func deleteUnpaid(ctx context.Context, s Store, id string, now time.Time) (done bool, err error) {
	o, err := s.Get(ctx, api.KindOrganization, id) // anew: it may have paid
	if api.CodeOf(err) == api.CodeNotFound {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	org, err := api.Decode[api.Organization](o)
	if err != nil || !Doomed(org, now) {
		return true, err
	}
	has, err := belongings(ctx, s, id)
	if err != nil {
		return false, err
	}
	cmds, left := Unpaid(o, has)
	if len(cmds) == 0 {
		return len(left) == 0, nil
	}
	_, err = s.Apply(ctx, api.Batch{At: now.UTC(), Commands: cmds, Audit: api.BillingNote("DeleteUnpaid")})
	return false, err
}
