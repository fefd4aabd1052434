package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker/guesttest"
)

// build builds the worker with the fake driver.
func build(t testing.TB) string {
	t.Helper()
	return built.Program(t, "appliance/cmd/basalt-worker", "basalt_fake")
}

// start starts a worker and a session in it.
func start(t testing.TB, bin, driver string) (*exec.Cmd, *guesttest.Guest, chan error) {
	t.Helper()
	return startWith(t, bin, driver, "64MiB")
}

// startWith starts a worker and a session with that much VRAM.
func startWith(t testing.TB, bin, driver, vram string) (*exec.Cmd, *guesttest.Guest, chan error) {
	t.Helper()
	cmd, a, ended := startProcess(t, bin, driver, vram)
	g, err := guesttest.Dial(a, 0)
	if err != nil {
		t.Fatal(err)
	}
	return cmd, g, ended
}

// startProcess starts a worker without a handshake.
func startProcess(t testing.TB, bin, driver, vram string) (*exec.Cmd, *net.UnixConn, chan error) {
	t.Helper()
	a, b, err := guesttest.Pair()
	if err != nil {
		t.Fatal(err)
	}
	f, err := b.File()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "--carrier-fd", "3", "--standalone-limits", "vram="+vram+",name=Test", "--driver", driver)
	cmd.ExtraFiles = []*os.File{f}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	b.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); a.Close() })
	return cmd, a, ended
}

func wait(t testing.TB, ended chan error) error {
	t.Helper()
	return patience.Receive(t, 30*time.Second, "the worker ends", ended)
}

func TestWorkerServesGuest(t *testing.T) {
	cmd, g, ended := start(t, build(t), "fake")
	if _, _, err := g.Call(abi.OpCtxCreate, abi.CtxCreate{Ctx: 1}, nil); err != nil {
		t.Fatal(err)
	}
	n, _, err := g.Call(abi.OpDeviceInfo, abi.DeviceInfo{OutOff: g.Arena, OutLen: 4096}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := abi.DecodeDeviceInfoReply(g.Shm.Bytes(g.Arena, n)); err != nil || info.Name != "Test" || info.TotalMemory != 64<<20 {
		t.Errorf("device info = %+v, error %v, want Test with 64 MiB", info, err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"NoNewPrivs:\t1", "CapEff:\t0000000000000000"} {
		if !strings.Contains(string(status), want) {
			t.Errorf("status of the worker does not contain %q:\n%s", want, status)
		}
	}
	g.Close()
	if err := wait(t, ended); err != nil {
		t.Errorf("worker ended with %v after the guest closed the session, want no error", err)
	}
}

func TestKilledWorkerLeavesAClosedCarrier(t *testing.T) {
	cmd, g, ended := start(t, build(t), "fake")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if m, err := g.Receive(); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("Receive after the worker was killed = %+v, error %v, want EOF or ECONNRESET", m, err)
	}
	_ = wait(t, ended)
}

func TestTerminatedWorkerNotifiesGuest(t *testing.T) {
	cmd, g, ended := start(t, build(t), "fake")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := wait(t, ended); err != nil {
		t.Errorf("worker ended with %v after SIGTERM, want no error", err)
	}
	var dead *guesttest.ErrDead
	if err := g.Dead(); !errors.As(err, &dead) || dead.Result != abi.ErrUnavailable {
		t.Errorf("error of the session after SIGTERM = %v, want %v", err, abi.ErrUnavailable)
	}
}

func TestWorkerRefusesGuest(t *testing.T) {
	_, g, ended := start(t, build(t), "fake")
	g.Shm.Store64(abi.OffHead, 12345) // not a multiple of 8
	if err := g.Kick(); err != nil {
		t.Fatal(err)
	}
	if err := wait(t, ended); err == nil {
		t.Error("worker ended without an error after an invalid ring head, want one")
	}
	var dead *guesttest.ErrDead
	if err := g.Dead(); !errors.As(err, &dead) || dead.Result != abi.ErrIllegalState || !strings.Contains(dead.Text, "ring head") {
		t.Errorf("error of the session = %v, want IllegalState for the ring head", err)
	}
}

const endless = `.version 6.0
.target sm_50
.address_size 64
.visible .entry endless()
{
LOOP:
	bra LOOP;
}
`

// TestEndlessKernelEndsWithItsGuest: a kernel that never ends is ended with its guest, and by
// SIGTERM.
func TestEndlessKernelEndsWithItsGuest(t *testing.T) {
	bin := build(t)
	for name, end := range map[string]func(*exec.Cmd, *guesttest.Guest){
		"guest gone": func(_ *exec.Cmd, g *guesttest.Guest) { g.Close() },
		"SIGTERM":    func(c *exec.Cmd, _ *guesttest.Guest) { _ = c.Process.Signal(syscall.SIGTERM) },
	} {
		cmd, g, ended := start(t, bin, "soft")
		copy(g.Shm.Bytes(g.Arena, g.Layout.ChunkSize), endless)
		const ctx, module, function = 1, 2, 3
		_, _, err := g.Call(abi.OpCtxCreate, abi.CtxCreate{Ctx: ctx}, nil)
		if err == nil {
			_, _, err = g.Call(abi.OpModuleLoad, abi.ModuleLoad{
				Ctx: ctx, Module: module, FirstFunction: function, ImageOff: g.Arena, ImageLen: uint64(len(endless)),
				OutOff: g.Arena + g.Layout.ChunkSize, OutLen: g.Layout.ChunkSize,
			}, nil)
		}
		if err == nil {
			err = g.Send(abi.OpLaunch, abi.Launch{Stream: ctx, Function: function, GridX: 4, GridY: 1, GridZ: 1, BlockX: 32, BlockY: 1, BlockZ: 1}, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := g.Call(abi.OpStreamQuery, abi.StreamQuery{Stream: ctx}, nil); !errors.Is(err, abi.ErrNotReady) {
			t.Fatalf("%s: query of the stream = %v, want NotReady", name, err)
		}
		begin := time.Now()
		end(cmd, g)
		_ = wait(t, ended)
		t.Logf("%s: ended after %v", name, time.Since(begin))
	}
}

func TestOptions(t *testing.T) {
	for _, bad := range [][]string{
		{}, {"--vgpu", "a"}, {"--gpud", "s"}, {"--vgpu", "a", "--gpud", "s", "more"},
		{"--standalone-limits", "vram=many"}, {"--standalone-limits", "name=x"}, {"--standalone-limits", "vram=1GiB,x=1"},
		{"--standalone-limits", "vram=99999999999GiB"},
	} {
		if o, err := parse(bad, io.Discard); err == nil {
			t.Errorf("parse(%q) = %+v, want an error", bad, o)
		}
	}
	o, err := parse([]string{"--standalone-limits", "vram=3MiB,name=a b"}, io.Discard)
	if err != nil || o.limits.VRAM != 3<<20 || o.limits.Name != "a b" || o.driver != "soft" || o.carrier != 3 {
		t.Errorf("parse = %+v, error %v, want 3 MiB, name \"a b\" and the defaults", o, err)
	}
}
