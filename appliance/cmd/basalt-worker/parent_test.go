package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker/guesttest"
)

// parent starts a worker as basalt-vgpu does, with the carrier that it was given, prints its
// process ID, and waits.
func parent(worker string) int {
	runtime.LockOSThread()
	cmd := exec.Command(worker, "--carrier-fd", "3", "--standalone-limits", "vram=64MiB,name=Test", "--driver", "fake")
	cmd.ExtraFiles = []*os.File{os.NewFile(3, "carrier")}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(cmd.Process.Pid)
	_ = cmd.Wait()
	return 1
}

// grandchild starts a worker in a process of its own.
func grandchild(t *testing.T) (parent *exec.Cmd, worker int, g *guesttest.Guest) {
	t.Helper()
	a, b, err := guesttest.Pair()
	if err != nil {
		t.Fatal(err)
	}
	f, err := b.File()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "parent", build(t))
	cmd.ExtraFiles = []*os.File{f}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // as the node's agent starts it
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = a.Close() })
	f.Close()
	b.Close()
	buf := make([]byte, 32)
	n, _ := out.Read(buf)
	if worker, err = strconv.Atoi(strings.TrimSpace(string(buf[:n]))); err != nil {
		t.Fatal(err)
	}
	if g, err = guesttest.Dial(a, 0); err != nil {
		t.Fatal(err)
	}
	return cmd, worker, g
}

// running reports whether a process exists and is not a zombie.
func running(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(b), ") Z ")
}

// stopped reports whether all threads of a process have stopped.
func stopped(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, f := range threads {
		if b, err := os.ReadFile(f); err != nil || !strings.Contains(string(b), ") T ") {
			return false
		}
	}
	return len(threads) > 0
}

// When the process that has started a worker is killed, the guest learns of it at once, and the
// worker ends, while it works and if it was stopped.
func TestKilledParentOfAWorker(t *testing.T) {
	states := map[string]func(g *guesttest.Guest, worker int) error{
		"stopped": func(_ *guesttest.Guest, worker int) error {
			err := syscall.Kill(worker, syscall.SIGSTOP)
			patience.Until(t, 10*time.Second, "the worker is stopped", func() bool { return stopped(worker) })
			return err
		},
	}
	for _, name := range []string{"idle", "full ring of kernels that take long", "a waiter asleep"} {
		states[name] = func(g *guesttest.Guest, _ int) error { return leaving[name](g) }
	}
	for name, before := range states {
		t.Run(name, func(t *testing.T) {
			parent, worker, g := grandchild(t)
			if err := before(g, worker); err != nil {
				t.Fatal(err)
			}
			if err := parent.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = parent.Wait()
			patience.Until(t, time.Second, "the guest learns that its worker ends", func() bool { return g.Shm.Load32(abi.OffState) == abi.StateDead })
			patience.Until(t, 10*time.Second, "the worker ends", func() bool { return !running(worker) })
			var dead *guesttest.ErrDead
			if err := g.Dead(); !errors.As(err, &dead) || dead.Result != abi.ErrUnavailable {
				t.Errorf("error of the session = %v, want %v", err, abi.ErrUnavailable)
			}
		})
	}
}
