package agent_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/agent"
	"github.com/basalt-gpu/basalt/appliance/node/metrics"
)

// cards is a fake gpud with one GPU.
type cards struct {
	use  agent.CardUse
	fail error
}

func (c *cards) Use(context.Context) ([]agent.CardUse, error) {
	return []agent.CardUse{c.use}, c.fail
}

// measured returns a cluster with a running, busy instance that has a vGPU beside
// another instance's.
func measured(t *testing.T) (*testCluster, *testNode, *cards) {
	w := newTestCluster(t, 1, false)
	h := w.nodes[0]
	h.machines.Clock(func() time.Time { return w.now })
	c := &cards{use: agent.CardUse{Device: "soft0", VRAMBytes: 8 << 30, VRAMResidentBytes: 3 << 30, Tenants: []agent.TenantUse{
		{Instance: "ins-2", SharePercent: 20, VRAMLimitBytes: 1 << 30, VRAMResidentBytes: 1 << 30},
		{Instance: "ins-1", SharePercent: 50, VRAMLimitBytes: 4 << 30, VRAMResidentBytes: 2 << 30}}}}
	h.kill()
	h.cards = c
	h.start()
	w.upload(h, "img-1")
	w.create(h, "ins-1", api.PoolLocal, nil)
	w.until("ins-1 runs", func() bool { return w.runsOn("ins-1", h) })
	w.report() // of the card
	return w, h, c
}

// sampled takes samples for some slots, in which ins-1 keeps the GPU busy for a
// quarter of the time. It returns how many readings failed.
func (w *testCluster) sampled(h *testNode, c *cards, slots int) (failed int) {
	w.t.Helper()
	for range slots {
		if c != nil {
			c.use.Tenants[1].GPUNanos += uint64(metrics.Fine / 4)
		}
		if err := h.Sample(h.ctx); err != nil {
			failed++
		}
		w.pass(metrics.Fine)
	}
	return failed
}

func seriesOf(t *testing.T, h *testNode, of api.Kind, id string) map[string][]*float64 {
	t.Helper()
	got, err := h.Agent().Samples(h.ctx, of, id, api.SampleQuery{})
	if err != nil {
		t.Fatal(err)
	}
	if got.StepSeconds != 5 || got.From.IsZero() {
		t.Errorf("samples of %s %s = %+v, want a step of 5 s and a start", of, id, got)
	}
	all := map[string][]*float64{}
	for _, s := range got.Series {
		all[s.Name] = s.Values
	}
	return all
}

// known returns the values of a series that are not missing.
func known(values []*float64) (all []float64) {
	for _, v := range values {
		if v != nil {
			all = append(all, *v)
		}
	}
	return all
}

func TestSamplesMove(t *testing.T) {
	w, h, c := measured(t)
	if n := w.sampled(h, c, 10); n > 0 {
		t.Errorf("%d of 10 readings failed, want none", n)
	}
	in := seriesOf(t, h, api.KindInstance, "ins-1")
	for _, name := range []string{api.SampleCPU, api.SampleDiskRead, api.SampleDiskWrite, api.SampleDiskReads, api.SampleDiskWrites, api.SampleReceived, api.SampleSent} {
		values := known(in[name])
		if len(values) != 9 || slices.Min(values) <= 0 || slices.Min(values) == slices.Max(values) {
			t.Errorf("%s of a busy guest = %v, want 9 different positive values", name, values)
		}
	}
	if values := known(in[api.SampleCPU]); slices.Max(values) > 100 {
		t.Errorf("%s = %v, want at most 100 %%", api.SampleCPU, values)
	}
	for name, want := range map[string]float64{api.SampleMemoryLimit: 1 << 30, api.SampleGPU: 25, api.SampleVRAM: 2 << 30, api.SampleVRAMLimit: 4 << 30} {
		if values := known(in[name]); len(values) < 9 || slices.Min(values) != want || slices.Max(values) != want {
			t.Errorf("%s = %v, want at least 9 values of %v", name, values, want)
		}
	}
	card := seriesOf(t, h, api.KindGPU, "gpu-node-1-soft0")
	if gpu, vram := known(card[api.SampleGPU]), known(card[api.SampleVRAM]); len(gpu) != 10 || gpu[9] != 25 || vram[9] != 3<<30 {
		t.Errorf("GPU busy = %v, VRAM = %v; want 10 values, the last 25 %% and 3 GiB", gpu, vram)
	}
	node := seriesOf(t, h, api.KindNode, "node-1")
	if memory := known(node[api.SampleMemory]); len(memory) != 10 || memory[0] <= 0 {
		t.Errorf("memory of the node = %v, want 10 positive values", memory)
	}
	tenants, err := h.Agent().GPUTenants(h.ctx, "gpu-node-1-soft0")
	want := []api.GPUTenant{{Instance: "ins-1", SharePercent: 50, VramLimitBytes: 4 << 30, VramResidentBytes: 2 << 30, GpuPercent: 25},
		{Instance: "ins-2", SharePercent: 20, VramLimitBytes: 1 << 30, VramResidentBytes: 1 << 30}}
	if err != nil || !slices.Equal(tenants, want) {
		t.Errorf("GPU tenants = %+v, error %v; want %+v", tenants, err, want)
	}
}

// TestSamplesHaveGaps checks that a failing hypervisor, a restarted machine and an
// unreachable gpud leave gaps in their own metrics, and in no others.
func TestSamplesHaveGaps(t *testing.T) {
	w, h, c := measured(t)
	w.sampled(h, c, 4)
	h.machines.Fault(func(op string, _ api.InstanceID) error {
		if op == "Usage" {
			return errors.New("it hangs")
		}
		return nil
	})
	if n := w.sampled(h, c, 4); n != 4 {
		t.Errorf("%d of 4 readings failed, want all", n)
	}
	h.machines.Fault(nil)
	c.fail = errors.New("gpud is away")
	w.sampled(h, c, 4)
	if _, err := h.Agent().GPUTenants(h.ctx, "gpu-node-1-soft0"); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("GPUTenants without gpud: error %v, want code %s", err, api.CodeUnavailable)
	}
	c.fail = nil
	w.sampled(h, c, 4)
	in := seriesOf(t, h, api.KindInstance, "ins-1")
	// There are 16 slots; the last has ended.
	tail := func(name string) (s string) {
		for _, v := range in[name][len(in[name])-17:] {
			s += map[bool]string{true: "-", false: "x"}[v == nil]
		}
		return s
	}
	if got, want := tail(api.SampleMemoryLimit), "xxxx----xxxxxxxx-"; got != want {
		t.Errorf("slots with a memory limit = %q, want %q", got, want)
	}
	if got, want := tail(api.SampleCPU), "-xxx-----xxxxxxx-"; got != want { // a rate needs two readings
		t.Errorf("slots with CPU time = %q, want %q", got, want)
	}
	if got, want := tail(api.SampleVRAM), "xxxxxxxx----xxxx-"; got != want {
		t.Errorf("slots with VRAM = %q, want %q", got, want)
	}
}

func TestSamplesAreOfWhatIsHere(t *testing.T) {
	w, h, c := measured(t)
	w.sampled(h, c, 2)
	for _, q := range []struct {
		of   api.Kind
		id   string
		step time.Duration
		code api.Code
	}{
		{api.KindInstance, "ins-2", 0, api.CodeState}, {api.KindNode, "node-2", 0, api.CodeUnavailable}, {api.KindGPU, "gpu-x", 0, api.CodeUnavailable},
		{api.KindInstance, "ins-1", 7 * time.Second, api.CodeInvalid},
	} {
		if _, err := h.Agent().Samples(h.ctx, q.of, q.id, api.SampleQuery{Step: q.step}); api.CodeOf(err) != q.code {
			t.Errorf("Samples(%s %s, step %v): error %v, want code %s", q.of, q.id, q.step, err, q.code)
		}
	}
	if _, err := h.Agent().GPUTenants(h.ctx, "gpu-x"); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("GPUTenants of another node's GPU: error %v, want code %s", err, api.CodeUnavailable)
	}
	// The metrics of an instance that has left are dropped: they start over when it
	// is back.
	in, _ := w.instance("ins-1")
	a := in.Assignment
	a.Node = "node-2"
	w.assign(api.KindInstance, "ins-1", a)
	w.turn()
	w.sampled(h, c, 1)
	a.Node = "node-1"
	w.assign(api.KindInstance, "ins-1", a)
	w.turn()
	if all := seriesOf(t, h, api.KindInstance, "ins-1"); len(all) != 0 {
		t.Errorf("series of an instance that was away = %v, want none", all)
	}
}

// TestGPULoad checks that a GPU's report of each minute has its load of
// the last minute, its temperature and its power, and that a change of these alone
// is not reported.
func TestGPULoad(t *testing.T) {
	w, h, c := measured(t)
	status := func() (api.GPUStatus, int64) {
		t.Helper()
		o, err := w.store.Get(t.Context(), api.KindGPU, "gpu-node-1-soft0")
		if err != nil {
			t.Fatal(err)
		}
		g, err := api.Decode[api.GPU](o)
		if err != nil {
			t.Fatal(err)
		}
		return g.Status, o.Meta.Revision
	}
	_, before := status()
	w.sampled(h, c, 6) // half a minute
	w.report()
	if st, now := status(); now != before || st.BusyPercent != 0 {
		t.Errorf("half a minute after a report: got revision %d and a busy percent of %d, want %d and 0", now, st.BusyPercent, before)
	}
	w.sampled(h, c, 12)
	w.report()
	if st, _ := status(); st.BusyPercent != 25 || st.TemperatureCelsius != 61 || st.PowerMilliwatts != 250_000 {
		t.Errorf("after a minute: got %d %%, %d °C and %d mW, want 25, 61 and 250000", st.BusyPercent, st.TemperatureCelsius, st.PowerMilliwatts)
	}
}
