package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// machine describes the machine and the time of the measurement.
func machine(now time.Time, all samples) string {
	return fmt.Sprintf("%s, %d processors, %s, %s, %s", field("/proc/cpuinfo", "model name", ":"), runtime.NumCPU(),
		field("/etc/os-release", "PRETTY_NAME", "="), accelerator(all), now.UTC().Format("2006-01-02 15:04 UTC"))
}

// accelerator returns the accelerator that the instances of the samples ran with. The node
// reports it (bench-instance.sh), because /dev/kvm may exist without working.
func accelerator(all samples) string {
	for k := range all {
		if name, ok := strings.CutPrefix(k.bench, "Accelerator/"); ok {
			return name
		}
	}
	return "no accelerator known"
}

// field returns the value of the first line with a name in a file of lines "NAME SEP VALUE".
func field(file, name, sep string) string {
	b, _ := os.ReadFile(file)
	for line := range strings.Lines(string(b)) {
		k, v, ok := strings.Cut(line, sep)
		if ok && strings.TrimSpace(k) == name {
			return strings.Trim(strings.TrimSpace(v), `"`)
		}
	}
	return "unknown " + name
}

// busy returns the share of the time of all processors that was used during d.
func busy(d time.Duration) (float64, error) {
	read := func() (idle, total uint64, err error) {
		b, err := os.ReadFile("/proc/stat")
		if err != nil {
			return 0, 0, err
		}
		first, _, _ := strings.Cut(string(b), "\n")
		return cpuTimes(first)
	}
	idle, total, err := read()
	if err != nil {
		return 0, err
	}
	time.Sleep(d)
	idleLater, totalLater, err := read()
	if err == nil && totalLater == total {
		err = errors.New("/proc/stat did not change")
	}
	if err != nil {
		return 0, err
	}
	return 1 - float64(idleLater-idle)/float64(totalLater-total), nil
}

// cpuTimes reads the "cpu" line of /proc/stat (proc_stat(5)): user, nice,
// system, idle, iowait, irq, softirq, steal, of which guest time is a part.
func cpuTimes(line string) (idle, total uint64, err error) {
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return 0, 0, fmt.Errorf("not the cpu line of /proc/stat: %q", line)
	}
	for i, s := range f[1:9] {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("%q: %w", line, err)
		}
		total += n
		if i == 3 || i == 4 {
			idle += n
		}
	}
	return idle, total, nil
}
