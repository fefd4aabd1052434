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
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
)

// TestInvoice tests the invoice of a past month: from its total down to the metered minutes,
// and what the operator sees of it.
func TestInvoice(t *testing.T) {
	n := start(t)
	n.fill(t)
	n.rewrite(t, usedLastMonth)
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

func lastMonth() time.Time {
	y, m, _ := time.Now().UTC().Date()
	return time.Date(y, m-1, 1, 0, 0, 0, 0, time.UTC)
}

// usedLastMonth gives Acme two processors and half a GPU for ninety minutes, from 10:00 on the
// month's second day, and billing since the beginning of the month.
func usedLastMonth(s *store.Store) error {
	ctx := context.Background()
	orgs, err := api.All[api.Organization](ctx, s, api.ListQuery{Kind: api.KindOrganization, Name: "acme"})
	if err != nil || len(orgs) != 1 {
		return fmt.Errorf("%d organizations: %w", len(orgs), err)
	}
	org := orgs[0]
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
