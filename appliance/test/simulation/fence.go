package simulation

import (
	"errors"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/lease"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// Constants of appliance/node/fence, which does not export them.
const (
	fenceScan  = 200 * time.Millisecond
	fenceCalm  = time.Second // between scans when none was found for calmAfter
	calmAfter  = 15 * time.Second
	fenceGrace = 3 * time.Second
)

// fence models basalt-fence: a separate process that kills the instances that are not kept when
// there is no valid lease, and feeds the watchdog as long as it can. The state machine is
// documented in the package comment of appliance/node/fence. Its state survives a restart of
// the process; the lease and the list of killed instances are valid only within the same boot.
type fence struct {
	m     *machine
	life  int // number of the process
	up    bool
	armed bool
	until lease.Instant
	boot  int // of the lease
	keep  []api.InstanceID

	clean  lease.Instant
	fedAt  lease.Instant
	next   uint64        // number of the current turn; earlier ones are ignored
	stuck  bool          // a fault: SIGKILL does not work
	caught lease.Instant // when an instance was last killed
	victim map[api.InstanceID]time.Time
	killer int // the boot of the victims
}

func newFence(m *machine) *fence { return &fence{m: m, victim: map[api.InstanceID]time.Time{}} }

func (f *fence) start() {
	f.life++
	f.up, f.fedAt, f.clean, f.caught = true, 0, 0, 0
	if f.killer != f.m.boots {
		f.victim, f.killer = map[api.InstanceID]time.Time{}, f.m.boots
	}
	if f.boot != f.m.boots {
		f.until = 0
	}
	f.loop()
}

// kill ends the process. With again it is restarted after a delay, unless the machine is off.
func (f *fence) kill(again bool) {
	f.up = false
	life, boot := f.life, f.m.boots
	if again {
		f.m.w.logf(f.m.name(), "basalt-fence is killed")
		f.m.w.after(f.m.w.between(time.Second, 3*time.Second), "start fence", func() {
			if f.m.up && f.m.boots == boot && f.life == life && !f.up {
				f.start()
			}
		})
	}
}

// set sets the lease and reports whether the process received it.
func (f *fence) set(until lease.Instant) bool {
	if !f.up || f.m.pause {
		return false
	}
	now := f.m.clock()
	if until <= now {
		until = min(f.until, now)
	}
	f.armed, f.until, f.boot = true, until, f.m.boots
	f.loop()
	return true
}

// killed reports whether basalt-fence has killed a run of the instance that began before since.
func (f *fence) killed(id api.InstanceID, since time.Time) (bool, error) {
	if !f.up || f.m.pause {
		return false, errors.New("basalt-fence does not answer")
	}
	return f.victim[id].After(since), nil
}

// covers reports whether the lease is valid for longer than margin.
func (f *fence) covers(margin time.Duration) bool {
	return f.up && f.armed && f.boot == f.m.boots && f.m.clock().Add(margin) < f.until
}

// loop runs the next turn now and schedules those after it.
func (f *fence) loop() {
	f.next++
	f.turn(f.next)
}

func (f *fence) turn(n uint64) {
	if n != f.next || !f.up || f.m.pause || !f.m.up || !f.armed {
		return
	}
	now := f.m.clock()
	holding := now < f.until
	if !holding && f.m.w.o.Bug != FenceThatDoesNothing {
		f.hunt(now)
	}
	if now >= f.fedAt.Add(time.Second) || f.fedAt == 0 {
		if holding || now < max(f.clean, f.until).Add(fenceGrace) || f.m.w.o.Bug == FenceThatDoesNothing {
			f.fedAt = now
			f.m.feed()
		}
	}
	wait := fenceScan
	if now >= max(f.until, f.caught).Add(calmAfter) {
		wait = fenceCalm
	}
	if holding {
		wait = min(time.Second, f.m.when(f.until)-f.m.w.now)
	}
	life := f.life
	f.m.w.after(wait, "fence", func() {
		if f.life == life {
			f.turn(n)
		}
	})
}

// hunt kills every active instance that is not kept.
func (f *fence) hunt(now lease.Instant) {
	for _, id := range sortedIDs(f.m.domains) {
		if !f.m.domains[id].Active() || slices.Contains(f.keep, id) {
			continue
		}
		if f.stuck {
			return
		}
		f.m.w.logf(f.m.name(), "basalt-fence kills %s", id)
		f.m.w.stats.Kills++
		f.m.sigkill(id)
		f.victim[id], f.caught = f.m.wall(), now
	}
	f.clean = now
}

// sigkill models SIGKILL to a QEMU. An incoming domain that waits for its source is already
// defined here and cannot be distinguished from one that ran.
func (m *machine) sigkill(id api.InstanceID) {
	switch m.domains[id] {
	case hypervisor.Incoming:
		_ = m.machines.FinishMigration(forever, id)
	case hypervisor.Outgoing:
		_ = m.machines.AbortMigration(forever, id)
	case hypervisor.Paused:
		_ = m.machines.Start(forever, id)
	}
	if s := m.moves[id]; s != nil {
		s.stop = "the machine was killed"
	}
	m.machines.Crash(id, "killed")
	m.observe(id)
}

// plug ends a domain because its machine lost power.
func (m *machine) plug(id api.InstanceID) {
	switch m.domains[id] {
	case hypervisor.Incoming:
		_ = m.machines.FinishMigration(forever, id)
	case hypervisor.Outgoing:
		_ = m.machines.AbortMigration(forever, id)
	case hypervisor.Paused:
		_ = m.machines.Start(forever, id)
	}
	m.machines.PowerOff(id)
	m.observe(id)
}
