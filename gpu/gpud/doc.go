// Package gpud implements gpud, which runs once per node: the inventory of cards,
// the ledger of vGPUs and their VRAM, the lease server and the meter.
//
//	control API ─┐                    ┌─► saver (state.json: write, fsync, rename)
//	worker 1 ────┼─► core: one goroutine owns all state ◄─ tick
//	worker n ────┘    applies gpu/sched, answers
//
// A worker's session:
//
//	        register                    socket closed, bye, kicked
//	─────────────────────► live ────────────────────────────► ended (kept for a
//	                        ▲  │ gpud ends                      while, so that one
//	               register │  ▼ (any way)                      that reconnects is
//	                      detached ──── did not reconnect ────► not counted twice)
//
// A gpud that did not run for a while (core.awake) is treated as one that ended.
//
// DESIGN.md describes what is exact and what can be lost.
package gpud
