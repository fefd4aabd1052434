package backend

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// recordOf identifies a running process beyond its number.
func recordOf(pid int) (record, error) {
	started, err := startTime(pid)
	if err != nil {
		return record{}, err
	}
	boot, err := bootID()
	return record{PID: pid, Started: started, Boot: boot}, err
}

// runs says whether the recorded process still runs. A zombie does not.
func (r record) runs() bool {
	now, err := recordOf(r.PID)
	return err == nil && now == r
}

func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}

// startTime is field 22 of /proc/PID/stat (proc_pid_stat(5)): clock ticks
// after boot.
func startTime(pid int) (uint64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name, field 2, may hold anything, so count from its closing bracket.
	i := bytes.LastIndexByte(b, ')')
	fields := strings.Fields(string(b[i+1:]))
	if i < 0 || len(fields) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat is not as documented", pid)
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return 0, os.ErrProcessDone
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// halfWritten are the names of records that are being written.
const halfWritten = ".record-*"

// sweepRecords removes what a Runner that was killed had not finished. A folder has
// one Runner at a time.
func sweepRecords(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, halfWritten))
	for _, f := range files {
		err = errors.Join(err, os.Remove(f))
	}
	return err
}

// writeRecord replaces the file whole.
func writeRecord(path string, r record) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), halfWritten)
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(raw)
	if err == nil {
		err = tmp.Sync()
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
