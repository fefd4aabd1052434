package cgroup

import (
	"fmt"
	"os"
	"strconv"
)

// OOMScore is the order in which the kernel ends processes when memory is short: an
// oom_score_adj (proc_pid_oom_score_adj(5)).
type OOMScore int

// The values of OOMScore. A process that a protected daemon starts is protected
// too, unless it sets another value.
const (
	OOMScoreUsual OOMScore = 0   // like any other program, and QEMU
	OOMScoreFirst OOMScore = 900 // before a daemon, or the QEMU of another instance
)

// SetOOMScore sets the value of this process. Increasing it is always permitted.
func SetOOMScore(v OOMScore) error {
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(int(v))), 0o600); err != nil {
		return fmt.Errorf("write oom_score_adj: %w", err)
	}
	return nil
}
