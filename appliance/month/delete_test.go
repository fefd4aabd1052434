package month

import (
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// Nothing that was used goes without an invoice: a project's use is its
// organization's when the project is gone, and an organization stays until its use
// was invoiced, or given up.
func TestUseIsInvoicedBeforeItGoes(t *testing.T) {
	if testing.Short() {
		t.Skip("lives through a month")
	}
	t.Parallel()
	w := newWorld(t, newDisk(t))
	acme, c := w.customer("acme", &api.OrganizationBilling{Mode: api.BillingInvoice})
	w.until(1, 9, 0)
	in := do(t, c.Instances().Create, machine("train", "small", 0)).Meta.ID
	w.wantPhase(c, in, api.InstanceRunning)
	w.until(1, 12, 0)
	do(t, c.Instances().Delete, in)
	for range 20 { // a step each
		w.pass(time.Second)
	}
	if left := w.list(api.KindInstance); len(left) > 0 {
		t.Fatalf("%s is not gone: %s %s", left[0].Meta.ID, left[0].Status, left[0].Meta.Finalizers)
	}
	drop := func() error {
		for k, err := range w.op.APIKeys().All(t.Context(), client.Query{Organization: acme}) {
			if err != nil {
				t.Fatal(err)
			}
			do(t, w.op.APIKeys().Delete, k.Meta.ID)
		}
		for p, err := range w.op.Projects().All(t.Context(), client.Query{Organization: acme}) {
			if err != nil {
				t.Fatal(err)
			}
			do(t, w.op.Projects().Delete, p.Meta.ID)
		}
		w.turn()
		_, err := w.op.Organizations().Delete(t.Context(), acme)
		return err
	}
	if err := drop(); api.CodeOf(err) != api.CodeInUse || !strings.Contains(err.Error(), "no invoice charges yet") {
		t.Fatalf("an organization with use that was not invoiced is deleted: %v", err)
	}
	w.until(32, 6, 0)
	invoices := w.list(api.KindInvoice)
	if len(invoices) != 1 || invoices[0].Meta.Organization != acme {
		t.Fatalf("%d invoices, want the one of what the project has used", len(invoices))
	}
	inv, err := api.Decode[api.Invoice](invoices[0])
	if err != nil || inv.Spec.TotalMicros <= 0 {
		t.Errorf("%+v, %v", inv.Spec, err)
	}
	if err := drop(); api.CodeOf(err) != api.CodeInUse || strings.Contains(err.Error(), "no invoice charges yet") {
		t.Errorf("an organization with an invoice is deleted: %v", err)
	}
}
