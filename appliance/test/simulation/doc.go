// Package simulation runs a whole cluster in one goroutine and in virtual time. The agent, the
// planner, the leases and the store of every node are the real code; everything below them is a
// fake or a model. Every random choice is derived from one seed, so a failing run can be
// repeated exactly.
//
//	         operator            faults (both lists are drawn before the run begins)
//	            │                  │
//	            ▼                  ▼
//	┌──────────── world: queue of events, clock, trace ─────────────┐
//	│  raft model ── one committed log                              │
//	│    │ entries, late and in groups      ▲ Apply, Get, List      │
//	│    ▼                                  │                       │
//	│  store.Replica per machine: files, watermark, state machine   │
//	│    │ watch, late and interrupted      ▲                       │
//	│    ▼                                  │                       │
//	│  machine: basaltd{agent.Stepper, lease.Holder, lease.Granter, │
//	│           plan.Next}, basalt-fence, watchdog, hypervisor,     │
//	│           pools, gpud                                         │
//	└───────────────────────────────────────────────────────────────┘
//
// A thread is code that waits in virtual time: every call of an agent across a boundary (store,
// hypervisor, pool, gpud, another node) is a point at which it can be interrupted, paused for
// up to a minute, or killed. Only one thread runs at a time; the event queue determines which.
//
// The following are models rather than the real code: Raft (a committed entry is at once on a
// majority of the voters; entries that only a minority has are not modelled), the error of a
// full disk, basalt-fence and its watchdog, the network, and QEMU. The file of each model
// documents its guarantees, which never exceed those of the real component.
//
// The invariants (invariants.go) are checked after every event; the liveness conditions
// (liveness.go) are checked after all faults have been healed. InjectedBug (bugs.go) lists product
// faults that the simulation must find; TestInjectedBugsAreFound and TestStoriesFindInjectedBugs
// check that it does.
package simulation
