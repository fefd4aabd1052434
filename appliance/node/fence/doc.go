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
// SIGKILL and is watched until it is gone (every second when none was found for
// 15 s); the watchdog is fed only while the
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
//	connections ──request──► loop ◄──result── reaper (/proc, the file of killed processes, SIGKILL)
//	                          │ ▲
//	                    state ▼ │ written
//	                         saver (the files of state and lease)
//
// The loop owns the state machine and the watchdog and never waits: neither for
// the disk, nor for /proc, whose files of a process in trouble can hang. A sweep
// that hangs while there is no lease finds nothing gone, so the machine resets.
//
// # State
//
// The state file says what was asked for. The lease has a file beside the socket,
// in memory, with the boot id: it changes every two seconds, and one of another
// boot is void. Without a lease, and not stood down, basalt-fence kills. A file
// that cannot be read means that too; if it is the state's, with nobody kept.
//
// The file of killed processes beside it names those who are killed, before they are. Who
// finds it at the start, and one of them alive, finishes that.
//
// # What it does not do
//
// Without a watchdog nothing stops instances while basalt-fence itself is
// stopped or cannot kill; the status says so.
package fence
