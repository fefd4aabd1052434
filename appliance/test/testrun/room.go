package main

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

// looks is how often the processors are looked at, and how long a job has to
// show what it takes before the next one begins.
const looks = 3 * time.Second

// spare is the share of the processors' time from which on there is room for
// one job more.
const spare = 0.1

// room reports whether a job may begin beside those that run. One more than
// processors always run, as many jobs wait more than they compute; more of them,
// to a limit that memory sets, while the processors have nothing to do.
func room(running int, idle float64) bool {
	cpus := runtime.NumCPU()
	return running <= cpus || running < 3*cpus && idle >= spare
}

// usage of all processors since the machine started, in clock ticks.
type usage struct{ idle, all uint64 }

// processors reads /proc/stat; zero where it cannot be read.
func processors() usage {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return usage{}
	}
	return parseUsage(string(raw))
}

// parseUsage of /proc/stat's first line (proc(5)): user, nice, system, idle,
// iowait, irq, softirq, steal. A processor that waits for a disk is idle; what the
// host took is not.
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

// idleSince is the idle share of the time between two looks.
func (u usage) idleSince(before usage) float64 {
	if u.all <= before.all || u.idle < before.idle {
		return 0
	}
	return float64(u.idle-before.idle) / float64(u.all-before.all)
}
