package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/budget"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// reporter reports this node and its GPUs to the store.
type reporter struct {
	*core
	epoch       *observedEpoch
	accelerator *acceleration
	fence       *fenceKeeper
	meter       *usageMeter
	hardware    *hardwareWatch
	sampler     *sampler
	news        chan struct{} // has an element if a report was requested

	mu       sync.Mutex
	lastNode api.NodeStatus
}

// run reports the node and its GPUs periodically. A report is written without
// changes too: by SeenAt others know that the node is alive.
func (r *reporter) run(ctx context.Context) {
	for ctx.Err() == nil {
		if !r.cache.isSynced() { // the last report is not known
			sleep(ctx, 20*time.Millisecond)
			continue
		}
		if err := r.reportAll(ctx); err != nil {
			r.log.Warn("report node status failed", "error", err)
		}
		r.untilNextReport(ctx)
	}
}

// awaitEvery is how often a network or a hypervisor that does not work is checked:
// no instance that needs it is placed on this node before the report shows that it
// works.
const awaitEvery = 500 * time.Millisecond

// untilNextReport waits for ReportEvery, until a report is requested, or until a
// network or a hypervisor that did not work at the last report does.
func (r *reporter) untilNextReport(ctx context.Context) {
	r.mu.Lock()
	last := r.lastNode
	r.mu.Unlock()
	network := r.o.Ports != nil && !last.Chassis
	machines := api.Node{Status: last}.WithoutHypervisor() != ""
	if !network && !machines {
		r.sleepOrNews(ctx, r.o.ReportEvery)
		return
	}
	for left := r.o.ReportEvery; left > 0 && ctx.Err() == nil; left -= awaitEvery {
		if r.sleepOrNews(ctx, min(left, awaitEvery)) || network && r.o.Ports.Works(ctx) == nil {
			return
		}
		if machines {
			if _, err := r.hypervisor(ctx); err == nil {
				return
			}
		}
	}
}

// sleepOrNews waits for d, and reports whether soon has ended the wait.
func (r *reporter) sleepOrNews(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-r.news:
		return true
	case <-t.C:
	}
	return false
}

// soon requests a report of the node now instead of at the next interval. It does
// not wait for the report.
func (r *reporter) soon() {
	select {
	case r.news <- struct{}{}:
	default: // a report is requested already
	}
}

// infoTime is how long the hypervisor is waited for: one that hangs must not delay
// the reports of this node.
const infoTime = 5 * time.Second

// hypervisor returns information about the hypervisor, or why no machine can be
// started.
func (r *reporter) hypervisor(ctx context.Context) (hypervisor.Info, error) {
	within, cancel := context.WithTimeout(ctx, infoTime)
	defer cancel()
	info, err := r.o.Machines.Info(within)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		err = api.Errorf(api.CodeUnavailable, "the hypervisor did not respond within %s", infoTime)
	}
	return info, errors.Join(err, r.accelerator.ready())
}

func (r *reporter) reportAll(ctx context.Context) error {
	if !r.cache.isSynced() {
		return nil
	}
	return errors.Join(r.fence.keep(true), r.reportNode(ctx), r.reportGPUs(ctx))
}

const (
	condGPUD    = "GPUScheduler"
	condWorkers = "WorkerLimits"
	condCards   = "GPUCards"
	condNetwork = "Network"
	// Conditions of a GPU.
	condCard      = "Works"
	condThrottled = "Throttled"
)

func (r *reporter) reportNode(ctx context.Context) error {
	now := r.o.Now().UTC()
	st := api.NodeStatus{Vcpus: r.o.VCPUs, MemoryBytes: r.o.MemoryBytes, Accelerator: string(r.accelerator.how()), EmulationRefused: r.o.RefuseEmulation, ShuttingDown: r.o.Leaving(), Version: r.o.Version, SeenAt: now,
		BootID: r.o.BootID, ObservedEpoch: r.epoch.get(), MeteredAt: r.meter.meteredUntil(now)}
	if r.o.HugePages != nil {
		st.HugePages = r.o.HugePages()
	}
	info, err := r.hypervisor(ctx)
	st.Conditions = append(st.Conditions, answer(api.ConditionHypervisor, err, now))
	r.divide(&st, info)
	if st.Machines, err = r.machines(ctx); err != nil {
		r.log.Warn("what machines can be made here is not known", "error", err)
	}
	if r.o.Upgrade != nil {
		st.Upgrade = r.o.Upgrade()
	}
	r.pools.report(ctx, &st, r.promised(), now)
	r.limitStorage(st.Pools)
	if r.o.Ports != nil {
		err := r.o.Ports.Works(ctx)
		st.Chassis = err == nil
		st.Conditions = append(st.Conditions, answer(condNetwork, err, now))
	}
	if r.o.Links != nil {
		links := r.o.Links()
		st.NetworkMtu, st.TunnelAddress, st.StorageAddress = links.MTU, addressText(links.Tunnel), addressText(links.Storage)
	}
	if r.o.Encryption != nil {
		if stage, err := r.o.Encryption(); stage != "" {
			c := answer(api.ConditionEncryption, err, now)
			c.Reason = stage
			st.Conditions = append(st.Conditions, c)
		}
	}
	if st.Hardware = r.hardware.checks(); len(st.Hardware) > 0 {
		st.Conditions = append(st.Conditions, hardwareCondition(st.Hardware, now))
	}
	if r.o.Ceph != nil {
		if on, err := r.o.Ceph.Works(); on || err != nil {
			st.Conditions = append(st.Conditions, answer(condCeph, err, now))
		}
	}
	if r.o.Disks != nil {
		if err := r.o.Disks.PoolsWork(); err != nil { // present only while something is wrong
			st.Conditions = append(st.Conditions, answer(condPools, err, now))
		}
	}
	if r.o.VGPUs != nil {
		st.Conditions = append(st.Conditions, r.gpuConditions(ctx, now)...)
	}
	if r.o.Agreement != nil {
		if err := r.o.Agreement(); err != nil {
			st.Conditions = append(st.Conditions, answer(api.ConditionAgreement, err, now))
		}
	}
	r.mu.Lock()
	keepSince(st.Conditions, r.lastNode.Conditions)
	r.lastNode = st
	r.mu.Unlock()
	return r.apply(ctx, api.Command{Op: api.OpReport, Kind: api.KindNode, ID: string(r.o.NodeID), Expect: api.AnyRevision,
		Name: r.o.NodeName, Data: api.Encode(st)})
}

// divide sets what of the machine instances may have. Without an answer of the
// hypervisor, that is what was last reported.
func (r *reporter) divide(st *api.NodeStatus, info hypervisor.Info) {
	self, known := r.cache.self()
	switch {
	case info.VCPUs > 0:
		st.Hypervisor = "libvirt " + info.Libvirt + ", QEMU " + info.QEMU
		if st.Vcpus == 0 {
			st.Processors = budget.Processors(r.runs(), int64(info.VCPUs), cmp.Or(self.Spec.ReservedCPUs, r.o.ReservedCPUs))
			st.Vcpus = budget.VCPUs(st.Processors)
		}
		if st.MemoryBytes == 0 {
			st.Memory = r.memory(info.Memory, st.HugePages)
			st.MemoryBytes = st.Memory.InstancesBytes
		}
	case known:
		st.Hypervisor, st.Memory, st.Processors = self.Status.Hypervisor, self.Status.Memory, self.Status.Processors
		st.Vcpus, st.MemoryBytes = cmp.Or(st.Vcpus, self.Status.Vcpus), cmp.Or(st.MemoryBytes, self.Status.MemoryBytes)
	}
	if r.o.Cells != nil {
		st.Cells = r.o.Cells()
		st.ReservedCPUs = budget.ReservedCPUs(st.Cells, st.Processors)
	}
}

// runs returns what the node runs beside its instances.
func (r *reporter) runs() budget.Runs {
	runs := r.o.Runs()
	runs.GPUs = len(all(r.cache, r.cache.gpus))
	return runs
}

// memory divides total bytes of memory by what the node runs and what is reserved.
func (r *reporter) memory(total int64, pages []api.NodeHugePages) api.NodeMemory {
	runs := r.runs()
	for _, p := range pages {
		runs.HugePages += p.TotalBytes
	}
	runs.Memory = total
	return budget.Of(runs)
}

// promised returns the bytes allocated to volumes in each of this node's own pools.
func (r *reporter) promised() map[string]int64 {
	sums := map[string]int64{}
	for _, v := range all(r.cache, r.cache.volumes) {
		if !api.SharedPool(v.Assignment.Pool) {
			sums[cmp.Or(v.Assignment.Pool, api.PoolLocal)] += v.MaxBytes()
		}
	}
	return sums
}

// limitStorage sets how much may be allocated in each of this node's own pools, and
// the disks of those that have one.
func (r *reporter) limitStorage(pools []api.StoragePool) {
	for i := range pools {
		p := &pools[i]
		if p.Name == api.PoolLocal {
			p.ReserveBytes = r.o.StorageReserve
		} else if api.DiskPool(p.Name) && r.o.Disks != nil {
			p.Disk, p.Draining = r.o.Disks.DiskPool(p.Name)
		}
		if !p.Shared && r.o.StorageOvercommit > 0 && p.SizeBytes > 0 {
			p.LimitBytes = max(api.StorageLimit(p.SizeBytes, p.ReserveBytes, r.o.StorageOvercommit), 1) // 0 would be no limit
		}
	}
}

// machines returns what the hypervisor supports. If it does not answer, machines
// returns what was reported last, with the error.
func (r *reporter) machines(ctx context.Context) (m api.NodeMachines, err error) {
	within, cancel := context.WithTimeout(ctx, infoTime)
	defer cancel()
	have, err := r.domain.abilities(within)
	if err != nil {
		if self, ok := r.cache.self(); ok {
			m = self.Status.Machines
		}
		return m, err
	}
	m.Types, m.Firmware, m.NICQueues = have.Machines, firmware(have.Firmware), hypervisor.MaxNICQueues
	if r.accelerator.how() == hypervisor.KVM { // libvirt may report KVM where no guest starts
		m.CPU = have.CPU.API()
	}
	return m, nil
}

func firmware(f hypervisor.FirmwareAbilities) (all []string) {
	for _, a := range []struct {
		has  bool
		name string
	}{{f.UEFI, api.AbilityUEFI}, {f.SecureBoot, api.AbilitySecureBoot}, {f.TPM, api.AbilityTPM}} {
		if a.has {
			all = append(all, a.name)
		}
	}
	return all
}

func (r *reporter) gpuConditions(ctx context.Context, now time.Time) []api.Condition {
	cards, err := r.o.VGPUs.GPUs(ctx)
	all := []api.Condition{answer(condGPUD, err, now)}
	if r.o.WorkerLimits != nil && len(cards) > 0 {
		all = append(all, answer(condWorkers, r.o.WorkerLimits(), now))
	}
	// The condition is present only while something is wrong: most nodes have no
	// such GPUs.
	if unusable, err := r.o.VGPUs.Unusable(ctx); err == nil && len(unusable) > 0 {
		all = append(all, api.Condition{Type: condCards, Reason: "unusable", Message: strings.Join(unusable, "; "), Since: now})
	}
	return all
}

func answer(typ string, err error, now time.Time) api.Condition {
	if err != nil {
		return api.Condition{Type: typ, Reason: "unavailable", Message: strings.ReplaceAll(err.Error(), "\n", ": "), Since: now}
	}
	return api.Condition{Type: typ, Status: true, Since: now}
}

// keepSince copies the time of conditions that have not changed from old to cs.
func keepSince(cs, old []api.Condition) {
	for i, c := range cs {
		for _, o := range old {
			if o.Type == c.Type && o.Status == c.Status && o.Message == c.Message {
				cs[i].Since = o.Since
			}
		}
	}
}

func (r *reporter) reportGPUs(ctx context.Context) error {
	if r.o.VGPUs == nil {
		return nil
	}
	gpus, err := r.o.VGPUs.GPUs(ctx)
	if err != nil {
		return fmt.Errorf("list the GPUs of this node: %w", err)
	}
	var cmds []api.Command
	now := r.o.Now().UTC()
	for _, g := range gpus {
		id := gpuID(r.o.NodeID, g.ID)
		st := api.GPUStatus{Node: r.o.NodeID, Device: g.ID, Model: g.Model, UUID: g.UUID, Driver: g.Driver,
			VramBytes: g.VRAMBytes, VramUsedBytes: g.VRAMUsedBytes, VramSwappedBytes: g.VRAMSwappedBytes, Multiprocessors: g.Multiprocessors, Vgpus: g.VGPUs, Conditions: cardConditions(g, now)}
		if have, ok := get(r.cache, r.cache.gpus, id); ok {
			if card := r.cache.card(have); card != g.Card {
				if err := r.o.VGPUs.SetCard(ctx, g.ID, card); err != nil {
					return fmt.Errorf("apply the settings of its pool to GPU %s: %w", id, err)
				}
			}
			keepSince(st.Conditions, have.Status.Conditions)
			st.SeenAt = have.Status.SeenAt
			// Load, temperature and power always change: they are included in
			// reports, but do not cause one.
			st.BusyPercent, st.TemperatureCelsius, st.PowerMilliwatts = have.Status.BusyPercent, have.Status.TemperatureCelsius, have.Status.PowerMilliwatts
			if reflect.DeepEqual(st, have.Status) && now.Sub(st.SeenAt) < time.Minute {
				continue
			}
		}
		st.SeenAt, st.BusyPercent, st.TemperatureCelsius, st.PowerMilliwatts = now, r.sampler.busyPercent(id), g.Celsius, g.Milliwatts
		cmds = append(cmds, api.Command{Op: api.OpReport, Kind: api.KindGPU, ID: id, Expect: api.AnyRevision,
			Name: r.o.NodeName + "-" + g.Name, Data: api.Encode(st)})
	}
	if len(cmds) == 0 {
		return nil
	}
	return r.apply(ctx, cmds...)
}

// cardConditions returns the conditions of a GPU, which are present only while
// something is wrong: a condition that is false raises an alert.
func cardConditions(g GPU, now time.Time) (list []api.Condition) {
	if g.Failed != "" {
		list = append(list, api.Condition{Type: condCard, Reason: "failed", Message: g.Failed, Since: now})
	}
	if g.Throttled {
		list = append(list, api.Condition{Type: condThrottled, Status: true, Reason: "hot", Since: now})
	}
	return list
}

// gpuID returns the ID of the GPU object, which is always the same for a device.
func gpuID(node api.NodeID, device string) string { return "gpu-" + string(node) + "-" + device }

// addressText returns the address, or "" for the zero Addr.
func addressText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
