package ui_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/invoicing"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
)

// TestInvoice tests the invoice of a past month: from its total down to the metered minutes,
// what the operator sees of it, and what comes back of payments: a dispute, a refund, mail.
func TestInvoice(t *testing.T) {
	n := start(t)
	n.fill(t)
	n.rewrite(t, func(s *store.Store) error { return errors.Join(usedLastMonth(s), disputed(s)) })
	n.tell(t, "invoice.mjs", "LAST_MONTH="+lastMonth().Format(time.DateOnly))
}

// rewrite changes the stored state while basaltd is stopped, to create a past that the API
// cannot create.
func (n daemon) rewrite(t *testing.T, change func(*store.Store) error) {
	t.Helper()
	n.Stop()
	id, err := os.ReadFile(filepath.Join(n.Data, "node-id"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(store.Options{Dir: filepath.Join(n.Data, "store"), NodeID: strings.TrimSpace(string(id))})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(change(s), s.Close()); err != nil {
		t.Fatal(err)
	}
	n.StartAgain(t)
}

// lastMonth returns the beginning of the last month that has been invoiced.
func lastMonth() time.Time {
	y, m, _ := time.Now().UTC().Add(-invoicing.Delay).Date()
	return time.Date(y, m-1, 1, 0, 0, 0, 0, time.UTC)
}

// usedLastMonth gives Acme two processors and half a GPU for ninety minutes, from 10:00 on the
// month's second day, and billing since the beginning of the month.
func usedLastMonth(s *store.Store) error {
	ctx := context.Background()
	org, err := acme(ctx, s)
	if err != nil {
		return err
	}
	projects, err := api.All[api.Project](ctx, s, api.ListQuery{Kind: api.KindProject, Organization: org.Meta.ID})
	if err != nil || len(projects) != 1 {
		return fmt.Errorf("%d projects: %w", len(projects), err)
	}
	org.Spec.Billing = &api.OrganizationBilling{Mode: api.BillingInvoice, Since: lastMonth(), DueDays: api.Setting(14)}
	b := api.Batch{At: time.Now().UTC(), Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: org.Meta.ID, Expect: org.Meta.Revision, Name: org.Meta.Name, Data: api.Encode(org.Spec)}}}
	begin := lastMonth().AddDate(0, 0, 1).Add(10 * time.Hour)
	for minute := range 90 {
		from := begin.Add(time.Duration(minute) * time.Minute)
		for meter, quantity := range map[api.Meter]int64{api.MeterVCPU: 120, api.MeterGPU: int64(30 * time.Second)} {
			b.Commands = append(b.Commands, api.Command{Op: api.OpRecord, Kind: api.KindUsageRecord, ID: fmt.Sprintf("use-%s-%04d", meter, minute),
				Organization: org.Meta.ID, Project: projects[0].Meta.ID, Data: api.Encode(api.UsageRecordSpec{Meter: meter,
					Resource: "ins-0123456789ab", ResourceName: "train", Start: from, End: from.Add(time.Minute), Quantity: quantity})})
		}
	}
	_, err = s.Apply(ctx, b)
	return err
}

func acme(ctx context.Context, s *store.Store) (api.Organization, error) {
	orgs, err := api.All[api.Organization](ctx, s, api.ListQuery{Kind: api.KindOrganization, Name: "acme"})
	if err != nil || len(orgs) != 1 {
		return api.Organization{}, fmt.Errorf("%d organizations: %w", len(orgs), err)
	}
	return orgs[0], nil
}

// disputed gives Acme a payment by card of which a third was disputed, and an address from
// which mail was returned: both come from outside.
func disputed(s *store.Store) error {
	ctx := context.Background()
	org, err := acme(ctx, s)
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	respondBy := now.AddDate(0, 0, 9)
	paid := api.PaymentID("pay-0123456789ab")
	d := api.Dispute{Meta: api.Meta{ID: string(api.DisputeIDOf("du_story")), Organization: org.Meta.ID},
		Spec:   api.DisputeSpec{Payment: paid, ProviderDispute: "du_story", Currency: "EUR", AmountMicros: 20e6, Reason: "fraudulent"},
		Status: api.DisputeStatus{State: api.DisputeNeedsResponse, WithdrawnMicros: 20e6, Entries: 1, RespondBy: &respondBy}}
	address := "gone@acme.example"
	b := api.Batch{At: now, Commands: []api.Command{
		api.PutPayment(paid, org.Meta.ID, api.PaymentSpec{Type: api.PaymentIn, Currency: "EUR", AmountMicros: 60e6, Reference: "pi_story", ReceivedAt: now}),
		api.PutPayment("pay-0123456789ac", org.Meta.ID, api.DisputeEntry(api.DisputeID(d.Meta.ID), api.PaymentDispute, "EUR", 20e6, 1, now)),
		{Op: api.OpReport, Kind: api.KindPayment, ID: string(paid), Expect: api.AnyRevision, Data: api.Encode(api.PaymentStatus{DisputedMicros: 20e6})},
		{Op: api.OpPutSpec, Kind: api.KindDispute, ID: d.Meta.ID, Name: d.Meta.ID, Organization: org.Meta.ID, Data: api.Encode(d.Spec)},
		{Op: api.OpReport, Kind: api.KindDispute, ID: d.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(d.Status)},
		{Op: api.OpPutSpec, Kind: api.KindMailSuppression, ID: api.MailSuppressionIDOf(address), Name: api.MailSuppressionIDOf(address), Organization: org.Meta.ID, Data: api.Encode(api.MailSuppressionSpec{Address: address})},
		{Op: api.OpReport, Kind: api.KindMailSuppression, ID: api.MailSuppressionIDOf(address), Expect: api.AnyRevision, Data: api.Encode(api.MailSuppressionStatus{SuppressedAt: &now, ReturnedAt: &now, LastError: "550 5.1.1 no such user"})},
	}}
	_, err = s.Apply(ctx, b)
	return err
}
