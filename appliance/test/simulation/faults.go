package simulation

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/basalt-gpu/basalt/hypervisor"
)

// planned is one fault or one operator action. All of them are drawn before the run begins, so
// that leaving one out does not change the others.
type planned struct {
	at   time.Duration
	name string
	run  func()
}

// trapOps lists the calls at which a trap may trigger: the points at which an interruption of
// the agent could do harm.
var trapOps = []struct {
	op    string
	after bool
}{
	{"Resume", false}, {"Resume", true}, {"Load", true}, {"Define", true}, {"ClaimVolume", false}, {"CreateVolume", true}, {"RecreateVolume", true}, {"DeleteVolume", true},
	{"Destroy", false}, {"Destroy", true}, {"Undefine", true}, {"Ensure", true}, {"Shutdown", true},
	{"copy", false}, {"switch", false}, {"received", false}, {"left", false}, {"PrepareMigration", true}, {"FinishMigration", false}, {"FinishMigration", true},
}

// drawFaults draws the faults of the whole run.
func (w *world) drawFaults(r *rand.Rand) (list []planned) {
	begin, end := 30*time.Second, w.o.Storm-time.Second
	length := func(a, b time.Duration) time.Duration { return a + time.Duration(r.Int64N(int64(b-a))) }
	for range 5 + r.IntN(14) {
		at := length(begin, end)
		i, j := r.IntN(len(w.nodes)), r.IntN(len(w.nodes)) // of the nodes that exist at the beginning
		d := length(time.Second, 60*time.Second)
		p := 0.05 + 0.4*r.Float64()
		mask, coin, pick := r.Uint64(), r.IntN(2) == 0, r.IntN(1<<30)
		m := w.nodes[i]
		add := func(name string, run func()) {
			list = append(list, planned{at, fmt.Sprintf("%s %s", m.id, name), run})
		}
		undo := func(f func()) { w.after(d, "fault ends", f) }
		switch r.IntN(23) {
		case 0:
			add(fmt.Sprintf("loses power for %s", d.Round(time.Second)), func() { m.off("the power is cut"); undo(m.on) })
		case 1, 2:
			add("basaltd is killed", func() {
				if m.proc != nil {
					m.proc.kill()
				}
			})
		case 3:
			add("basalt-fence is killed", func() {
				if m.fence.up {
					m.fence.kill(true)
				}
			})
		case 4:
			add("is paused", func() { m.freeze(d) })
		case 5:
			add("basaltd is stopped", func() {
				if m.proc != nil {
					m.proc.freeze(d)
				}
			})
		case 6, 7, 8:
			add(fmt.Sprintf("partition %b for %s", mask&63, d.Round(time.Second)), func() {
				w.cutWhere(d, func(l link) bool { return mask>>l.from&1 != mask>>l.to&1 })
			})
		case 9:
			add(fmt.Sprintf("alone for %s", d.Round(time.Second)), func() {
				w.cutWhere(d, func(l link) bool { return l.from == m.n || l.to == m.n })
			})
		case 10:
			add(fmt.Sprintf("one way to node-%d cut for %s", j+1, d.Round(time.Second)), func() {
				w.cutWhere(d, func(l link) bool { return l.from == m.n && l.to == j+1 && (coin || l.path == 0) })
			})
		case 11:
			add("one path down", func() {
				w.cutWhere(d, func(l link) bool { return l.path == pick%paths && (l.from == m.n || l.to == m.n) })
			})
		case 12:
			add(fmt.Sprintf("network loses %.0f %%", p*100), func() {
				w.net.loss, w.net.slow = p/2, time.Duration(p*float64(200*time.Millisecond))
				undo(func() { w.net.loss, w.net.slow = 0, 0 })
			})
		case 13:
			add("disk full", func() {
				s := m.local
				if coin && m.shared != nil {
					s = m.shared
				}
				s.SetFree(0)
				undo(func() { s.SetFree(1 << 40) })
			})
		case 14:
			add("drivers fail", func() { m.faults.errors = p; undo(func() { m.faults.errors = 0 }) })
		case 15:
			add("gpud away", func() { m.gpud.away = true; undo(func() { m.gpud.away = false }) })
		case 16:
			add("answers lost", func() { w.acts.lostAnswers = p / 2; undo(func() { w.acts.lostAnswers = 0 }) })
		case 17:
			add("watch breaks", func() {
				if m.proc != nil && m.proc.synced {
					m.proc.broken = true
				}
			})
		case 18, 19:
			op := trapOps[pick%len(trapOps)]
			what := int(mask % 4)
			add(fmt.Sprintf("trap %d at %s, after %t", what, op.op, op.after), func() {
				for _, m := range w.nodes { // a migration may involve any node, so every one gets the trap
					if m == w.nodes[i] || moving[op.op] {
						m.faults.traps = append(m.faults.traps, trap{op.op, op.after, func() { w.trapped(m, what, d) }})
					}
				}
			})
		case 20:
			d += 20 * time.Second
			add("trap: basaltd is stopped at a start", func() {
				m.faults.traps = append(m.faults.traps, trap{"Resume", false, func() { w.trapped(m, 2, d) }})
			})
		case 21:
			add("SIGKILL does not work", func() { m.fence.stuck = true; undo(func() { m.fence.stuck = false }) })
		case 22:
			add("guest or QEMU ends", func() { w.endGuest(m, pick, coin) })
		}
	}
	return list
}

func (w *world) trapped(m *machine, what int, d time.Duration) {
	switch {
	case m.proc == nil:
	case what == 0:
		m.proc.kill()
	case what == 1:
		m.off("the power is cut")
		w.after(d, "power", m.on)
	case what == 2:
		m.proc.freeze(d)
	default:
		m.freeze(d)
	}
}

// endGuest ends a running instance of the machine: by a guest shutdown, by a crash, or because
// its disk is full.
func (w *world) endGuest(m *machine, pick int, crash bool) {
	ids := sortedIDs(m.domains)
	if len(ids) == 0 || m.pause {
		return
	}
	id := ids[pick%len(ids)]
	if m.domains[id] != hypervisor.Running {
		return
	}
	w.ended[id] = true
	switch {
	case crash:
		m.machines.Crash(id, "bug")
	case pick%3 == 0:
		m.machines.DiskFull(id)
		w.ended[id] = false
	default:
		m.machines.PowerOff(id)
	}
	m.observe(id)
}

func (w *world) cutWhere(d time.Duration, which func(link) bool) {
	var cut []link
	for _, a := range w.nodes {
		for _, b := range w.nodes {
			for p := range paths {
				if l := (link{a.n, b.n, p}); a != b && which(l) && !w.net.cut[l] {
					cut = append(cut, l)
					w.net.cut[l] = true
				}
			}
		}
	}
	w.after(d, "cut ends", func() {
		for _, l := range cut {
			delete(w.net.cut, l)
		}
	})
}

// heal removes all faults and prevents new ones.
func (w *world) heal() {
	w.calm = true
	w.logf("world", "all faults are healed")
	w.net.heal()
	w.acts.lostAnswers = 0
	for _, m := range w.nodes {
		m.faults = driverFaults{}
		m.gpud.away, m.fence.stuck, m.full = false, false, false
		m.upgrade()
		m.local.SetFree(1 << 40)
		if m.shared != nil {
			m.shared.SetFree(1 << 40)
		}
		m.on()
		if m.pause {
			m.pause = false
			m.fence.loop()
		}
		if m.proc != nil {
			m.proc.pause = false
			m.proc.thaw()
		}
	}
}

// moving is the set of trap operations that belong to a migration.
var moving = map[string]bool{"copy": true, "switch": true, "received": true, "left": true, "PrepareMigration": true, "FinishMigration": true}
