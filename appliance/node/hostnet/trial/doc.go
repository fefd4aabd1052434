// Package trial puts a declared network into use for a limited time, and takes it back
// unless somebody confirms it.
//
//	           apply                    confirm
//	confirmed ───────▶ on trial ───────────────────▶ confirmed (the new one)
//	    ▲                  │
//	    └──────────────────┘
//	      rollback, the time limit, a probe that fails, a restart of the machine
//
// systemd-networkd reads folders in an order: /etc, /run, /usr/local/lib, /usr/lib; of
// two files with one name the first counts, and a link to /dev/null hides the name
// (systemd.network(5)). The confirmed files are in /usr/local/lib/systemd/network, which
// is replaced as a whole in one step (renameat2(2) with RENAME_EXCHANGE). Those on trial
// are in /run/systemd/network, in memory, with links to /dev/null for what the new
// declaration no longer has. After a power cut or a reset the trial is gone and the
// confirmed network is in force, without any program of ours having to run.
//
// The time limit is a timer of systemd's (PID 1), armed before the first file is
// written: it goes off whether or not the process that applied is alive, and starts
// the rollback again should that be killed. Each sequence can be cut at any point: what
// is in force is then the confirmed network, or the one on trial with the timer armed.
package trial
