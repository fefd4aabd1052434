// Package sched decides who gets which GPU and for how long. It is pure: no
// clock, no randomness, no I/O; time comes in with every call, and the same
// calls give the same answers. gpu/gpud applies the decisions.
//
// Three decisions live here.
//
// Placement (admit.go, fit.go): a vGPU fits a card when the guaranteed shares
// sum to at most 100 per cent and the VRAM limits to at most the card's VRAM.
//
// Time (leases.go, roundrobin.go): one card, one lease at a time.
//
//	        Want                     Grant
//	idle ─────────► waiting (FIFO) ─────────► holding ──┐ Want: again, from the back
//	  ▲                │ Drop                  │  │     │
//	  └────────────────┴───────────────────────┘  └─────┘
//	                          Drop
//
// A holder that keeps its lease past the end stays the holder (a kernel cannot
// be torn off a card): what it overran is charged to its vGPU, and Overdue
// names it so that the node can end a session that never gives back. While nobody
// waits its lease goes on (Pass): such a kernel disturbs nobody.
//
// Presence (residency.go): whose memory is on the card when working sets do not
// fit together. Who is out waits in a line of its own:
//
//	         Away (evicted)                 Admit: In, then Back
//	present ───────────────► out, waiting ──────────────────────► present, for a
//	   ▲                     (first come, first in)               quantum at least
//	   └──────────────────────────────────────────────────────────────┘
package sched
