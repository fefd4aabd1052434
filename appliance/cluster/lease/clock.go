package lease

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Instant is a reading of one machine's CLOCK_BOOTTIME: time since it started,
// sleep included.
type Instant time.Duration

// Add moves an instant.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub is the time from o to i.
func (i Instant) Sub(o Instant) time.Duration { return time.Duration(i - o) }

// Wall is the wall time of an instant, for people: now and wall are two
// readings of the same moment.
func (i Instant) Wall(now Instant, wall time.Time) time.Time {
	return wall.Add(i.Sub(now)).UTC()
}

// Now reads the clock.
func Now() Instant {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("CLOCK_BOOTTIME: " + err.Error()) // exists since Linux 2.6.39
	}
	return Instant(ts.Nano())
}

// BootID changes when the machine starts; empty where there is none.
func BootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
