package fence

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/atomicfile"
)

// killLog names those who were marked: it is written before the signal is sent,
// and read again by the next basalt-fence, so that no instance that was killed
// here is ever taken for one that ended by itself. Who cannot be written down is
// killed all the same. The reaper owns it.
type killLog struct {
	path string // empty: none
	boot string
	list []Killed // the latest maxKilled
}

type storedKills struct {
	V      int      `json:"v"`
	Boot   string   `json:"boot"`
	Killed []Killed `json:"victims"`
}

// openKillLog of this boot's killed processes. With an error it is empty.
func openKillLog(dir, boot string) (*killLog, error) {
	b := &killLog{path: filepath.Join(dir, victimFile), boot: boot}
	var s storedKills
	_, err := read(b.path, &s)
	if err == nil && boot != "" && s.Boot == boot && s.V == version {
		b.list = latest(s.Killed)
	}
	return b, err
}

// add writes them down.
func (b *killLog) add(vs []Killed) error {
	if b.list = latest(append(b.list, vs...)); b.path == "" {
		return nil
	}
	raw, err := json.Marshal(storedKills{version, b.boot, b.list})
	if err != nil {
		return err
	}
	return atomicfile.WriteFileUnsynced(b.path, raw, 0o600)
}

func latest(vs []Killed) []Killed {
	return slices.Clone(vs[max(0, len(vs)-maxKilled):])
}

// recall takes over from a basalt-fence that was killed: of whom it had
// marked some are gone, and the others are the reaper's now. They are killed
// whatever has become of the lease: nobody knows whether they got the signal.
func (r *reaper) recall() (gone, left []Killed) {
	for _, v := range r.killLog.list {
		if fd, ok := r.still(v); ok {
			r.dying[v.PID] = dying{v, fd}
			left = append(left, v)
		} else {
			gone = append(gone, v)
		}
	}
	return gone, left
}

// still reports whether a killed instance's process is there, and holds on to it.
func (r *reaper) still(v Killed) (pidfd int, ok bool) {
	if _, twice := r.dying[v.PID]; twice {
		return -1, false
	}
	fd, err := unix.PidfdOpen(v.PID, 0)
	if err != nil {
		return -1, false
	}
	id, err := r.instance(v.PID)
	began, ok := r.began(v.PID)
	if err != nil || id != v.Instance || !ok || began > v.At {
		_ = unix.Close(fd)
		return -1, false
	}
	return fd, true
}

// began is when a process did, rounded down (proc_pid_stat(5), field 22, in
// 1/100 s since the boot).
func (r *reaper) began(pid int) (time.Duration, bool) {
	raw, err := os.ReadFile(filepath.Join(r.proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, false
	}
	// Field 2, the name, may hold anything; field 3 follows the last bracket.
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	if len(fields) < 20 {
		return 0, false
	}
	ticks, err := strconv.ParseInt(fields[19], 10, 64)
	return time.Duration(ticks) * 10 * time.Millisecond, err == nil
}
