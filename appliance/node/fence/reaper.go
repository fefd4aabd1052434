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

// SweepResult is the result of a sweep: Gone have ended since the last one, Dying
// were sent SIGKILL and have not ended. Only if Dying is empty and Err is nil
// nothing is left.
type SweepResult struct {
	Gone, Dying []Killed
	Err         error
	Unwritten   error // error of writing the file of killed processes
}

// sweep is a request to the reaper.
type sweep struct {
	began  time.Duration
	spare  func(id string) bool
	dryRun bool // do not kill: what would be killed is returned as Dying
}

const (
	// goneWait is how long a sweep waits for the processes that it killed.
	goneWait = 100 * time.Millisecond
	// maxCmdline is the part of a QEMU's command line that is read; libvirt writes
	// -name near its start.
	maxCmdline = 256 << 10
)

// reaper finds and kills instances' processes. One goroutine owns it.
type reaper struct {
	proc    string // "/proc"
	kill    func(pidfd int) error
	dying   map[int]dying // by PID
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

// run performs a sweep over every QEMU of an instance that is not spared.
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
	if len(marked) > 0 && !o.dryRun {
		c.Unwritten = r.killLog.add(marked)
	}
	// Sent in every sweep: a signal that failed may succeed.
	for pid, d := range r.dying {
		if o.dryRun {
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

// pids returns the PIDs of this PID namespace.
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

// try adds a process to the dying if it is to be killed.
func (r *reaper) try(now time.Duration, pid int, spare func(id string) bool) error {
	// The program's name is checked first: it can be read without the process's
	// memory lock, which a stuck process may hold for ever.
	is, err := r.isQEMU(pid)
	if err != nil || !is {
		return err
	}
	// From here on the process cannot be mistaken for another: if it ends and its
	// PID is reused, the signal is not delivered.
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
	if gone(err) == nil { // also true of kernel threads and zombies
		return false, nil
	}
	// Access is denied. Only for a QEMU is this worth the reset of a machine.
	comm, cerr := os.ReadFile(filepath.Join(dir, "comm"))
	if cerr == nil && bytes.HasPrefix(comm, []byte("qemu-")) {
		return false, err
	}
	return false, nil
}

// instance returns the instance of a QEMU, or "" if it is not one of Basalt's.
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

// instanceOf returns the ID in `-name guest=basalt-ID,…` of a command line, or "".
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

// reap waits up to goneWait for the dying and returns those that have ended, with
// all of their threads.
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

// gone returns nil for the errors of a process that has ended, and other errors
// unchanged.
func gone(err error) error {
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
