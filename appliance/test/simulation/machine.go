package simulation

import (
	"fmt"
	"math"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/lease"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
	"github.com/basalt-gpu/basalt/hypervisor"
	hypfake "github.com/basalt-gpu/basalt/hypervisor/fake"
	"github.com/basalt-gpu/basalt/sds"
	sdsfake "github.com/basalt-gpu/basalt/sds/fake"
)

// machine is the hardware of one node and the state that survives its processes.
//
//	off ─power─► booting ─► up ─(power cut, watchdog)─► off
//
// While it is paused, nothing on it runs, guests included. Its clock and its watchdog continue,
// and everything resumes when the pause ends.
type machine struct {
	w     *world
	id    api.NodeID
	n     int
	power bool // set while it boots, too
	up    bool // it has booted
	gone  bool // removed from the cluster: it never comes back
	pause bool

	boots  int
	bootAt time.Duration // when, in virtual time
	rate   float64       // of its clock
	skew   time.Duration // of its wall clock

	watchdog time.Duration // when it resets the machine, by its own clock; 0: not armed
	fence    *fence
	proc     *proc // basaltd; nil: not running

	machines *hypfake.Driver
	events   <-chan hypervisor.Event
	domains  map[api.InstanceID]hypervisor.State // as the hypervisor has them
	loaded   map[api.InstanceID]bool             // has its disks, and its guest has not begun
	ran      map[api.InstanceID]time.Duration    // since when they run
	moves    map[api.InstanceID]*sending
	local    *sdsfake.Store
	shared   *sdsfake.Store // nil: it has none
	gpud     *gpud
	faults   driverFaults
	vcpus    int64
	memory   int64

	store     *store.Replica // nil: basaltd does not run, or its store was refused
	release   int            // the feature level that it supports
	persisted int            // entries of the log that are on the disk
	waiting   int            // how many entries may wait to be applied
	refused   bool           // the store, when basaltd last started
	touched   bool           // the store's files, since basaltd last opened them
	altered   bool           // a row of it was changed, and nobody has seen it yet
	full      bool           // the disk that the store is on
}

func (m *machine) name() string { return string(m.id) }

// alive reports whether basaltd is running and not paused.
func (m *machine) alive() bool { return m.proc != nil && !m.proc.frozen() }

// bootID returns the ID of the present boot.
func (m *machine) bootID() string { return fmt.Sprintf("%s-boot-%d", m.id, m.boots) }

const firstInstant = 10 * time.Second // CLOCK_BOOTTIME when the services start

// clock returns the machine's own clock, CLOCK_BOOTTIME.
func (m *machine) clock() lease.Instant {
	return lease.Instant(firstInstant + time.Duration(float64(m.w.now-m.bootAt)*m.rate))
}

// when returns the virtual time at which the machine's clock has reached i, never earlier.
func (m *machine) when(i lease.Instant) time.Duration {
	return m.bootAt + time.Duration(math.Ceil(float64(time.Duration(i)-firstInstant)/m.rate)) + 1
}

// wall returns the machine's wall clock.
func (m *machine) wall() time.Time { return epoch.Add(m.w.now + m.skew) }

func (w *world) addMachine(shared bool) *machine {
	n := len(w.nodes) + 1
	m := &machine{w: w, n: n, id: api.NodeID(fmt.Sprintf("node-%d", n)), rate: 1,
		domains: map[api.InstanceID]hypervisor.State{}, ran: map[api.InstanceID]time.Duration{}, loaded: map[api.InstanceID]bool{},
		moves: map[api.InstanceID]*sending{}, vcpus: 8, memory: 8 << 30, release: state.Level}
	m.join()
	m.machines = hypfake.New(guest)
	m.events, _ = m.machines.Events(forever)
	m.local = sdsfake.New(sds.Limits{})
	m.local.SetNow(func() time.Time { return epoch.Add(w.now) })
	m.local.Serve(imageURL, rawImage)
	if shared {
		m.shared = w.shared.Join()
	}
	m.gpud = newGPUD(m)
	m.fence = newFence(m)
	w.nodes = append(w.nodes, m)
	return m
}

// on switches the machine on.
func (m *machine) on() {
	if m.power || m.gone {
		return
	}
	m.power = true
	m.boots++
	boot := m.boots
	m.w.after(m.w.between(4*time.Second, 15*time.Second), "boot", func() {
		if m.boots == boot && m.power {
			m.booted()
		}
	})
}

func (m *machine) booted() {
	m.up, m.pause, m.watchdog = true, false, 0
	m.bootAt, m.rate = m.w.now, 1+(m.w.rng.Float64()-0.5)*0.02
	m.w.logf(m.name(), "is up, boot %d", m.boots)
	m.fence.start()
	m.startProc(m.w.between(100*time.Millisecond, 2*time.Second))
}

// off ends everything on the machine but its disks, as a power cut or the watchdog does.
func (m *machine) off(why string) {
	if !m.power {
		return
	}
	m.w.logf(m.name(), "is off: %s", why)
	m.power, m.up, m.pause, m.watchdog = false, false, false, 0
	if m.proc != nil {
		m.proc.die()
	}
	m.fence.kill(false)
	for _, id := range sortedIDs(m.domains) {
		m.plug(id)
	}
	m.gpud.off()
	m.moves = map[api.InstanceID]*sending{}
}

// reset restarts the machine, as an expired watchdog does.
func (m *machine) reset() {
	m.w.stats.Resets++
	m.off("the watchdog has reset it")
	m.on()
}

// feed re-arms the watchdog.
func (m *machine) feed() {
	m.watchdog = time.Duration(m.clock().Add(lease.Watchdog))
	at := lease.Instant(m.watchdog)
	boot := m.boots
	m.w.after(m.when(at)-m.w.now, "watchdog", func() {
		if m.up && m.boots == boot && m.watchdog != 0 && m.clock() >= lease.Instant(m.watchdog) {
			m.reset()
		}
	})
}

// freeze pauses the whole machine for d.
func (m *machine) freeze(d time.Duration) {
	if !m.up || m.pause {
		return
	}
	m.w.logf(m.name(), "is paused for %s", d.Round(time.Millisecond))
	m.pause = true
	boot := m.boots
	m.w.after(d, "thaw", func() {
		if m.up && m.boots == boot && m.pause {
			m.pause = false
			m.w.logf(m.name(), "resumes")
			m.fence.loop()
			if m.proc != nil {
				m.proc.thaw()
			}
		}
	})
}

// startProc starts basaltd after a while, as its supervisor does.
func (m *machine) startProc(d time.Duration) {
	boot := m.boots
	m.w.after(d, "start basaltd", func() {
		switch {
		case !m.up || m.boots != boot || m.proc != nil || m.gone:
		case m.pause:
			m.startProc(time.Second)
		default:
			m.proc = newProc(m)
		}
	})
}

// forwardEvents delivers the pending events of the hypervisor to the agent.
func (m *machine) forwardEvents() {
	for {
		select {
		case e := <-m.events:
			switch {
			case m.proc == nil || m.proc.stepper == nil:
			case m.proc.frozen():
				m.proc.held = append(m.proc.held, func() { m.proc.machineEvent(e) })
			default:
				m.proc.machineEvent(e)
			}
		default:
			return
		}
	}
}
