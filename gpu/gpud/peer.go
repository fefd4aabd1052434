package gpud

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/sched"
)

// peer identifies the process at the other end of a unix socket.
type peer struct {
	uid, pid int // pid 0: not visible from this PID namespace
	confined bool
}

func peerOf(conn net.Conn) (p peer, ok bool) {
	u, isUnix := conn.(*net.UnixConn)
	if !isUnix {
		return p, false
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return p, false
	}
	var cred *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); cerr != nil || err != nil {
		return p, false
	}
	p = peer{uid: int(cred.Uid), pid: int(cred.Pid)}
	p.confined = p.pid != 0 && noNewPrivs(strconv.Itoa(p.pid)) && !noNewPrivs("self")
	return p, true
}

// mayControl reports whether the peer may use the control API. A worker, which
// may be compromised, may only use the worker stream. It runs as another user, or
// at least has set no_new_privs, irrevocably and for its children.
func (p peer) mayControl() bool { return (p.uid == 0 || p.uid == os.Geteuid()) && !p.confined }

// noNewPrivs reports whether the process has set PR_SET_NO_NEW_PRIVS; it returns
// true when that cannot be determined.
func noNewPrivs(pid string) bool {
	b, err := os.ReadFile("/proc/" + pid + "/status")
	return err != nil || !bytes.Contains(b, []byte("\nNoNewPrivs:\t0\n"))
}

type peerKey struct{}

func withPeer(ctx context.Context, conn net.Conn) context.Context {
	if p, ok := peerOf(conn); ok {
		return context.WithValue(ctx, peerKey{}, p)
	}
	return ctx
}

// terminating is a worker that has been told to exit, with its deadline.
type terminating struct {
	link    *link
	pidfd   int // a duplicate; -1: no process that may be killed
	at      sched.Time
	session *session // the worker may live if it is in this session again; nil: it may not
}

// scheduleKill gives the worker at the other end of the link until at to end its process.
// It is not enough that it closes its connection: it may hold memory of the card.
func (c *core) scheduleKill(l *link, at sched.Time) {
	d := terminating{link: l, pidfd: -1, at: at}
	if l.pidfd >= 0 {
		if fd, err := unix.FcntlInt(uintptr(l.pidfd), unix.F_DUPFD_CLOEXEC, 0); err == nil {
			d.pidfd = fd
		}
	}
	c.terminating = append(c.terminating, d)
}

// awaitReturn records that the worker's connection has ended, with or without a bye.
// The process must end or reconnect, or it is killed: without a session it could
// go on using the card without leases and unmetered.
func (c *core) awaitReturn(l *link, s *session, at sched.Time) {
	if l.pidfd < 0 {
		return
	}
	for _, d := range c.terminating { // watch a worker that reconnects repeatedly only once
		if d.link.pid == l.pid && d.pidfd >= 0 && !exited(d.pidfd) {
			return
		}
	}
	c.scheduleKill(l, at+c.cfg.ReturnAfter)
	c.terminating[len(c.terminating)-1].session = s
}

// back reports whether the process has reconnected to its session.
func (d terminating) back() bool {
	s := d.session
	return s != nil && s.state == live && s.link != nil && s.link.pid == d.link.pid
}

// enforce reports whether the worker needs no more attention, and kills it when its
// time is up.
func (d terminating) enforce(c *core, at sched.Time) bool {
	if d.pidfd < 0 {
		if at < d.at && !d.link.closed() {
			return false
		}
		d.link.close()
		return true
	}
	if !exited(d.pidfd) {
		if at < d.at {
			return false
		}
		if !d.back() {
			c.cfg.Log.Warn("killing worker without session that did not exit", "pid", d.link.pid, "error", unix.PidfdSendSignal(d.pidfd, unix.SIGKILL, nil, 0))
		}
	} else if s := d.session; s != nil && s.state == detached && s.host == d.link.host {
		c.end(s, at) // it cannot reconnect
	}
	d.link.close()
	_ = unix.Close(d.pidfd)
	return true
}

// process identifies a process beyond its PID. It is stored on disk with its
// session, so that a worker that does not reconnect to the next gpud is killed
// too.
type process struct {
	PID     int    `json:"pid"`
	Started uint64 `json:"started"` // clock ticks after boot
}

func processOf(pid int) process {
	if pid <= 1 || pid == os.Getpid() {
		return process{}
	}
	started, err := startTime(pid)
	if err != nil {
		return process{}
	}
	return process{pid, started}
}

// kill ends the process if it still runs; killed reports whether it did.
func (p process) kill() (killed bool, err error) {
	if p.PID <= 1 {
		return false, nil
	}
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	if processOf(p.PID) != p { // the PID was reused
		return false, nil
	}
	return true, unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
}

// gone reports whether the process is known to have ended.
func (p process) gone() bool {
	if p.PID <= 1 {
		return false
	}
	started, err := startTime(p.PID)
	return errors.Is(err, os.ErrNotExist) || err == nil && started != p.Started
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
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat has an unexpected format", pid)
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("parse start time in /proc/%d/stat: %w", pid, err)
	}
	return start, nil
}

// exited reports whether the process has ended: its pidfd becomes readable then.
func exited(pidfd int) bool {
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1
}
