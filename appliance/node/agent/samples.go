package agent

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/metrics"
	"github.com/basalt-gpu/basalt/appliance/node/metrics/host"
)

// Cards measures the use of the node's GPUs.
type Cards interface {
	// Use returns the use of all GPUs at one moment. Counters may restart at zero.
	Use(ctx context.Context) ([]CardUse, error)
}

// CardUse is the use of a GPU, in total and by tenant.
type CardUse struct {
	Device                       string // gpud's name of the GPU
	VRAMBytes, VRAMResidentBytes uint64
	Tenants                      []TenantUse
}

// TenantUse is the use of a GPU by one vGPU.
type TenantUse struct {
	Instance                                            api.InstanceID
	SharePercent                                        int64
	GPUNanos                                            uint64 // executed
	VRAMLimitBytes, VRAMResidentBytes, VRAMSwappedBytes uint64
}

// sampler keeps metrics of the use of instances, the node and its GPUs.
type sampler struct {
	*core
	recorder *metrics.Recorder
}

func newSampler(co *core) *sampler {
	return &sampler{core: co, recorder: metrics.NewRecorder(co.o.Now())}
}

// sources returns the functions that read samples.
func (sp *sampler) sources() []func(context.Context) error {
	all := []func(context.Context) error{sp.sampleMachines, sp.sampleHost}
	if sp.o.Cards != nil {
		all = append(all, sp.sampleCards)
	}
	return all
}

// run samples the use of instances, the node and its GPUs into a recorder in memory
// (package metrics). Each source has its own goroutine: one that hangs leaves a gap
// in its own metrics and delays no other.
func (sp *sampler) run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, read := range sp.sources() {
		wg.Go(func() { sp.sample(ctx, read) })
	}
	wg.Wait()
}

// sampleTime limits one reading; it is shorter than the interval.
const sampleTime = 4 * time.Second

// sample reads a source at each slot's time. Of consecutive failures the first is
// logged.
func (sp *sampler) sample(ctx context.Context, read func(context.Context) error) {
	failed := false
	for {
		sleep(ctx, sp.recorder.Next(sp.o.Now()))
		if ctx.Err() != nil {
			return
		}
		within, cancel := context.WithTimeout(ctx, sampleTime)
		err := read(within)
		cancel()
		if err != nil && !failed && ctx.Err() == nil {
			sp.log.Warn("collect metrics failed", "error", err)
		}
		failed = err != nil
	}
}

func (sp *sampler) sampleMachines(ctx context.Context) error {
	if !sp.cache.isSynced() {
		return nil
	}
	all, err := sp.o.Machines.Usage(ctx)
	if err != nil {
		return fmt.Errorf("read the use of instances from the hypervisor: %w", err)
	}
	now := sp.o.Now()
	for _, u := range all {
		in, ok := get(sp.cache, sp.cache.instances, string(u.ID))
		if !ok || in.Assignment.Vcpus == 0 {
			continue
		}
		sp.recorder.Record(string(u.ID), now,
			metrics.Counter(api.SampleCPU, u.CPUNanos, 100/(1e9*float64(in.Assignment.Vcpus))),
			metrics.Level(api.SampleMemory, float64(u.ResidentBytes)),
			metrics.Level(api.SampleMemoryLimit, float64(u.MemoryBytes)),
			metrics.Counter(api.SampleDiskRead, u.ReadBytes, 1),
			metrics.Counter(api.SampleDiskWrite, u.WriteBytes, 1),
			metrics.Counter(api.SampleDiskReads, u.ReadOps, 1),
			metrics.Counter(api.SampleDiskWrites, u.WriteOps, 1),
			metrics.Counter(api.SampleReceived, u.ReceivedBytes, 1),
			metrics.Counter(api.SampleSent, u.SentBytes, 1))
	}
	return nil
}

// forgetSamples drops the metrics of instances that are not on this node any more,
// and of removed GPUs.
func (sp *sampler) forgetSamples() {
	sp.recorder.Keep(func(id string) bool {
		if id == string(sp.o.NodeID) {
			return true
		}
		if _, ok := get(sp.cache, sp.cache.instances, id); ok {
			return true
		}
		_, ok := get(sp.cache, sp.cache.gpus, id)
		return ok
	})
}

func (sp *sampler) sampleHost(context.Context) error {
	if sp.cache.isSynced() {
		sp.forgetSamples()
	}
	u, err := host.Read("/")
	if err != nil {
		return fmt.Errorf("read the use of this node: %w", err)
	}
	sp.recorder.Record(string(sp.o.NodeID), sp.o.Now(),
		metrics.Counter(api.SampleCPU, u.BusyTicks, 100/(host.TicksPerSecond*float64(u.CPUs))),
		metrics.Level(api.SampleMemory, float64(u.UsedBytes)),
		metrics.Level(api.SampleMemoryLimit, float64(u.MemoryBytes)),
		metrics.Counter(api.SampleDiskRead, u.ReadBytes, 1),
		metrics.Counter(api.SampleDiskWrite, u.WriteBytes, 1),
		metrics.Counter(api.SampleReceived, u.ReceivedBytes, 1),
		metrics.Counter(api.SampleSent, u.SentBytes, 1))
	return nil
}

// sampleCards samples the GPUs. A GPU's time is the sum of its tenants', so that
// the metrics agree.
func (sp *sampler) sampleCards(ctx context.Context) error {
	if !sp.cache.isSynced() {
		return nil
	}
	cards, err := sp.o.Cards.Use(ctx)
	if err != nil {
		return fmt.Errorf("read the use of GPUs: %w", err)
	}
	now := sp.o.Now()
	for _, c := range cards {
		busy := 0.0
		for _, t := range c.Tenants {
			if _, ok := get(sp.cache, sp.cache.instances, string(t.Instance)); !ok {
				continue
			}
			sp.recorder.Record(string(t.Instance), now,
				metrics.Counter(api.SampleGPU, t.GPUNanos, 100/1e9),
				metrics.Level(api.SampleVRAM, float64(t.VRAMResidentBytes)),
				metrics.Level(api.SampleVRAMLimit, float64(t.VRAMLimitBytes)))
			if v := sp.recorder.Last(string(t.Instance), api.SampleGPU, metrics.Fine, now); !math.IsNaN(v) {
				busy += v
			}
		}
		sp.recorder.Record(gpuID(sp.o.NodeID, c.Device), now,
			metrics.Level(api.SampleGPU, busy),
			metrics.Level(api.SampleVRAM, float64(c.VRAMResidentBytes)),
			metrics.Level(api.SampleVRAMLimit, float64(c.VRAMBytes)))
	}
	return nil
}

// busyPercent returns how busy a GPU was in the last minute, or 0 if that was not
// measured.
func (sp *sampler) busyPercent(gpu string) int64 {
	busy := sp.recorder.Last(gpu, api.SampleGPU, time.Minute, sp.o.Now())
	if math.IsNaN(busy) {
		return 0
	}
	return int64(math.Round(min(max(busy, 0), 100)))
}

// samples returns the metrics of an instance, of this node or of one of its GPUs.
func (sp *sampler) samples(_ context.Context, of api.Kind, id string, q api.SampleQuery) (api.Samples, error) {
	switch of {
	case api.KindInstance:
		if err := sp.here(api.InstanceID(id)); err != nil {
			return api.Samples{}, err
		}
	case api.KindNode:
		if id != string(sp.o.NodeID) {
			return api.Samples{}, notThisNode()
		}
	case api.KindGPU:
		if _, err := sp.card(id); err != nil {
			return api.Samples{}, err
		}
	}
	c, err := sp.recorder.Read(id, metrics.Span{From: q.From, Step: q.Step}, sp.o.Now())
	switch {
	case errors.Is(err, metrics.ErrMany):
		return api.Samples{}, api.Errorf(api.CodeInvalid, "%v", err).At("step").WithHint("use a longer step or a later from")
	case err != nil:
		return api.Samples{}, api.Errorf(api.CodeInvalid, "%v", err).At("step")
	}
	out := api.Samples{From: c.From, StepSeconds: int64(c.Step / time.Second), Series: []api.SampleSeries{}}
	for _, s := range c.Series {
		out.Series = append(out.Series, api.NewSampleSeries(s.Name, s.Values))
	}
	return out, nil
}

// gpuTenants returns the vGPUs that one of this node's GPUs has now, the most VRAM
// first.
func (sp *sampler) gpuTenants(ctx context.Context, gpu api.GPUID) ([]api.GPUTenant, error) {
	g, err := sp.card(string(gpu))
	if err != nil {
		return nil, err
	}
	if sp.o.Cards == nil {
		return nil, api.Errorf(api.CodeUnavailable, "this node has no GPU scheduler")
	}
	ctx, cancel := context.WithTimeout(ctx, sampleTime)
	defer cancel()
	cards, err := sp.o.Cards.Use(ctx)
	if err != nil {
		sp.log.Warn("read GPU users from basalt-gpud failed", "gpu", gpu, "error", err)
		return nil, api.Errorf(api.CodeUnavailable, "basalt-gpud on node %s is not reachable", sp.o.NodeName).WithHint("systemctl status basalt-gpud on that node")
	}
	all, now := []api.GPUTenant{}, sp.o.Now()
	for _, c := range cards {
		if c.Device != g.Status.Device {
			continue
		}
		for _, t := range c.Tenants {
			used := sp.recorder.Last(string(t.Instance), api.SampleGPU, time.Minute, now) // %
			if math.IsNaN(used) {
				used = 0
			}
			all = append(all, api.GPUTenant{Instance: t.Instance, SharePercent: t.SharePercent, VramLimitBytes: int64(t.VRAMLimitBytes),
				VramResidentBytes: int64(t.VRAMResidentBytes), VramSwappedBytes: int64(t.VRAMSwappedBytes), GpuPercent: used})
		}
	}
	slices.SortStableFunc(all, func(x, y api.GPUTenant) int { return int(min(max(y.VramResidentBytes-x.VramResidentBytes, -1), 1)) })
	return all, nil
}

// card returns a GPU of this node.
func (sp *sampler) card(id string) (api.GPU, error) {
	g, ok := get(sp.cache, sp.cache.gpus, id)
	if !ok || g.Status.Node != sp.o.NodeID {
		return g, notThisNode()
	}
	return g, nil
}

func notThisNode() error {
	return api.Errorf(api.CodeUnavailable, "the node that measures it is not reachable from this node").
		WithHint("`basalt node list` shows which nodes are up")
}
