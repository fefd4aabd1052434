package lease

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Instant is a reading of one machine's CLOCK_BOOTTIME: the time since it booted,
// including suspended time.
type Instant time.Duration

// Add returns i+d.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the time from o to i.
func (i Instant) Sub(o Instant) time.Duration { return time.Duration(i - o) }

// Wall converts an instant to wall time for display. now and wall are readings of
// both clocks at the same moment.
func (i Instant) Wall(now Instant, wall time.Time) time.Time {
	return wall.Add(i.Sub(now)).UTC()
}

// Now reads the boot clock.
func Now() Instant {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("CLOCK_BOOTTIME: " + err.Error()) // exists since Linux 2.6.39
	}
	return Instant(ts.Nano())
}

// BootID returns an ID that changes at every boot, or "" if the kernel has none.
func BootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
