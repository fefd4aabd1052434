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

// book names those who were sentenced: it is written before the signal is sent,
// and read again by the next basalt-fence, so that no instance that was killed
// here is ever taken for one that ended by itself. Who cannot be written down is
// killed all the same. The hunter owns it.
type book struct {
	path string // empty: none
	boot string
	list []Victim // the latest maxVictims
}

type storedVictims struct {
	V       int      `json:"v"`
	Boot    string   `json:"boot"`
	Victims []Victim `json:"victims"`
}

// openBook of this boot's victims. With an error it is empty.
func openBook(dir, boot string) (*book, error) {
	b := &book{path: filepath.Join(dir, victimFile), boot: boot}
	var s storedVictims
	_, err := read(b.path, &s)
	if err == nil && boot != "" && s.Boot == boot && s.V == version {
		b.list = latest(s.Victims)
	}
	return b, err
}

// add writes them down.
func (b *book) add(vs []Victim) error {
	if b.list = latest(append(b.list, vs...)); b.path == "" {
		return nil
	}
	raw, err := json.Marshal(storedVictims{version, b.boot, b.list})
	if err != nil {
		return err
	}
	return atomicfile.WriteFileUnsynced(b.path, raw, 0o600)
}

func latest(vs []Victim) []Victim {
	return slices.Clone(vs[max(0, len(vs)-maxVictims):])
}

// recall takes over from a basalt-fence that was killed: of whom it had
// sentenced some are gone, and the others are the hunter's now. They are killed
// whatever has become of the lease: nobody knows whether they got the signal.
func (h *hunter) recall() (gone, left []Victim) {
	for _, v := range h.book.list {
		if fd, ok := h.still(v); ok {
			h.dying[v.PID] = dying{v, fd}
			left = append(left, v)
		} else {
			gone = append(gone, v)
		}
	}
	return gone, left
}

// still says whether a victim's process is there, and holds on to it.
func (h *hunter) still(v Victim) (pidfd int, ok bool) {
	if _, twice := h.dying[v.PID]; twice {
		return -1, false
	}
	fd, err := unix.PidfdOpen(v.PID, 0)
	if err != nil {
		return -1, false
	}
	id, err := h.instance(v.PID)
	began, ok := h.began(v.PID)
	if err != nil || id != v.Instance || !ok || began > v.At {
		_ = unix.Close(fd)
		return -1, false
	}
	return fd, true
}

// began is when a process did, rounded down (proc_pid_stat(5), field 22, in
// 1/100 s since the boot).
func (h *hunter) began(pid int) (time.Duration, bool) {
	raw, err := os.ReadFile(filepath.Join(h.proc, strconv.Itoa(pid), "stat"))
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
