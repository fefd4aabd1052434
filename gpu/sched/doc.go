// Package sched decides who gets which GPU and for how long. It is pure: it uses no
// clock, no randomness and no I/O. The caller passes the time in every call, and
// the same calls give the same results. gpu/gpud applies the decisions.
//
// It makes three kinds of decision.
//
// Placement (admit.go, fit.go): a vGPU fits a card when the guaranteed shares add
// up to at most 100 percent and the VRAM limits to at most the card's VRAM.
//
// Time (leases.go, roundrobin.go): a card has one lease at a time.
//
//	        Want                     Grant
//	idle ─────────► waiting (FIFO) ─────────► holding ──┐ Want: again, from the back
//	  ▲                │ Drop                  │  │     │
//	  └────────────────┴───────────────────────┘  └─────┘
//	                          Drop
//
// A holder that keeps its lease past the end stays the holder, because a running
// kernel cannot be interrupted. The excess time is charged to its vGPU, and Overdue
// returns it so that the node can end a session that never releases its lease.
// While no session waits, the lease is renewed (Pass), because such a kernel delays
// no other session.
//
// Residency (residency.go): whose memory is on the card when the working sets do
// not fit together. Sessions that were evicted wait in a queue of their own:
//
//	         SwappedOut (evicted)           Admit: In, then SwappedIn
//	present ───────────────► out, waiting ──────────────────────► present, for a
//	   ▲                     (first come, first in)               quantum at least
//	   └──────────────────────────────────────────────────────────────┘
package sched
