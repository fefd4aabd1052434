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

// SweepResult is what a sweep brought: who is gone since the last one, and who got
// SIGKILL and is not. Only without either Dying or Err nothing was left.
type SweepResult struct {
	Gone, Dying []Killed
	Err         error
	Unwritten   error // why the file of killed processes does not name them all
}

// sweep is one order to the reaper.
type sweep struct {
	began time.Duration
	spare func(id string) bool
	look  bool // do not kill: who would be killed comes back as Dying
}

const (
	// goneWait is how long a sweep waits for those it killed.
	goneWait = 100 * time.Millisecond
	// maxCmdline of a QEMU; libvirt puts -name at its beginning.
	maxCmdline = 256 << 10
)

// reaper finds and kills. One goroutine owns it.
type reaper struct {
	proc    string // "/proc"
	kill    func(pidfd int) error
	dying   map[int]dying // by pid
	killLog *killLog
}

type dying struct {
	Killed
	pidfd int
}

func newReaper() *reaper {
	return &reaper{proc: "/proc", dying: map[int]dying{}, killLog: &killLog{}, kill: func(pidfd int) error {
		return unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
	}}
}

// run a sweep: every QEMU of an instance that is not spared.
func (r *reaper) run(o sweep) (c SweepResult) {
	pids, err := r.pids()
	if err != nil {
		return SweepResult{Err: err}
	}
	var errs []error
	var marked []Killed
	for _, pid := range pids {
		if _, known := r.dying[pid]; known {
			continue
		}
		if err := r.try(o.began, pid, o.spare); err != nil {
			errs = append(errs, fmt.Errorf("process %d: %w", pid, err))
		}
		if d, found := r.dying[pid]; found {
			marked = append(marked, d.Killed)
		}
	}
	if len(marked) > 0 && !o.look {
		c.Unwritten = r.killLog.add(marked)
	}
	// Again each time: a signal that failed may succeed.
	for pid, d := range r.dying {
		if o.look {
			break
		}
		if err := r.kill(d.pidfd); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("process %d: SIGKILL: %w", pid, err))
		}
	}
	c.Gone, err = r.reap()
	c.Err = errors.Join(append(errs, err)...)
	for _, d := range r.dying {
		c.Dying = append(c.Dying, d.Killed)
	}
	return c
}

// pids of this PID namespace.
func (r *reaper) pids() ([]int, error) {
	d, err := os.Open(r.proc)
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
func (r *reaper) try(now time.Duration, pid int, spare func(id string) bool) error {
	// The name of the program comes first: it can be read without the
	// process's memory lock, which one in trouble may hold for ever.
	is, err := r.isQEMU(pid)
	if err != nil || !is {
		return err
	}
	// From here on the process cannot be mistaken for another: should it end
	// and its number be used again, the signal reaches nobody.
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return gone(err)
	}
	id, err := r.instance(pid)
	if err != nil || id == "" || spare(id) {
		return errors.Join(gone(err), unix.Close(fd))
	}
	r.dying[pid] = dying{Killed{Instance: id, PID: pid, At: now}, fd}
	return nil
}

func (r *reaper) isQEMU(pid int) (bool, error) {
	dir := filepath.Join(r.proc, strconv.Itoa(pid))
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
func (r *reaper) instance(pid int) (string, error) {
	f, err := os.Open(filepath.Join(r.proc, strconv.Itoa(pid), "cmdline"))
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
func (r *reaper) reap() (out []Killed, err error) {
	for deadline := time.Now().Add(goneWait); len(r.dying) > 0; {
		fds := make([]unix.PollFd, 0, len(r.dying))
		pids := make([]int, 0, len(r.dying))
		for pid, d := range r.dying {
			fds = append(fds, unix.PollFd{Fd: int32(d.pidfd), Events: unix.POLLIN})
			pids = append(pids, pid)
		}
		left := time.Until(deadline)
		if _, err := unix.Poll(fds, max(int(left.Milliseconds()), 0)); err != nil && !errors.Is(err, unix.EINTR) {
			return out, fmt.Errorf("poll: %w", err)
		}
		for i, fd := range fds {
			if fd.Revents&unix.POLLIN != 0 {
				out = append(out, r.dying[pids[i]].Killed)
				_ = unix.Close(r.dying[pids[i]].pidfd)
				delete(r.dying, pids[i])
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
