package simulation

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
	hypfake "github.com/basalt-gpu/basalt/hypervisor/fake"
)

var forever = context.Background()

// guest is the guest of every instance; its agent answers at once.
var guest = hypfake.Guest{Exec: func(api.InstanceID, hypervisor.Exec) (hypervisor.ExecResult, error) {
	return hypervisor.ExecResult{Stdout: []byte("1.0\n")}, nil
}}

func sortedIDs[V any](m map[api.InstanceID]V) []api.InstanceID { return slices.Sorted(maps.Keys(m)) }

// observe updates the state of a domain after an operation on it.
func (m *machine) observe(id api.InstanceID) {
	s, err := m.machines.Status(forever, id)
	if err != nil {
		m.w.failf("the fake hypervisor: %v", err)
		return
	}
	was, known := m.domains[id]
	if was == s.State || !known && s.State == hypervisor.Missing {
		return
	}
	if m.domains[id] = s.State; s.State == hypervisor.Missing {
		delete(m.domains, id)
	}
	if s.State != hypervisor.Paused {
		delete(m.loaded, id)
	}
	m.w.logf(m.name(), "%s is %s", id, s.State)
	_, ran := m.ran[id]
	switch executes := m.executes(id); {
	case executes && !ran:
		m.ran[id] = m.w.now
		m.w.stats.Starts++
		m.w.disks.opened(m, id)
	case !executes:
		delete(m.ran, id)
	}
	m.w.disks.markUsed(m, id)
	m.w.bill.changed(id)
}

// executes reports whether the guest of the instance has begun and has not ended.
func (m *machine) executes(id api.InstanceID) bool { return runs(m.domains[id]) && !m.loaded[id] }

// runs reports whether a QEMU has the disk open in state s.
func runs(s hypervisor.State) bool {
	return s == hypervisor.Running || s == hypervisor.Paused || s == hypervisor.Outgoing
}

// driverFaults are the faults of a machine's drivers: random errors, and traps that trigger at
// a certain call.
type driverFaults struct {
	errors float64
	traps  []trap
}

type trap struct {
	op    string
	after bool // trigger after the call instead of before it
	run   func()
}

// hyper is the hypervisor as seen by one process of basaltd.
type hyper struct {
	hypervisor.Driver
	m *machine
	p *proc
}

func newHyper(m *machine, p *proc) hyper { return hyper{m.machines, m, p} }

var (
	_ hypervisor.Driver   = hyper{}
	_ hypervisor.Migrator = hyper{}
)

// enter begins a call of a driver: it takes time, and may fail.
func (m *machine) enter(ctx context.Context, op string) error {
	w := m.w
	m.spring(op, false)
	d := w.between(50*time.Microsecond, 5*time.Millisecond)
	if w.chance(0.01) {
		d += w.between(0, 2*time.Second)
	}
	w.wait(d)
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.faults.errors > 0 && w.chance(m.faults.errors) {
		return api.Errorf(api.CodeUnavailable, "%s does not answer", op)
	}
	return nil
}

// spring triggers the trap for op, if there is one. The trap acts on the thread that triggered
// it, so it runs as an event while the thread waits.
func (m *machine) spring(op string, after bool) {
	for i, t := range m.faults.traps {
		if t.op == op && t.after == after && m.w.cur != nil {
			m.faults.traps = slices.Delete(m.faults.traps, i, i+1)
			m.w.after(0, "trap", t.run)
			m.w.wait(time.Microsecond)
			return
		}
	}
}

// call performs an operation on a domain.
func (h hyper) call(ctx context.Context, op string, id api.InstanceID, f func() error) error {
	if err := h.m.enter(ctx, op); err != nil {
		return err
	}
	err := f()
	h.m.observe(id)
	h.m.spring(op, true)
	return err
}

func (h hyper) Define(ctx context.Context, d hypervisor.Domain) error {
	return h.call(ctx, "Define", d.ID, func() error { return h.m.machines.Define(ctx, d) })
}

// Load implements hypervisor.Driver: it is Start without letting the guest begin.
func (h hyper) Load(ctx context.Context, id api.InstanceID) error {
	return h.call(ctx, "Load", id, func() error {
		if runs(h.m.domains[id]) {
			return h.m.machines.Load(ctx, id)
		}
		if err := h.lock(id); err != nil {
			return err
		}
		h.m.loaded[id] = true
		err := h.m.machines.Load(ctx, id)
		if err != nil {
			delete(h.m.loaded, id)
		}
		return err
	})
}

// Resume implements hypervisor.Driver: it lets a loaded guest begin, and creates no QEMU.
func (h hyper) Resume(ctx context.Context, id api.InstanceID) error {
	h.leased(id)
	return h.call(ctx, "Resume", id, func() error { return h.m.machines.Resume(ctx, id) })
}

// lock reports an error if another node holds the lock on the root disk, as QEMU does when it
// starts.
func (h hyper) lock(id api.InstanceID) error {
	if o := h.m.w.disks.locked(h.m, id); o != nil {
		return api.Errorf(api.CodeInUse, "failed to get the write lock: %s has the disk open", o.id)
	}
	return nil
}

func (h hyper) Start(ctx context.Context, id api.InstanceID) error {
	h.leased(id)
	return h.call(ctx, "Start", id, func() error {
		if !runs(h.m.domains[id]) {
			if err := h.lock(id); err != nil {
				return err
			}
		}
		return h.m.machines.Start(ctx, id)
	})
}

// justThawed is how long after a pause a process may still act on what it observed before.
const justThawed = 3 * time.Second

// leased fails the run if a movable instance is started without a valid lease.
func (h hyper) leased(id api.InstanceID) {
	w := h.m.w
	if w.movable(id) && !h.m.fence.covers(0) && w.now-h.p.thawed > justThawed && h.m.domains[id] != hypervisor.Running {
		w.failf("%s starts %s, which could run elsewhere, without a lease", h.m.id, id)
	}
}

func (h hyper) Shutdown(ctx context.Context, id api.InstanceID) error {
	return h.call(ctx, "Shutdown", id, func() error {
		if h.m.w.chance(0.1) {
			return nil // the guest ignores the request
		}
		return h.m.machines.Shutdown(ctx, id)
	})
}

func (h hyper) Destroy(ctx context.Context, id api.InstanceID) error {
	return h.call(ctx, "Destroy", id, func() error {
		if s := h.m.moves[id]; s != nil {
			s.stop = "it was destroyed"
		}
		return h.m.machines.Destroy(ctx, id)
	})
}

func (h hyper) Undefine(ctx context.Context, id api.InstanceID) error {
	return h.call(ctx, "Undefine", id, func() error { return h.m.machines.Undefine(ctx, id) })
}

func (h hyper) Status(ctx context.Context, id api.InstanceID) (hypervisor.Status, error) {
	if err := h.m.enter(ctx, "Status"); err != nil {
		return hypervisor.Status{}, err
	}
	return h.m.machines.Status(ctx, id)
}

func (h hyper) List(ctx context.Context) ([]hypervisor.Status, error) {
	if err := h.m.enter(ctx, "List"); err != nil {
		return nil, err
	}
	return h.m.machines.List(ctx)
}

func (h hyper) AgentPing(ctx context.Context, id api.InstanceID) error {
	if err := h.m.enter(ctx, "AgentPing"); err != nil {
		return err
	}
	return h.m.machines.AgentPing(ctx, id)
}
