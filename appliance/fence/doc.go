// Package fence makes certain that no instance runs here whose lease is over.
// It is the core of basalt-fence, a small process that depends on nothing else
// of Basalt and must work when everything else has failed; basaltd speaks to it
// through Client.
//
//	          lease                        deadline passes
//	Idle ──────────────► Holding ─────────────────────────► Fencing
//	 ▲                   │    ▲                               │
//	 └───── standdown ───┘    └───────────── lease ───────────┤
//	 └────────────────────── standdown ───────────────────────┘
//
// Idle: nothing is killed and no watchdog is armed. Holding: the watchdog is
// fed. Fencing: every 200 ms each QEMU of an instance that is not kept gets
// SIGKILL and is watched until it is gone; the watchdog is fed only while the
// last look that found everything gone is less than the grace (3 s) old. So
// whatever happens to this process or to its victims, no instance that is not
// kept runs longer than
//
//	deadline + 3 s grace + 10 s watchdog
//
// which is within what the cluster waits before it starts them elsewhere.
//
// # Goroutines
//
//	connections ──request──► loop ◄──result── hunter (/proc, SIGKILL)
//	                          │ ▲
//	                    state ▼ │ written
//	                         saver (the state file)
//
// The loop owns the state machine and the watchdog and never waits: neither for
// the disk, nor for /proc, whose files of a process in trouble can hang. A hunt
// that hangs while there is no lease finds nothing gone, so the machine resets.
//
// # State
//
// The state file says what was asked for, with the boot id. A lease of another
// boot is void; without a lease, and not stood down, basalt-fence kills.
// A file that cannot be read means that too, with nobody kept.
//
// # What it does not do
//
// Without a watchdog nothing stops instances while basalt-fence itself is
// stopped or cannot kill; the status says so.
package fence
