package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// cpuPins keeps the threads of machines on their CPUs: those that an instance has of its
// own are for its vCPUs alone, and everything else shares the rest. What it decides
// follows from the assignments and from this node's status, both of which are stored; in
// memory it has only what need not be set again.
type cpuPins struct {
	*core

	mu  sync.Mutex
	set map[api.InstanceID]string // where the running machine's threads are known to be
}

// sharedCPUs returns the CPUs of a node's cells that no instance has of its own.
func sharedCPUs(cells []api.NodeCell, taken []api.InstanceCell) (cpus []int) {
	own := map[int]bool{}
	for _, c := range taken {
		for _, cpu := range api.KnownCPUs(c.CPUs) {
			own[cpu] = true
		}
	}
	for _, c := range cells {
		cpus = append(cpus, slices.DeleteFunc(api.KnownCPUs(c.CPUs), func(cpu int) bool { return own[cpu] })...)
	}
	slices.Sort(cpus)
	return cpus
}

// shared returns the CPUs of this node that are not dedicated, and whether any is. It is
// empty on a node that does not report its CPUs.
func (p *cpuPins) shared() (cpus []int, some bool) {
	self, _ := p.cache.self()
	var taken []api.InstanceCell
	for _, in := range all(p.cache, p.cache.instances) {
		taken = append(taken, in.Assignment.CellsOn(p.o.NodeID)...)
	}
	for _, m := range all(p.cache, p.cache.migrations) {
		if m.Assignment.Target != p.o.NodeID || m.Assignment.Phase.Ended() || m.Spec.Instance == "" {
			continue
		}
		if r, err := p.files.readRun(m.Spec.Instance); err == nil && r.Incoming == api.MigrationID(m.Meta.ID) {
			taken = append(taken, r.Cells...)
		}
	}
	return sharedCPUs(self.Status.Cells, taken), len(taken) > 0
}

// place sets where the machine's threads will run, and its memory will be.
func (p *cpuPins) place(d *hypervisor.Domain, in api.Instance) error {
	cells := in.Assignment.CellsOn(p.o.NodeID)
	if in.Assignment.Dedicated() && len(cells) == 0 {
		return api.Errorf(api.CodeState, "instance %s has dedicated CPUs, and none are assigned to it on this node", in.Meta.ID)
	}
	shared, some := p.shared()
	if !some && len(cells) == 0 {
		return nil // it runs anywhere
	}
	d.SharedCPUs, d.Cells = shared, hypervisorCells(cells)
	if len(cells) > 0 && p.o.Cells != nil && !bindable(p.o.Cells(), cells, in.Assignment.HugePages) {
		d.AnyMemory = true
		p.log.Warn("memory of instance does not fit into its NUMA cells, the rest of it is allocated in others", "id", in.Meta.ID)
	}
	return nil
}

func hypervisorCells(cells []api.InstanceCell) (all []hypervisor.Cell) {
	for _, c := range cells {
		all = append(all, hypervisor.Cell{Host: int(c.Cell), CPUs: api.KnownCPUs(c.CPUs), MemoryBytes: c.MemoryBytes})
	}
	return all
}

// bindable reports whether each cell has as much free memory, or free huge pages of the
// size, as an instance needs there.
func bindable(node []api.NodeCell, cells []api.InstanceCell, pages api.HugePages) bool {
	need := map[int64]int64{}
	for _, c := range cells {
		need[c.Cell] += c.MemoryBytes
	}
	for _, n := range node {
		free := n.FreeBytes
		if pages != "" {
			free = 0
			for _, p := range n.HugePages {
				if p.Size == pages {
					free = p.FreeBytes
				}
			}
		}
		if need[n.ID] <= free {
			delete(need, n.ID)
		}
	}
	return len(need) == 0
}

// keep moves the threads of an instance's running machine to where they belong now.
func (p *cpuPins) keep(ctx context.Context, id api.InstanceID) error {
	shared, _ := p.shared()
	if len(shared) == 0 {
		return nil
	}
	pins := hypervisor.Pinning{Shared: shared}
	if in, ok := get(p.cache, p.cache.instances, string(id)); ok {
		pins.VCPUs = hypervisor.Domain{Cells: hypervisorCells(in.Assignment.CellsOn(p.o.NodeID))}.Pinning().VCPUs
	}
	want := fmt.Sprint(pins)
	p.mu.Lock()
	known := p.set[id]
	p.mu.Unlock()
	if known == want {
		return nil
	}
	if err := p.o.Machines.Pin(ctx, id, pins); err != nil {
		return fmt.Errorf("move instance %s to CPUs %s: %w", id, api.FormatCPUs(shared), err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set[id] = want
	return nil
}

// vacate moves all running machines off the CPUs that instances have of their own, before
// one of these starts. A machine that is being received is moved when it has arrived.
func (p *cpuPins) vacate(ctx context.Context) error {
	machines, err := p.domain.list(ctx)
	if err != nil {
		return err
	}
	for _, m := range machines {
		if !m.State.Active() || m.State == hypervisor.Incoming {
			continue
		}
		if err := p.keep(ctx, m.ID); err != nil {
			return err
		}
	}
	return nil
}

// forget drops what is known of an instance's run: another begins, or it is gone.
func (p *cpuPins) forget(id api.InstanceID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.set, id)
}
