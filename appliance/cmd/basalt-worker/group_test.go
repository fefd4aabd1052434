package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/gpud/cgroup"
	"github.com/basalt-gpu/basalt/gpu/worker/guesttest"
)

// group creates a control group and returns a function that adds a worker to it.
func group(t *testing.T, bytes int64) (join func(*exec.Cmd)) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("host: control groups need root")
	}
	g, err := cgroup.Open()
	if err != nil {
		t.Skipf("host: %v", err)
	}
	id := fmt.Sprintf("worker-test-%d", os.Getpid())
	dirs, err := g.Ensure(id, cgroup.Limits{MemoryBytes: bytes, PIDs: 1000, MilliCPUs: 2000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		patience.Until(t, 20*time.Second, "the group is removed", func() bool { return g.Remove(id) == nil })
	})
	return func(cmd *exec.Cmd) {
		for _, dir := range dirs {
			if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// fill allocates that much VRAM, which a soft GPU takes from the host's memory, and starts to
// write to all of it.
func fill(g *guesttest.Guest, bytes uint64) error {
	address, _, err := g.Call(abi.OpMemAlloc, abi.MemAlloc{Ctx: 1, Size: bytes}, nil)
	if err != nil {
		return err
	}
	return g.Send(abi.OpMemset, abi.Memset{Stream: 2, Dst: address, Value: 7, Width: 4, Count: bytes / 4}, nil)
}

// filled waits until the write has completed.
func filled(g *guesttest.Guest) error {
	_, _, err := g.Call(abi.OpStreamSynchronize, abi.StreamSynchronize{Stream: 2}, nil)
	return err
}

// TestOutOfMemoryKillsOneWorker: a worker that uses more of the host's memory than its vGPU
// may is killed alone. Its session gets an error, and another one of the same vGPU continues.
func TestOutOfMemoryKillsOneWorker(t *testing.T) {
	join, bin := group(t, 256<<20), build(t)
	var guests [2]*guesttest.Guest
	var ends [2]chan error
	for i := range guests {
		cmd, g, ended := startWith(t, bin, "soft", "1GiB")
		join(cmd)
		guests[i], ends[i] = g, ended
		for _, c := range []struct {
			op abi.Op
			a  guesttest.Args
		}{{abi.OpCtxCreate, abi.CtxCreate{Ctx: 1}}, {abi.OpStreamCreate, abi.StreamCreate{Ctx: 1, Stream: 2}}} {
			if _, _, err := g.Call(c.op, c.a, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(fill(g, 16<<20), filled(g)); err != nil {
			t.Fatal(err)
		}
	}
	if err := fill(guests[0], 768<<20); err != nil {
		t.Fatal(err)
	}
	if err := wait(t, ends[0]); err == nil {
		t.Error("worker that exceeded the limit ended without an error, want it killed")
	}
	if m, err := guests[0].Receive(); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("session of the killed worker: got %+v, error %v, want EOF or ECONNRESET", m, err)
	}
	if err := errors.Join(fill(guests[1], 16<<20), filled(guests[1])); err != nil {
		t.Errorf("other session after the kill: %v", err)
	}
}
