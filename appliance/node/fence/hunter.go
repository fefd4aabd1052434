package fence

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Catch is what a hunt brought: who is gone since the last one, and who got
// SIGKILL and is not. Only without either Dying or Err nothing was left.
type Catch struct {
	Gone, Dying []Victim
	Err         error
	Unwritten   error // why the victims' file does not name them all
}

// hunt is one order to the hunter.
type hunt struct {
	began time.Duration
	spare func(id string) bool
	look  bool // do not kill: who would be killed comes back as Dying
}

const (
	// goneWait is how long a hunt waits for those it killed.
	goneWait = 100 * time.Millisecond
	// maxCmdline of a QEMU; libvirt puts -name at its beginning.
	maxCmdline = 256 << 10
)

// hunter finds and kills. One goroutine owns it.
type hunter struct {
	proc  string // "/proc"
	kill  func(pidfd int) error
	dying map[int]dying // by pid
	book  *book
}

type dying struct {
	Victim
	pidfd int
}

func newHunter() *hunter {
	return &hunter{proc: "/proc", dying: map[int]dying{}, book: &book{}, kill: func(pidfd int) error {
		return unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
	}}
}

// run a hunt: every QEMU of an instance that is not spared.
func (h *hunter) run(o hunt) (c Catch) {
	pids, err := h.pids()
	if err != nil {
		return Catch{Err: err}
	}
	var errs []error
	var sentenced []Victim
	for _, pid := range pids {
		if _, known := h.dying[pid]; known {
			continue
		}
		if err := h.try(o.began, pid, o.spare); err != nil {
			errs = append(errs, fmt.Errorf("process %d: %w", pid, err))
		}
		if d, found := h.dying[pid]; found {
			sentenced = append(sentenced, d.Victim)
		}
	}
	if len(sentenced) > 0 && !o.look {
		c.Unwritten = h.book.add(sentenced)
	}
	// Again each time: a signal that failed may succeed.
	for pid, d := range h.dying {
		if o.look {
			break
		}
		if err := h.kill(d.pidfd); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("process %d: SIGKILL: %w", pid, err))
		}
	}
	c.Gone, err = h.reap()
	c.Err = errors.Join(append(errs, err)...)
	for _, d := range h.dying {
		c.Dying = append(c.Dying, d.Victim)
	}
	return c
}

// pids of this PID namespace.
func (h *hunter) pids() ([]int, error) {
	d, err := os.Open(h.proc)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// try takes a process among the dying if it is one to kill.
func (h *hunter) try(now time.Duration, pid int, spare func(id string) bool) error {
	// The name of the program comes first: it can be read without the
	// process's memory lock, which one in trouble may hold for ever.
	is, err := h.isQEMU(pid)
	if err != nil || !is {
		return err
	}
	// From here on the process cannot be mistaken for another: should it end
	// and its number be used again, the signal reaches nobody.
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return gone(err)
	}
	id, err := h.instance(pid)
	if err != nil || id == "" || spare(id) {
		return errors.Join(gone(err), unix.Close(fd))
	}
	h.dying[pid] = dying{Victim{Instance: id, PID: pid, At: now}, fd}
	return nil
}

func (h *hunter) isQEMU(pid int) (bool, error) {
	dir := filepath.Join(h.proc, strconv.Itoa(pid))
	exe, err := os.Readlink(filepath.Join(dir, "exe"))
	if err == nil {
		return strings.HasPrefix(filepath.Base(exe), "qemu-"), nil
	}
	if gone(err) == nil { // also kernel threads and zombies
		return false, nil
	}
	// Somebody forbids looking. Only a QEMU is worth resetting a machine for.
	comm, cerr := os.ReadFile(filepath.Join(dir, "comm"))
	if cerr == nil && bytes.HasPrefix(comm, []byte("qemu-")) {
		return false, err
	}
	return false, nil
}

// instance of a QEMU; empty: none of Basalt's.
func (h *hunter) instance(pid int) (string, error) {
	f, err := os.Open(filepath.Join(h.proc, strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxCmdline))
	if err != nil {
		return "", err
	}
	return instanceOf(strings.Split(string(b), "\x00")), nil
}

// instanceOf reads `-name guest=basalt-ID,…` from a command line.
func instanceOf(argv []string) string {
	for i := 1; i+1 < len(argv); i++ {
		if argv[i] != "-name" && argv[i] != "--name" {
			continue
		}
		for n, opt := range strings.Split(argv[i+1], ",") {
			name, ok := strings.CutPrefix(opt, "guest=")
			if ok = ok || n == 0 && !strings.Contains(opt, "="); !ok {
				continue
			}
			if id, ours := strings.CutPrefix(name, "basalt-"); ours && id != "" {
				return id
			}
		}
	}
	return ""
}

// reap waits a moment for the dying and returns those that are gone: all of
// their threads have ended.
func (h *hunter) reap() (out []Victim, err error) {
	for deadline := time.Now().Add(goneWait); len(h.dying) > 0; {
		fds := make([]unix.PollFd, 0, len(h.dying))
		pids := make([]int, 0, len(h.dying))
		for pid, d := range h.dying {
			fds = append(fds, unix.PollFd{Fd: int32(d.pidfd), Events: unix.POLLIN})
			pids = append(pids, pid)
		}
		left := time.Until(deadline)
		if _, err := unix.Poll(fds, max(int(left.Milliseconds()), 0)); err != nil && !errors.Is(err, unix.EINTR) {
			return out, fmt.Errorf("poll: %w", err)
		}
		for i, fd := range fds {
			if fd.Revents&unix.POLLIN != 0 {
				out = append(out, h.dying[pids[i]].Victim)
				_ = unix.Close(h.dying[pids[i]].pidfd)
				delete(h.dying, pids[i])
			}
		}
		if left <= 0 {
			break
		}
	}
	return out, nil
}

// gone takes away the errors of a process that has ended.
func gone(err error) error {
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
