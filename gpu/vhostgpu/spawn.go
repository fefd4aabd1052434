package vhostgpu

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// WorkerProcess spawns basalt-worker. The process ends when the thread that called
// Spawn ends, so that must be the main thread: it is killed, or, once it serves the
// guest, told to end, so that it can tell the guest.
type WorkerProcess struct {
	Binary string // path of basalt-worker
	GPUD   string // gpud's socket
	VGPU   string // the vGPU that it serves
	// Token returns a descriptor from which one worker reads the vGPU's secret;
	// the spawner closes it. nil: there is no token, and gpud will refuse the
	// worker.
	Token func() (*os.File, error)
	// Cache is the cache of compiled code (gpu/worker/codecache) that all its workers
	// share; nil: none.
	Cache *os.File
	// Sandbox changes how a worker is started; nil: no change.
	Sandbox func(*syscall.SysProcAttr) *syscall.SysProcAttr
}

// Spawn implements Spawner.
func (p WorkerProcess) Spawn() (socket, pid int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, 0, fmt.Errorf("create carrier socket: %w", err)
	}
	defer func() { _ = unix.Close(pair[1]) }()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		_ = unix.Close(pair[0])
		return -1, 0, err
	}
	defer func() { _ = null.Close() }()
	args := []string{"basalt-worker", "--carrier-fd", "3", "--gpud", p.GPUD, "--vgpu", p.VGPU}
	files := []uintptr{null.Fd(), 2, 2, uintptr(pair[1])}
	if p.Token != nil {
		token, err := p.Token()
		if err != nil {
			_ = unix.Close(pair[0])
			return -1, 0, err
		}
		defer func() { _ = token.Close() }()
		args, files = append(args, "--token-fd", "4"), append(files, token.Fd())
	}
	if p.Cache != nil {
		args, files = append(args, "--cache-fd", strconv.Itoa(len(files))), append(files, p.Cache.Fd())
	}
	// Stopped processes with a group of their own are continued when this one ends.
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if p.Sandbox != nil {
		attr = p.Sandbox(attr)
	}
	pid, err = syscall.ForkExec(p.Binary, args, &syscall.ProcAttr{
		Env:   workerEnv(os.Environ()),
		Files: files,
		Sys:   attr,
	})
	if err != nil {
		_ = unix.Close(pair[0])
		return -1, 0, fmt.Errorf("start %s: %w", p.Binary, err)
	}
	return pair[0], pid, nil
}

// workerEnv returns env without the variables that are only for this process.
func workerEnv(env []string) (out []string) {
	for _, e := range env {
		if !strings.HasPrefix(e, "NOTIFY_SOCKET=") && !strings.HasPrefix(e, "LISTEN_") {
			out = append(out, e)
		}
	}
	return out
}
