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

// debtor is an organization that pays in advance, and has not paid.
type debtor struct {
	*memstore.Store
	t   *testing.T
	job *invoicing.Job
	now time.Time
}

func newDebtor(t *testing.T, deleteAfterDays int64) *debtor {
	d := &debtor{Store: memstore.New(), t: t, now: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
	d.job = &invoicing.Job{Billing: invoicing.Billing{Store: d.Store}, Store: d.Store, Changes: d.Store, Log: slog.New(slog.DiscardHandler)}
	terms := api.DefaultBilling(nil, &api.OrganizationBilling{Mode: api.BillingPrepaid, SuspendAfterDays: api.Setting(1), DeleteAfterDays: deleteAfterDays}, d.now)
	d.put(api.KindPriceBook, "pb-1", "", "", pricebook.Default())
	for _, org := range []string{"org-1", "org-2"} { // org-2 has paid
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

// until runs the leader's steps every few hours until a day of March.
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
			d.t.Errorf("%s: %s has %d objects of kind %s, %v; want some: %t", d.now, org, len(p.Items), kind, err, want)
		}
	}
}

// audited returns the cluster's own operations in the organization's audit log.
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

func (d *debtor) eventTypes() (out []string) {
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

// Used up, stopped, suspended, warned, deleted: each on its day, and only what runs,
// and only of the organization that has not paid.
func TestUnpaidIsDeletedAfterAWarning(t *testing.T) {
	d := newDebtor(t, 20)
	d.until(14) // used up on the 1st, suspended on the 2nd, deletion on the 22nd
	if got := d.eventTypes(); !slices.Equal(got, []string{"billing.stop", "billing.suspended"}) || len(d.audited()) != 0 {
		t.Errorf("events = %v, audit log = %v; want stop and suspended, and no operation", got, d.audited())
	}
	d.until(16)
	if got := d.eventTypes(); !slices.Equal(got, []string{"billing.stop", "billing.suspended", "billing.delete_warning"}) || !slices.Equal(d.audited(), []string{"WarnOfDeletion"}) {
		t.Errorf("events = %v, audit log = %v; want the warning in both", got, d.audited())
	}
	d.until(21)
	d.has("org-1", true, running...)
	d.until(23)
	d.has("org-1", false, running...)
	d.has("org-1", true, api.KindProject, api.KindNetwork, api.KindAPIKey, api.KindUser)
	d.has("org-2", true, running...)
	if got := d.eventTypes(); !slices.Equal(got, []string{"billing.stop", "billing.suspended", "billing.delete_warning", "billing.delete_due"}) ||
		!slices.Equal(d.audited(), []string{"WarnOfDeletion", "DeleteUnpaid"}) {
		t.Errorf("events = %v, audit log = %v; want the deletion in both", got, d.audited())
	}
	before := d.Revision()
	d.until(25)
	if d.Revision() != before {
		t.Errorf("revision after the deletion = %d, want %d", d.Revision(), before)
	}
	d.pay("org-1")
	d.until(26)
	if got := d.eventTypes(); got[len(got)-1] != "billing.ok" {
		t.Errorf("events after the payment = %v, want billing.ok last", got)
	}
}

// If the terms allow few days, the warning comes with the suspension, as two events.
func TestUnpaidIsWarnedAtOnce(t *testing.T) {
	d := newDebtor(t, 1)
	d.until(8)
	d.has("org-1", true, running...)
	d.until(10)
	d.has("org-1", false, running...)
	if got := d.eventTypes(); !slices.Equal(got, []string{"billing.stop", "billing.suspended", "billing.delete_warning", "billing.delete_due"}) {
		t.Errorf("events = %v, want stop, suspended, delete_warning and delete_due", got)
	}
}

// Nothing is deleted if the terms do not demand it, nor after a payment following the
// warning, nor during an operator's grace period, nor if the leader was absent when the
// warning was due: it comes first.
func TestUnpaidIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		days int64
		act  func(d *debtor)
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
		c.act(d)
		t.Log(name, d.now, d.eventTypes())
		d.has("org-1", true, running...)
	}
}

// The status alone is not sufficient: the terms, the warning and the time must agree,
// or nothing is deleted.
func TestMustDelete(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	past, next := now.Add(-time.Hour), now.Add(time.Hour)
	good := func() api.Organization {
		return api.Organization{Spec: api.OrganizationSpec{Billing: &api.OrganizationBilling{DeleteAfterDays: 1}},
			Status: api.OrganizationStatus{Billing: &api.BillingStatus{State: api.BillingDeleteDue, DeleteWarnedAt: &past, DeleteAt: &past}}}
	}
	if !offboarding.MustDelete(good(), now) {
		t.Error("MustDelete of a due organization = false, want true")
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
		if offboarding.MustDelete(o, now) {
			t.Errorf("MustDelete with %s = true, want false", name)
		}
	}
}

// If the organization is changed at that moment, because of a payment or manually, the
// deletion is refused.
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
		t.Errorf("delete after a change: %v, want code %s", err, api.CodeConflict)
	}
	d.has("org-1", true, api.KindInstance)
}
