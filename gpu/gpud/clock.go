package gpud

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/sched"
)

// now is the time since the machine started, sleep included. It never steps,
// and it means the same to a gpud that starts again, so the VRAM that workers
// held while gpud was away can be counted exactly.
func now() sched.Time {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("CLOCK_BOOTTIME: " + err.Error()) // exists since Linux 2.6.39
	}
	return time.Duration(ts.Nano())
}

// bootID changes when the machine starts; times of another boot mean nothing.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "" // containers without it: as if every start were a new boot
	}
	return strings.TrimSpace(string(b))
}
