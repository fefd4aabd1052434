package offboarding_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/appliance/controlplane/invoicing"
	"github.com/basalt-gpu/basalt/appliance/controlplane/offboarding"
	"github.com/basalt-gpu/basalt/billing/pricebook"
)

// debtor is an organization that pays in advance, and does not.
type debtor struct {
	*memstore.Store
	t   *testing.T
	job *invoicing.Job
	now time.Time
}

func newDebtor(t *testing.T, deleteAfterDays int64) *debtor {
	d := &debtor{Store: memstore.New(), t: t, now: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
	d.job = &invoicing.Job{Books: invoicing.Books{Store: d.Store}, Store: d.Store, Changes: d.Store, Log: slog.New(slog.DiscardHandler)}
	terms := api.DefaultBilling(nil, &api.OrganizationBilling{Mode: api.BillingPrepaid, SuspendAfterDays: api.Setting(1), DeleteAfterDays: deleteAfterDays}, d.now)
	d.put(api.KindPriceBook, "pb-1", "", "", pricebook.Default())
	for _, org := range []string{"org-1", "org-2"} { // the other one has paid
		d.put(api.KindOrganization, org, "", "", api.OrganizationSpec{Billing: terms})
		d.put(api.KindProject, "prj-"+org, org, "", api.ProjectSpec{})
		for _, kind := range []api.Kind{api.KindInstance, api.KindVolume, api.KindSnapshot, api.KindBackup, api.KindImage, api.KindFloatingIP, api.KindLoadBalancer,
			api.KindNetwork, api.KindAPIKey} {
			d.put(kind, string(kind)+"-"+org, org, "prj-"+org, map[string]string{})
		}
		d.put(api.KindUser, "usr-"+org, org, "", api.UserSpec{})
	}
	d.pay("org-2")
	return d
}

func (d *debtor) put(kind api.Kind, id, org, project string, spec any) {
	d.t.Helper()
	name := id
	if kind == api.KindPriceBook {
		name = "default"
	}
	if _, err := d.Apply(d.t.Context(), api.Batch{At: d.now, Commands: []api.Command{{Op: api.OpPutSpec, Kind: kind, ID: id, Name: name, Organization: org, Project: project,
		Expect: api.AnyRevision, Data: api.Encode(spec)}}}); err != nil {
		d.t.Fatal(err)
	}
}

func (d *debtor) pay(org string) {
	d.put(api.KindPayment, "pay-"+org, org, "", api.PaymentSpec{Type: api.PaymentIn, Currency: "EUR", AmountMicros: 1e9, Reference: org})
}

// until lets the leader do its work every few hours.
func (d *debtor) until(day int) {
	d.t.Helper()
	for end := time.Date(2026, 3, day, 1, 0, 0, 0, time.UTC); d.now.Before(end); d.now = d.now.Add(6 * time.Hour) {
		d.job.Step(d.t.Context(), d.now)
		for range 6 {
			if err := offboarding.Sweep(d.t.Context(), d.Store, d.now); err != nil {
				d.t.Fatal(err)
			}
		}
	}
}

var running = []api.Kind{api.KindInstance, api.KindVolume, api.KindSnapshot, api.KindBackup, api.KindImage, api.KindFloatingIP, api.KindLoadBalancer}

func (d *debtor) has(org string, want bool, kinds ...api.Kind) {
	d.t.Helper()
	for _, kind := range kinds {
		p, err := d.List(context.Background(), api.ListQuery{Kind: kind, Organization: org, Limit: 10})
		if err != nil || (len(p.Items) > 0) != want {
			d.t.Errorf("%s: %d %s of %s, %v", d.now, len(p.Items), kind, org, err)
		}
	}
}

// audited are the cluster's own operations in the organization's audit trail.
func (d *debtor) audited() (out []string) {
	p, err := d.Audit(d.t.Context(), api.AuditQuery{Organization: "org-1", Limit: 100})
	if err != nil {
		d.t.Fatal(err)
	}
	for _, e := range p.Items {
		if e.Name == string(api.RoleBilling) && !slices.Contains(out, e.Operation) {
			out = append(out, e.Operation)
		}
	}
	return out
}

func (d *debtor) told() (out []string) {
	p, err := d.Events(d.t.Context(), api.EventQuery{Organization: "org-1", Limit: 1000})
	if err != nil {
		d.t.Fatal(err)
	}
	for _, e := range p.Items {
		if strings.HasPrefix(e.Type, "billing.") {
			out = append(out, e.Type)
		}
	}
	return out
}

// Used up, stopped, suspended, warned, deleted: each on its day, and only what
// runs, and only of who has not paid.
func TestUnpaidIsDeletedAfterAWarning(t *testing.T) {
	d := newDebtor(t, 20)
	d.until(14) // used up on the 1st, suspended on the 2nd, deletion on the 22nd
	if got := d.told(); !slices.Equal(got, []string{"billing.stop", "billing.suspended"}) || len(d.audited()) != 0 {
		t.Errorf("%v, %v", got, d.audited())
	}
	d.until(16)
	if got := d.told(); !slices.Equal(got, []string{"billing.stop", "billing.suspended", "billing.delete_warning"}) || !slices.Equal(d.audited(), []string{"WarnOfDeletion"}) {
		t.Errorf("%v, %v", got, d.audited())
	}
	d.until(21)
	d.has("org-1", true, running...)
	d.until(23)
	d.has("org-1", false, running...)
	d.has("org-1", true, api.KindProject, api.KindNetwork, api.KindAPIKey, api.KindUser)
	d.has("org-2", true, running...)
	if got := d.told(); !slices.Equal(got, []string{"billing.stop", "billing.suspended", "billing.delete_warning", "billing.delete_due"}) ||
		!slices.Equal(d.audited(), []string{"WarnOfDeletion", "DeleteUnpaid"}) {
		t.Errorf("%v, %v", got, d.audited())
	}
	before := d.Revision()
	d.until(25)
	if d.Revision() != before {
		t.Error("it goes on writing")
	}
	d.pay("org-1")
	d.until(26)
	if got := d.told(); got[len(got)-1] != "billing.ok" {
		t.Errorf("%v", got)
	}
}

// With few days it is warned when it is suspended, and both are told.
func TestUnpaidIsWarnedAtOnce(t *testing.T) {
	d := newDebtor(t, 1)
	d.until(8)
	d.has("org-1", true, running...)
	d.until(10)
	d.has("org-1", false, running...)
	if got := d.told(); !slices.Equal(got, []string{"billing.stop", "billing.suspended", "billing.delete_warning", "billing.delete_due"}) {
		t.Errorf("%v", got)
	}
}

// Nothing is deleted where nobody has said so, nor when it was paid after the
// warning, nor while an operator's grace lasts, nor when the leader was away
// over the warning: it comes first.
func TestUnpaidIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		days int64
		do   func(d *debtor)
	}{
		"never":  {0, func(d *debtor) { d.until(300) }},
		"paid":   {20, func(d *debtor) { d.until(21); d.pay("org-1"); d.until(60) }},
		"absent": {20, func(d *debtor) { d.until(2); d.now = d.now.AddDate(0, 1, 0); d.until(36 + 1) }},
		"grace": {20, func(d *debtor) {
			d.until(20)
			o, err := d.Get(t.Context(), api.KindOrganization, "org-1")
			if err != nil {
				t.Fatal(err)
			}
			org, err := api.Decode[api.Organization](o)
			if err != nil {
				t.Fatal(err)
			}
			org.Spec.Billing.GraceUntil = d.now.AddDate(0, 1, 0)
			d.put(api.KindOrganization, "org-1", "", "", org.Spec)
			d.until(50)
		}},
	} {
		d := newDebtor(t, c.days)
		d.t = t
		c.do(d)
		t.Log(name, d.now, d.told())
		d.has("org-1", true, running...)
	}
}

// The status alone is not enough: the terms, the warning and the time have to
// agree, or nothing is deleted.
func TestDoomed(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	past, next := now.Add(-time.Hour), now.Add(time.Hour)
	good := func() api.Organization {
		return api.Organization{Spec: api.OrganizationSpec{Billing: &api.OrganizationBilling{DeleteAfterDays: 1}},
			Status: api.OrganizationStatus{Billing: &api.BillingStatus{State: api.BillingDeleteDue, DeleteWarnedAt: &past, DeleteAt: &past}}}
	}
	if !offboarding.Doomed(good(), now) {
		t.Error("it is kept")
	}
	for name, change := range map[string]func(o *api.Organization){
		"no terms":        func(o *api.Organization) { o.Spec.Billing = nil },
		"never":           func(o *api.Organization) { o.Spec.Billing.DeleteAfterDays = 0 },
		"grace":           func(o *api.Organization) { o.Spec.Billing.GraceUntil = next },
		"no status":       func(o *api.Organization) { o.Status.Billing = nil },
		"another state":   func(o *api.Organization) { o.Status.Billing.State = api.BillingSuspended },
		"no warning":      func(o *api.Organization) { o.Status.Billing.DeleteWarnedAt = nil },
		"no time":         func(o *api.Organization) { o.Status.Billing.DeleteAt = nil },
		"not yet":         func(o *api.Organization) { o.Status.Billing.DeleteAt = &next },
		"gone, so to say": func(o *api.Organization) { o.Meta.DeletedAt = &past },
	} {
		o := good()
		change(&o)
		if offboarding.Doomed(o, now) {
			t.Errorf("%s: it is deleted", name)
		}
	}
}

// Who changes an organization at that moment, by a payment's consequence or by
// hand, is quicker than the deletion.
func TestUnpaidIsRefusedWhenItChanged(t *testing.T) {
	d := newDebtor(t, 20)
	o, err := d.Get(t.Context(), api.KindOrganization, "org-1")
	if err != nil {
		t.Fatal(err)
	}
	o.Status = []byte(`{}`)
	in, err := d.Get(t.Context(), api.KindInstance, "Instance-org-1")
	if err != nil {
		t.Fatal(err)
	}
	cmds, _ := offboarding.Unpaid(o, []api.Object{in})
	d.put(api.KindOrganization, "org-1", "", "", api.OrganizationSpec{})
	if _, err := d.Apply(t.Context(), api.Batch{At: d.now, Commands: cmds}); api.CodeOf(err) != api.CodeConflict {
		t.Errorf("%v", err)
	}
	d.has("org-1", true, api.KindInstance)
}
