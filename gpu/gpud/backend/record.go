package backend

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/appliance/atomicfile"
)

// recordOf returns the record of a running process: it identifies the process
// beyond its PID.
func recordOf(pid int) (record, error) {
	started, err := startTime(pid)
	if err != nil {
		return record{}, err
	}
	boot, err := bootID()
	return record{PID: pid, Started: started, Boot: boot}, err
}

// runs reports whether the recorded process still runs. A zombie does not.
func (r record) runs() bool {
	now, err := recordOf(r.PID)
	return err == nil && now == r
}

func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}

// startTime returns field 22 of /proc/PID/stat (proc_pid_stat(5)): the start time
// in clock ticks after boot.
func startTime(pid int) (uint64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name, field 2, may contain any character, so count from its closing
	// parenthesis.
	i := bytes.LastIndexByte(b, ')')
	fields := strings.Fields(string(b[i+1:]))
	if i < 0 || len(fields) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat has an unexpected format", pid)
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return 0, os.ErrProcessDone
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("parse start time in /proc/%d/stat: %w", pid, err)
	}
	return start, nil
}

// writeRecord replaces the file atomically.
func writeRecord(path string, r record) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(path, raw, 0o600)
}
