package forecast

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
)

// fixture is a store with one pool of two GPUs, and a Service over it.
type fixture struct {
	t       *testing.T
	store   *counting
	service *Service
	now     time.Time
	used    int // records
}

// counting counts the reads of usage.
type counting struct {
	*memstore.Store
	reads int
}

func (c *counting) Use(ctx context.Context, q api.UseQuery) (api.UsePage, error) {
	c.reads++
	return c.Store.Use(ctx, q)
}

func open(t *testing.T) *fixture {
	f := &fixture{t: t, store: &counting{Store: memstore.New()}, now: time.Date(2026, 10, 14, 9, 30, 0, 0, time.UTC)}
	f.service = New(f.store, func() time.Time { return f.now })
	f.put(api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: "org-1", Name: "acme", Data: api.Encode(api.OrganizationSpec{})},
		api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: "org-2", Name: "idle", Data: api.Encode(api.OrganizationSpec{})},
		api.Command{Op: api.OpPutSpec, Kind: api.KindProject, ID: "prj-1", Name: "web", Organization: "org-1", Data: api.Encode(api.ProjectSpec{})})
	for _, id := range []string{"gpu-1", "gpu-2"} {
		f.put(api.Command{Op: api.OpPutSpec, Kind: api.KindGPU, ID: id, Name: id, Data: api.Encode(api.GPUSpec{})},
			api.Command{Op: api.OpReport, Kind: api.KindGPU, ID: id, Expect: api.AnyRevision, Data: api.Encode(api.GPUStatus{Model: "NVIDIA L4", VramBytes: 24 << 30})})
	}
	return f
}

func (f *fixture) put(all ...api.Command) {
	f.t.Helper()
	if _, err := f.store.Apply(f.t.Context(), api.Batch{At: f.now, Commands: all}); err != nil {
		f.t.Fatal(err)
	}
}

// use records an hour of a vGPU, some days ago.
func (f *fixture) use(daysAgo, hour int, meter api.Meter, average int64) {
	f.t.Helper()
	f.used++
	begin := f.now.Truncate(day).AddDate(0, 0, -daysAgo).Add(time.Duration(hour) * time.Hour)
	spec := api.UsageRecordSpec{Meter: meter, Resource: fmt.Sprintf("ins-%d", f.used), Start: begin, End: begin.Add(time.Hour), Quantity: average * 3600}
	spec.SetAttributes(api.PriceSelector{Model: "NVIDIA L4", Pool: api.DefaultPool, Tier: "standard"})
	f.put(api.Command{Op: api.OpRecord, Kind: api.KindUsageRecord, ID: fmt.Sprintf("use-%012x", f.used), Organization: "org-1", Project: "prj-1", Data: api.Encode(spec)})
}

// allocate assigns an instance to a GPU.
func (f *fixture) allocate(id, gpu string, share, vram int64) {
	f.t.Helper()
	f.put(api.Command{Op: api.OpPutSpec, Kind: api.KindInstance, ID: id, Name: id, Organization: "org-1", Project: "prj-1", Data: api.Encode(api.InstanceSpec{})},
		api.Command{Op: api.OpAssign, Kind: api.KindInstance, ID: id, Expect: api.AnyRevision,
			Data: api.Encode(api.InstanceAssignment{Gpu: api.GPUID(gpu), VgpuSharePercent: share, VgpuVramBytes: vram})})
}

func (f *fixture) capacity() api.GPUCapacity {
	f.t.Helper()
	c, err := f.service.Capacity(f.t.Context())
	if err != nil || len(c.Gpus) != 1 {
		f.t.Fatalf("capacity = %+v, %v, want one model", c, err)
	}
	return c.Gpus[0]
}

func TestCapacityGrows(t *testing.T) {
	f := open(t)
	// 10 % of a GPU more each day, 100 % yesterday, at noon; less in the morning.
	for ago := 1; ago <= 10; ago++ {
		f.use(ago, 12, api.MeterGPUShare, int64(110-10*ago))
		f.use(ago, 4, api.MeterGPUShare, 1)
		f.use(ago, 12, api.MeterVCPU, 4)
	}
	f.allocate("ins-a", "gpu-1", 90, 8<<30)
	got := f.capacity()
	want := api.GPUCapacity{Pool: api.DefaultPool, Model: "NVIDIA L4", Count: 2, VramBytes: got.VramBytes, AllocatedPercent: 45,
		History: 10, Trend: api.CapacityGrowing, FullInDays: 10, EarliestDays: 10, LatestDays: 10}
	if got != want || got.VramBytes < 47<<30 || got.VramBytes > 48<<30 {
		t.Errorf("capacity = %+v, want %+v with 48 GiB", got, want)
	}
	// A day later it reads only that day.
	f.store.reads, f.now = 0, f.now.Add(day)
	if got = f.capacity(); got.History != 10 {
		t.Errorf("history a day later = %d days, want 10: nothing was recorded yesterday", got.History)
	}
	if f.store.reads > 2 {
		t.Errorf("%d reads of usage a day later, want one for each of the two organizations", f.store.reads)
	}
}

// TestCapacityByVRAM checks that VRAM counts if it is full first.
func TestCapacityByVRAM(t *testing.T) {
	f := open(t)
	for ago := 1; ago <= 14; ago++ {
		f.use(ago, 8, api.MeterGPUShare, 10)
		f.use(ago, 8, api.MeterVRAM, int64(29-2*ago)<<30)
	}
	f.allocate("ins-a", "gpu-1", 10, 23<<30)
	if got := f.capacity(); got.Trend != api.CapacityGrowing || got.FullInDays != 11 {
		t.Errorf("capacity = %+v, want it full in 11 days: 21 GiB of 48 are left, 2 GiB a day", got)
	}
}

func TestCapacityWithoutForecast(t *testing.T) {
	for _, c := range []struct {
		name  string
		use   func(f *fixture)
		trend api.CapacityTrend
		days  int64
	}{
		{"no records", func(*fixture) {}, api.CapacityUnknown, 0},
		{"one day", func(f *fixture) { f.use(1, 0, api.MeterGPUShare, 50) }, api.CapacityUnknown, 1},
		{"six days", func(f *fixture) {
			for ago := 1; ago <= 6; ago++ {
				f.use(ago, 0, api.MeterGPUShare, int64(100-10*ago))
			}
		}, api.CapacityUnknown, 6},
		{"today does not count", func(f *fixture) {
			for ago := range 7 {
				f.use(ago, 0, api.MeterGPUShare, int64(100-10*ago))
			}
		}, api.CapacityUnknown, 6},
		{"constant", func(f *fixture) {
			for ago := 1; ago <= 10; ago++ {
				f.use(ago, 0, api.MeterGPUShare, 50)
			}
		}, api.CapacitySteady, 10},
		{"falling", func(f *fixture) {
			for ago := 1; ago <= 10; ago++ {
				f.use(ago, 0, api.MeterGPUShare, int64(10*ago))
			}
		}, api.CapacitySteady, 10},
		{"older than the window", func(f *fixture) {
			for ago := 29; ago <= 40; ago++ {
				f.use(ago, 0, api.MeterGPUShare, int64(500-10*ago))
			}
		}, api.CapacityUnknown, 0},
		{"full", func(f *fixture) {
			for ago := 1; ago <= 10; ago++ {
				f.use(ago, 0, api.MeterGPUShare, int64(110-10*ago))
			}
			f.allocate("ins-a", "gpu-1", 100, 1<<30)
			f.allocate("ins-b", "gpu-2", 100, 1<<30)
		}, api.CapacityFull, 10},
	} {
		f := open(t)
		c.use(f)
		if got := f.capacity(); got.Trend != c.trend || got.History != c.days || got.FullInDays != 0 || got.LatestDays != 0 {
			t.Errorf("%s: capacity = %+v, want trend %s after %d days and no forecast", c.name, got, c.trend, c.days)
		}
	}
}

// TestHistoryGaps checks that a day without the group's usage counts as 0 if others used
// something, and not at all if nothing was recorded.
func TestHistoryGaps(t *testing.T) {
	one, other := group{"default", "one"}, group{"default", "other"}
	h := history{days: map[int64]map[group]level{
		1: {other: {1, 1}}, 2: {one: {5, 5}}, 3: {}, 4: {other: {1, 1}}, 5: {one: {6, 6}}}}
	got := clean(h.points(one, func(l level) float64 { return l.sharePercent }))
	want := []Point{{2, 5}, {4, 0}, {5, 6}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("points = %v, want %v", got, want)
	}
}
