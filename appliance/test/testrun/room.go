package main

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

// sampleEvery is the interval of measuring the processors' usage, and the time after a start
// before the next job may begin because of idle processors.
const sampleEvery = 3 * time.Second

// spare is the idle share of the processors' time from which another job may begin.
const spare = 0.1

// canStart reports whether another job may begin. One job more than there are processors may
// always run, because many jobs wait more than they compute. More of them, up to a limit that
// is set by memory, may run while the processors are idle.
func canStart(running int, idle float64) bool {
	cpus := runtime.NumCPU()
	return running <= cpus || running < 3*cpus && idle >= spare
}

// usage is the usage of all processors since the machine started, in clock ticks.
type usage struct{ idle, all uint64 }

// processors reads /proc/stat; it returns zero where it cannot be read.
func processors() usage {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return usage{}
	}
	return parseUsage(string(raw))
}

// parseUsage parses the first line of /proc/stat (proc(5)): user, nice, system, idle, iowait,
// irq, softirq, steal. A processor that waits for a disk counts as idle; stolen time does not.
func parseUsage(stat string) usage {
	var t [8]uint64
	if _, err := fmt.Sscanf(stat, "cpu %d %d %d %d %d %d %d %d", &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]); err != nil {
		return usage{}
	}
	u := usage{idle: t[3] + t[4]}
	for _, n := range t {
		u.all += n
	}
	return u
}

// idleSince returns the idle share of the time between two samples.
func (u usage) idleSince(before usage) float64 {
	if u.all <= before.all || u.idle < before.idle {
		return 0
	}
	return float64(u.idle-before.idle) / float64(u.all-before.all)
}
