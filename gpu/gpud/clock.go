package gpud

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/sched"
)

// now returns the time since the machine started, including suspend. It never
// steps and has the same epoch after gpud restarts, so the VRAM that workers held
// while gpud was not running can be counted exactly.
func now() sched.Time {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("CLOCK_BOOTTIME: " + err.Error()) // exists since Linux 2.6.39
	}
	return time.Duration(ts.Nano())
}

// bootID returns an ID that changes when the machine starts; times of another
// boot are meaningless.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "" // containers without it: treat every start as a new boot
	}
	return strings.TrimSpace(string(b))
}
