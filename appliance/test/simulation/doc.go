// Package simulation runs a whole cluster in one goroutine and in virtual time: the
// agent, the planner, the leases and every node's store are the real ones, everything
// below them is a fake or a model. Everything that happens is drawn from one seed, so a run
// that fails is run again exactly.
//
//	         operator            faults (both lists are drawn before the run begins)
//	            │                  │
//	            ▼                  ▼
//	┌──────────── world: queue of events, clock, trace ─────────────┐
//	│  raft model ── one committed log                              │
//	│    │ entries, late and in groups      ▲ Apply, Get, List      │
//	│    ▼                                  │                       │
//	│  store.Replica of each machine: files, promise, state machine │
//	│    │ watch, late and interrupted      ▲                       │
//	│    ▼                                  │                       │
//	│  machine: basaltd{agent.Stepper, lease.Holder, lease.Granter, │
//	│           plan.Next}, basalt-fence, watchdog, hypervisor,     │
//	│           pools, gpud                                         │
//	└───────────────────────────────────────────────────────────────┘
//
// A thread is code that waits in virtual time: every call of an agent across a
// boundary (store, hypervisor, pool, gpud, another node) is a place where it is
// interrupted, stopped for a minute, or killed. Only one thread runs at a time,
// and the queue says which.
//
// What is modelled and not run: Raft (what is committed is so at once on most of
// the voters; entries that few have are not modelled), the answer of a full disk,
// basalt-fence and its watchdog, the network, QEMU. Each model says in its file what it promises, and that is no
// more than the real thing does.
//
// The invariants (invariants.go) are checked after every event that changed
// something; what must come true in the end (liveness.go) when all faults are
// healed. Planted (bugs.go) names faults of the product that the simulation
// must find; a test holds it to that.
package simulation
