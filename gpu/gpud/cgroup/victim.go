package cgroup

import (
	"fmt"
	"os"
	"strconv"
)

// Victim is how soon the kernel ends a process when memory is short: an
// oom_score_adj (proc_pid_oom_score_adj(5)).
type Victim int

// Victims. Who is started by a protected daemon is protected, too, unless it says
// otherwise.
const (
	VictimUsual Victim = 0   // as soon as any program, and QEMU
	VictimFirst Victim = 900 // before a daemon, or another tenant's QEMU
)

// SetVictim sets this process's own. Making it likelier is always allowed.
func SetVictim(v Victim) error {
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(int(v))), 0o600); err != nil {
		return fmt.Errorf("write oom_score_adj: %w", err)
	}
	return nil
}
