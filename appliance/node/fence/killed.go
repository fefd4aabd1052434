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

// killLog records the processes to be killed. It is written before the signal is
// sent, and read by the next basalt-fence, so that an instance killed here is never
// taken for one that ended by itself. A process that cannot be recorded is killed
// nevertheless. The reaper owns it.
type killLog struct {
	path string // empty if there is no file
	boot string
	list []Killed // the latest maxKilled
}

type storedKills struct {
	V      int      `json:"v"`
	Boot   string   `json:"boot"`
	Killed []Killed `json:"victims"`
}

// openKillLog reads this boot's killed processes. With an error the list is empty.
func openKillLog(dir, boot string) (*killLog, error) {
	b := &killLog{path: filepath.Join(dir, killFile), boot: boot}
	var s storedKills
	_, err := read(b.path, &s)
	if err == nil && boot != "" && s.Boot == boot && s.V == version {
		b.list = latest(s.Killed)
	}
	return b, err
}

// add records processes in the file.
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

// recall takes over the processes recorded by an earlier basalt-fence. gone have
// ended; left are alive and are the reaper's now. They are killed whatever the
// lease is, because it is unknown whether the signal was sent.
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

// still reports whether a recorded process still runs, and returns a pidfd of it.
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

// began returns when a process started, since the boot and rounded down
// (proc_pid_stat(5), field 22, in 1/100 s).
func (r *reaper) began(pid int) (time.Duration, bool) {
	raw, err := os.ReadFile(filepath.Join(r.proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, false
	}
	// Field 2, the name, may contain any character; field 3 follows the last
	// bracket.
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	if len(fields) < 20 {
		return 0, false
	}
	ticks, err := strconv.ParseInt(fields[19], 10, 64)
	return time.Duration(ticks) * 10 * time.Millisecond, err == nil
}
