package offboarding

import (
	"context"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// runs are the steps in which what an organization runs is deleted, when it has not
// paid: what costs, and what was derived from it. Projects, networks, users and keys
// are kept, so that users can sign in and pay.
var runs = [][]api.Kind{
	{api.KindLoadBalancer, api.KindFloatingIP, api.KindBackup, api.KindInstance},
	{api.KindSnapshot, api.KindSSHGuest},
	{api.KindVolume, api.KindImage},
}

// MustDelete reports whether what an organization runs must be deleted now: billing has
// decided it, has warned, and the time is over; and its terms still demand it.
func MustDelete(o api.Organization, now time.Time) bool {
	st, terms := o.Status.Billing, o.Spec.Billing
	return st != nil && terms != nil && st.State == api.BillingDeleteDue && terms.DeleteAfterDays > 0 && !now.Before(terms.GraceUntil) &&
		st.DeleteWarnedAt != nil && st.DeleteAt != nil && !now.Before(*st.DeleteAt) && o.Meta.DeletedAt == nil
}

// Unpaid returns the next step of the deletion for an organization that must be deleted. The batch is
// refused if the organization has changed since it was read.
func Unpaid(o api.Object, has []api.Object) (cmds []api.Command, left []api.Object) {
	if cmds, left = deletions(runs, has); len(cmds) == 0 {
		return nil, left
	}
	unchanged := api.Command{Op: api.OpReport, Kind: o.Kind, ID: o.Meta.ID, Expect: o.Meta.Revision, Data: o.Status}
	return append([]api.Command{unchanged}, cmds...), left
}

// deleteUnpaid runs one step of the deletion for an organization that must be deleted; done reports
// whether nothing is left.
func deleteUnpaid(ctx context.Context, s Store, id string, now time.Time) (done bool, err error) {
	o, err := s.Get(ctx, api.KindOrganization, id) // read again: it may have paid
	if api.CodeOf(err) == api.CodeNotFound {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read organization %s: %w", id, err)
	}
	org, err := api.Decode[api.Organization](o)
	if err != nil || !MustDelete(org, now) {
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
	if err != nil {
		return false, fmt.Errorf("delete what organization %s had: %w", id, err)
	}
	return false, nil
}
