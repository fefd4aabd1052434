// Package fence makes sure that no instance without a valid lease runs on this
// node. It is the core of basalt-fence, a small process that depends on no other
// part of Basalt and must work when everything else has failed; basaltd calls it
// through Client.
//
//	          lease                        deadline passes
//	Idle ──────────────► Holding ─────────────────────────► Fencing
//	 ▲                   │    ▲                               │
//	 └───── standdown ───┘    └───────────── lease ───────────┤
//	 └────────────────────── standdown ───────────────────────┘
//
// Idle: nothing is killed and no watchdog is armed. Holding: the watchdog is fed.
// Fencing: every 200 ms SIGKILL is sent to each QEMU of an instance that is not
// kept, and the process is watched until it has ended (every second when none was
// found for 15 s); the watchdog is fed only while the last sweep that found nothing
// left is younger than the grace (3 s). So whatever happens to this process or to
// the killed ones, no instance that is not kept runs longer than
//
//	deadline + 3 s grace + 10 s watchdog
//
// which is less than what the cluster waits before it starts them elsewhere.
//
// # Goroutines
//
//	connections ──request──► loop ◄──result── reaper (/proc, the file of killed processes, SIGKILL)
//	                          │ ▲
//	                    state ▼ │ written
//	                         saver (the files of state and lease)
//
// The loop owns the state machine and the watchdog and never waits: neither for the
// disk, nor for /proc, where reading the files of a stuck process can hang. A sweep
// that hangs while there is no lease does not find the node clean, so the machine
// is reset.
//
// # State
//
// The state file has what was requested. The lease has a file beside the socket, in
// memory, with the boot ID: it changes every two seconds, and one of another boot
// is void. Without a lease, and not stood down, basalt-fence kills. An unreadable
// file has the same effect; if it is the state file, no instance is kept.
//
// The file of killed processes beside it lists processes before they are killed. A
// basalt-fence that finds one of them alive when it starts kills it again.
//
// # Limits
//
// Without a watchdog nothing ends instances while basalt-fence itself is stopped or
// cannot kill; the status reports this.
package fence
