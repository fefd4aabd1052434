package server_test

import (
	"context"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/servertest"
)

// meanwhile is a Billing that reports nothing to invoice while usage is recorded
// concurrently, the given number of times; later it reports that usage.
type meanwhile struct {
	servertest.Bill
	store server.Store
	times int
	looks int
}

func (b *meanwhile) Uninvoiced(ctx context.Context, org api.OrganizationID, now time.Time) (api.Uninvoiced, error) {
	u := api.Uninvoiced{Currency: "EUR", Micros: int64(b.looks), Mark: api.UseMark{From: now.Truncate(24 * time.Hour), Quantity: 60 * uint64(b.looks)}}
	if b.looks++; b.looks > b.times {
		return u, nil
	}
	id := api.NewID(api.KindUsageRecord, []byte{1, 2, 3, 4, 5, byte(b.looks)})
	_, err := b.store.Apply(ctx, api.Batch{At: now, Commands: []api.Command{{Op: api.OpRecord, Kind: api.KindUsageRecord, ID: id, Name: id, Organization: string(org), Project: "prj-1",
		Data: api.Encode(api.UsageRecordSpec{Meter: api.MeterVCPU, Resource: "ins-1", Start: now.Add(-time.Minute), End: now, Quantity: 60})}}})
	return u, err
}

// TestUseBetweenLookAndDeletion checks that usage is not lost if it is recorded between
// the check for uninvoiced usage and a change that would lose it: deleting the
// organization, removing its billing terms, or moving their beginning past the usage,
// in both billing modes.
func TestUseBetweenLookAndDeletion(t *testing.T) {
	for _, mode := range []api.BillingMode{api.BillingInvoice, api.BillingPrepaid} {
		for name, change := range map[string]func(*world, api.Organization) error{
			"deleted": func(w *world, o api.Organization) error {
				_, err := client.Of[api.Organization](w.op).Delete(w.t.Context(), o.Meta.ID)
				return err
			},
			"terms off": func(w *world, o api.Organization) error {
				o.Spec.Billing = nil
				_, err := client.Of[api.Organization](w.op).Update(w.t.Context(), o.Meta.ID, o)
				return err
			},
			"terms later": func(w *world, o api.Organization) error {
				o.Spec.Billing.Since = o.Spec.Billing.Since.AddDate(0, 1, 0)
				_, err := client.Of[api.Organization](w.op).Update(w.t.Context(), o.Meta.ID, o)
				return err
			},
		} {
			for _, times := range []int{0, 1} {
				t.Run(string(mode)+", "+name, func(t *testing.T) {
					books := &meanwhile{times: times}
					w := worldOf(t, servertest.StartWith(t, func(o *server.Options) { o.Billing, books.store = books, o.Store }))
					o, err := client.Of[api.Organization](w.op).Create(t.Context(), api.Organization{Meta: api.Meta{Name: "user"}, Spec: api.OrganizationSpec{Billing: &api.OrganizationBilling{Mode: mode}}})
					if err != nil {
						t.Fatal(err)
					}
					if err = change(w, o); times == 0 && err != nil {
						t.Errorf("change an organization without usage: %v", err)
					}
					if times > 0 {
						wantErr(t, err, api.CodeInUse, "spec.billing")
					}
					if books.looks != times+1 {
						t.Errorf("usage was checked %d times, want %d", books.looks, times+1)
					}
				})
			}
		}
	}
}
