package node

import (
	"context"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/sched"
)

// peer is the process at the other end of a unix socket.
type peer struct {
	uid, pid int // pid 0: not visible from here
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
	return peer{uid: int(cred.Uid), pid: int(cred.Pid)}, true
}

// mayControl says whether the peer may use the control API: a worker, which
// may be compromised, runs as another user and may only use the worker stream.
func (p peer) mayControl() bool { return p.uid == 0 || p.uid == os.Geteuid() }

type peerKey struct{}

func withPeer(ctx context.Context, conn net.Conn) context.Context {
	if p, ok := peerOf(conn); ok {
		return context.WithValue(ctx, peerKey{}, p)
	}
	return ctx
}

// doomed is a worker that was told to end, and until when it may take.
type doomed struct {
	link  *link
	pidfd int // a duplicate; -1: no process that may be killed
	at    sched.Time
}

// doom gives the worker at the end of the link until at to end its process.
// That it closes its connection is not enough: it may hold memory of the card.
func (c *core) doom(l *link, at sched.Time) {
	d := doomed{link: l, pidfd: -1, at: at}
	if l.pidfd >= 0 {
		if fd, err := unix.FcntlInt(uintptr(l.pidfd), unix.F_DUPFD_CLOEXEC, 0); err == nil {
			d.pidfd = fd
		}
	}
	c.doomed = append(c.doomed, d)
}

// enforce says whether the worker is done with, and kills it when its time is up.
func (d doomed) enforce(c *core, at sched.Time) bool {
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
		c.cfg.Log.Warn("killing a worker that was told to end and did not", "error", unix.PidfdSendSignal(d.pidfd, unix.SIGKILL, nil, 0))
	}
	d.link.close()
	_ = unix.Close(d.pidfd)
	return true
}

// exited: a pidfd becomes readable when its process has ended.
func exited(pidfd int) bool {
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1
}
