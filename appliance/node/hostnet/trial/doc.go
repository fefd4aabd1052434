// Package trial applies a declared network for a limited time, and rolls it back
// unless it is confirmed.
//
//	           apply                    confirm
//	confirmed ───────▶ on trial ───────────────────▶ confirmed (the new one)
//	    ▲                  │
//	    └──────────────────┘
//	      rollback, the time limit, a probe that fails, a reboot
//
// systemd-networkd reads directories in this order: /etc, /run, /usr/local/lib,
// /usr/lib. Of two files with one name the first counts, and a link to /dev/null
// hides the name (systemd.network(5)). The confirmed files are in
// /usr/local/lib/systemd/network, which is replaced as a whole in one step
// (renameat2(2) with RENAME_EXCHANGE). Those on trial are in /run/systemd/network,
// in memory, with links to /dev/null for files that the new declaration does not
// have. After a power cut or a reset the trial has ended and the confirmed network
// is in force, without any program of Basalt having to run.
//
// The time limit is a timer of systemd (PID 1), armed before the first file is
// written: it expires whether or not the process that applied is alive, and starts
// the rollback again if that is killed. Each sequence can be interrupted at any
// point: then either the confirmed network is in force, or the one on trial with
// the timer armed.
package trial
