package invoicing

import (
	"fmt"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/invoice"
)

// An hour of an instance costs what an invoice of that hour charges, and the amount
// spent is its own use of the month, whatever others used.
func TestInstanceCost(t *testing.T) {
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice})
	w.put(
		api.Command{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: "flv-1", Name: "small", Data: api.Encode(api.FlavorSpec{Vcpus: 2, MemoryBytes: 4 << 30})},
		api.Command{Op: api.OpPutSpec, Kind: api.KindGPU, ID: "gpu-1", Name: "gpu-1", Data: api.Encode(api.GPUSpec{})},
		api.Command{Op: api.OpReport, Kind: api.KindGPU, ID: "gpu-1", Expect: api.AnyRevision, Data: api.Encode(api.GPUStatus{Model: "NVIDIA L4"})},
		api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: "vol-1", Name: "root", Organization: "org-1", Project: "prj-1", Data: api.Encode(api.VolumeSpec{SizeBytes: 20 << 30})},
		api.Command{Op: api.OpAssign, Kind: api.KindVolume, ID: "vol-1", Expect: api.AnyRevision, Data: api.Encode(api.VolumeAssignment{Pool: "local"})})
	in := api.Instance{Meta: api.Meta{ID: "ins-1", Organization: "org-1", Project: "prj-1"},
		Spec:       api.InstanceSpec{Flavor: "flv-1", Vgpu: &api.VGPUSpec{VramBytes: 8 << 30, SharePercent: 50}},
		Assignment: api.InstanceAssignment{RootVolume: "vol-1", Gpu: "gpu-1"}}
	now := march.AddDate(0, 0, 10).Add(20 * time.Minute)
	cost := func() api.InstanceCost {
		t.Helper()
		c, err := Billing{w.Store}.InstanceCost(t.Context(), in, now)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := cost()
	if !c.From.Equal(march) || !c.Until.Equal(now.Truncate(time.Hour).Add(time.Hour)) || c.SpentMicros != 0 || c.ReservedMicros >= c.FullUseMicros {
		t.Errorf("cost before the instance ran = %+v, want this month up to the next hour and nothing spent", c)
	}
	hour := march.AddDate(0, 0, 5)
	m := invoice.Machine{VCPUs: 2, MemoryBytes: 4 << 30, RootBytes: 20 << 30, StorageClass: "local", Flavor: "flv-1",
		VRAMBytes: 8 << 30, SharePercent: 50, Model: "NVIDIA L4", Pool: api.DefaultPool}
	for i, u := range m.HourOf(hour, 100) {
		resource := map[string]string{"instance": "ins-1", "volume": "vol-1"}[u.Resource]
		spec := api.UsageRecordSpec{Meter: u.Meter, Resource: resource, Start: hour, End: hour.Add(time.Hour), Quantity: u.Quantity}
		spec.SetAttributes(u.Attributes)
		w.put(api.Command{Op: api.OpRecord, Kind: api.KindUsageRecord, ID: fmt.Sprintf("use-%012x", 0x100+i), Organization: "org-1", Project: "prj-1", Data: api.Encode(spec)})
	}
	c = cost()
	if want := w.total(hour, hour.Add(time.Hour)); c.FullUseMicros != want || c.SpentMicros != want || want == 0 {
		t.Errorf("cost after an hour of full use = %+v, want an hour and the amount spent to be the %d micros of the invoice", c, want)
	}
	spent := c.SpentMicros
	w.put(api.Command{Op: api.OpRecord, Kind: api.KindUsageRecord, ID: "use-0000000000ff", Organization: "org-1", Project: "prj-1",
		Data: api.Encode(api.UsageRecordSpec{Meter: api.MeterVCPU, Resource: "ins-2", Start: hour, End: hour.Add(time.Hour), Quantity: 3600})})
	if c = cost(); c.SpentMicros != spent {
		t.Errorf("spent after another instance's use = %d micros, want %d", c.SpentMicros, spent)
	}
	now = march.AddDate(0, 1, 0)
	if c = cost(); c.SpentMicros != 0 || !c.From.Equal(now) {
		t.Errorf("cost in the next month = %+v, want nothing spent since %s", c, now)
	}
}
