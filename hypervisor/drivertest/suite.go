// Package drivertest checks a hypervisor driver against the contract of
// hypervisor.Driver. Its guest is a boot sector (guest.S), so that a real
// machine boots fast under software emulation too.
package drivertest

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed" // of the guest
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// Guest is the boot sector: it prints "ready\r\n", echoes its serial console,
// obeys the power button, and panics on '!'.
//
//go:generate ./guest.sh
//go:embed guest.bin
var Guest []byte

// Node is the node of the driver that Subject.Open returns.
const Node api.NodeID = "node-drivertest"

// Subject is a driver under test.
type Subject struct {
	Open func(t *testing.T) hypervisor.Driver
	// Kill makes the domain's QEMU die.
	Kill func(t *testing.T, d hypervisor.Driver, id api.InstanceID)
	// Panic makes the guest panic; nil: by writing '!' to its console.
	Panic func(t *testing.T, d hypervisor.Driver, id api.InstanceID)
	// Hold makes the guest keep every device that is detached, or release them
	// again; nil: by writing '<' or '>' to its console.
	Hold func(d hypervisor.Driver, id api.InstanceID, holds bool)
	// Slow is set if guests are real.
	Slow bool
	// Keep saves files that explain a failure of the domain; nil: its console log
	// suffices.
	Keep func(f failed.Folder, id api.InstanceID)
}

// enough is the time limit for a slow and busy machine. Nothing takes so long
// when all is well.
const enough = 2 * time.Minute

// Run runs the suite.
func (s Subject) Run(t *testing.T) {
	for _, c := range []struct {
		name string
		test func(*testing.T, *bench)
	}{
		{"Lifecycle", testLifecycle}, {"Load", testLoad}, {"Idempotent", testIdempotent}, {"Missing", testMissing}, {"Invalid", testInvalid},
		{"Redefine", testRedefine}, {"Console", testConsole}, {"Screen", testScreen}, {"Kill", testKill}, {"Panic", testPanic},
		{"Agent", testAgent}, {"Events", testEvents}, {"Stats", testStats}, {"Usage", testUsage}, {"Cancelled", testCancelled},
		{"AttachDisk", testAttachDisk}, {"AttachStopped", testAttachStopped}, {"DetachHeld", testDetachHeld}, {"NoRoom", testNoRoom},
		{"Resize", testResize}, {"QoS", testQoS}, {"Layers", testLayers}, {"Encrypted", testEncrypted}, {"NIC", testNIC}, {"Freeze", testFreeze}, {"Abilities", testAbilities}, {"Firmware", testFirmware}, {"HugePages", testHugePages}, {"Cells", testCells}, {"Windows", testWindows},
		{"Media", testMedia}, {"DiskFirst", testDiskFirst},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := patience.Context(t.Context(), 4*enough)
			t.Cleanup(cancel)
			c.test(t, &bench{Subject: s, Driver: s.Open(t), ctx: ctx})
		})
	}
}

// bench is a driver and the domains of one test.
type bench struct {
	Subject
	hypervisor.Driver
	ctx context.Context
}

// domain defines a new domain and removes it at the end of the test.
func (b *bench) domain(t *testing.T) hypervisor.Domain {
	t.Helper()
	// Paths of sockets must be short: not below t.TempDir().
	dir, err := os.MkdirTemp("", "basalt-hv-")
	if err != nil {
		t.Fatal(err)
	}
	disk := filepath.Join(dir, "disk.raw")
	if err := os.WriteFile(disk, append(bytes.Clone(Guest), make([]byte, 1<<20-len(Guest))...), 0o600); err != nil {
		t.Fatal(err)
	}
	raw := make([]byte, 6)
	if _, err := rand.Read(raw); err != nil {
		t.Fatal(err)
	}
	d := hypervisor.Domain{
		ID: api.InstanceID(fmt.Sprintf("ins-%x", raw)), Node: Node, Name: "drivertest <&>", VCPUs: 1, MemoryBytes: 64 << 20,
		Accelerator:  hypervisor.TCG,
		Disks:        []hypervisor.Disk{{Path: disk, Format: "raw", Serial: "root"}},
		SerialSocket: filepath.Join(dir, "serial.sock"), SerialLog: filepath.Join(dir, "console.log"),
		AgentSocket: filepath.Join(dir, "agent.sock"), VNCSocket: filepath.Join(dir, "vnc.sock"),
	}
	t.Cleanup(func() {
		ctx, cancel := patience.Context(context.Background(), enough)
		defer cancel()
		if err := errors.Join(b.Destroy(ctx, d.ID), b.Undefine(ctx, d.ID)); err != nil {
			t.Errorf("clean-up: %v", err)
		}
		_ = os.RemoveAll(dir)
	})
	failed.Keep(t, func(f failed.Folder) {
		f.Files(d.SerialLog)
		if b.Keep != nil {
			b.Keep(f, d.ID)
		}
	})
	if err := b.Define(b.ctx, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// boots returns how many boots the end of the console log contains: a real
// guest prints "ready", a fake one "booted".
func (b *bench) boots(id api.InstanceID) int {
	text, err := b.ConsoleLog(b.ctx, id, 4096)
	if err != nil {
		return 0
	}
	return bytes.Count(text, []byte("ready")) + bytes.Count(text, []byte("booted"))
}

// booted starts a domain and waits until its guest has booted.
func (b *bench) booted(t *testing.T) hypervisor.Domain {
	t.Helper()
	d := b.domain(t)
	if err := b.Start(b.ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	b.until(t, "the guest has booted", func() bool { return b.boots(d.ID) > 0 })
	return d
}

func (b *bench) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	patience.Until(t, enough, what, ok)
}

func (b *bench) untilState(t *testing.T, id api.InstanceID, want hypervisor.State) hypervisor.Status {
	t.Helper()
	var got hypervisor.Status
	b.until(t, fmt.Sprintf("%s is %s", id, want), func() bool {
		var err error
		got, err = b.Status(b.ctx, id)
		return err == nil && got.State == want
	})
	return got
}

func (b *bench) wantState(t *testing.T, id api.InstanceID, want hypervisor.State) {
	t.Helper()
	if got, err := b.Status(b.ctx, id); err != nil || got.State != want || got.ID != id {
		t.Errorf("Status of %s = %+v, %v, want %s", id, got, err, want)
	}
}

func wantCode(t *testing.T, what string, err error, code api.Code) {
	t.Helper()
	if err == nil || api.CodeOf(err) != code {
		t.Errorf("%s: error = %v, want code %s", what, err, code)
	}
}

// testLoad checks that a loaded domain has its QEMU and stays paused until it
// is started.
func testLoad(t *testing.T, b *bench) {
	d := b.domain(t)
	for _, step := range []struct {
		name string
		do   func(context.Context, api.InstanceID) error
		want hypervisor.State
	}{
		{"load", b.Load, hypervisor.Paused}, {"load again", b.Load, hypervisor.Paused},
		{"destroy", b.Destroy, hypervisor.Stopped}, {"load", b.Load, hypervisor.Paused},
	} {
		if err := step.do(b.ctx, d.ID); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if st, err := b.Status(b.ctx, d.ID); err != nil || st.State != step.want {
			t.Fatalf("%s: Status = %+v, %v, want %s", step.name, st, err, step.want)
		}
	}
	if text, err := b.ConsoleLog(b.ctx, d.ID, 4096); err != nil || len(text) > 0 {
		t.Errorf("console log of a paused guest = %q, %v, want none", text, err)
	}
	for range 2 {
		if err := b.Resume(b.ctx, d.ID); err != nil {
			t.Fatal(err)
		}
	}
	b.until(t, "the guest has booted", func() bool {
		text, err := b.ConsoleLog(b.ctx, d.ID, 4096)
		return err == nil && len(text) > 0
	})
	if err := b.Load(b.ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	if st, err := b.Status(b.ctx, d.ID); err != nil || st.State != hypervisor.Running {
		t.Errorf("Status after Load of a running domain = %+v, %v, want Running", st, err)
	}
	if err := b.Destroy(b.ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.Resume(b.ctx, d.ID); api.CodeOf(err) != api.CodeState {
		t.Errorf("Resume without a QEMU = %v, want wrong_state", err)
	}
}

func testLifecycle(t *testing.T, b *bench) {
	d := b.domain(t)
	b.wantState(t, d.ID, hypervisor.Stopped)
	if err := b.Start(b.ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	b.wantState(t, d.ID, hypervisor.Running)
	b.until(t, "the guest has booted", func() bool {
		text, _ := b.ConsoleLog(b.ctx, d.ID, 4096)
		return len(text) > 0
	})
	wantCode(t, "undefine of a running domain", b.Undefine(b.ctx, d.ID), api.CodeState)
	// The guest polls its power button and may notice it late.
	b.until(t, "the guest has shut down", func() bool {
		if err := b.Shutdown(b.ctx, d.ID); err != nil {
			t.Fatal(err)
		}
		st, err := b.Status(b.ctx, d.ID)
		return err == nil && st.State == hypervisor.Stopped
	})
	if err := b.Start(b.ctx, d.ID); err != nil {
		t.Fatalf("second start: %v", err)
	}
	if err := b.Destroy(b.ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	b.wantState(t, d.ID, hypervisor.Stopped)
	if text, err := b.ConsoleLog(b.ctx, d.ID, 1<<20); err != nil || len(text) == 0 {
		t.Errorf("ConsoleLog of a stopped domain = %q, %v, want some output", text, err)
	}
	if err := b.Undefine(b.ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	b.wantState(t, d.ID, hypervisor.Missing)
}

func testIdempotent(t *testing.T, b *bench) {
	d := b.domain(t)
	for range 2 {
		if err := b.Define(b.ctx, d); err != nil {
			t.Errorf("Define of an existing domain: %v", err)
		}
	}
	for _, verb := range []struct {
		name string
		do   func(context.Context, api.InstanceID) error
		then hypervisor.State
	}{
		{"shutdown", b.Shutdown, hypervisor.Stopped}, {"destroy", b.Destroy, hypervisor.Stopped},
		{"start", b.Start, hypervisor.Running}, {"destroy", b.Destroy, hypervisor.Stopped},
		{"undefine", b.Undefine, hypervisor.Missing}, {"shutdown", b.Shutdown, hypervisor.Missing},
		{"destroy", b.Destroy, hypervisor.Missing},
	} {
		for range 2 {
			if err := verb.do(b.ctx, d.ID); err != nil {
				t.Errorf("%s: %v", verb.name, err)
			}
			b.wantState(t, d.ID, verb.then)
		}
	}
}

func testMissing(t *testing.T, b *bench) {
	const id = "ins-000000000000"
	b.wantState(t, id, hypervisor.Missing)
	wantCode(t, "start", b.Start(b.ctx, id), api.CodeNotFound)
	_, err := b.Console(b.ctx, id)
	wantCode(t, "console", err, api.CodeNotFound)
	_, err = b.Screen(b.ctx, id)
	wantCode(t, "screen", err, api.CodeNotFound)
	_, err = b.ConsoleLog(b.ctx, id, 1)
	wantCode(t, "console log", err, api.CodeNotFound)
	wantCode(t, "agent", b.AgentPing(b.ctx, id), api.CodeNotFound)
	_, err = b.Stats(b.ctx, id)
	wantCode(t, "stats", err, api.CodeNotFound)
}

func testInvalid(t *testing.T, b *bench) {
	d := b.domain(t)
	d.VCPUs = 0
	wantCode(t, "define", b.Define(b.ctx, d), api.CodeInvalid)
	_, err := b.AgentExec(b.ctx, d.ID, hypervisor.Exec{})
	wantCode(t, "exec without a program", err, api.CodeInvalid)
	_, err = b.AgentExec(b.ctx, d.ID, hypervisor.Exec{Argv: []string{"a\x00b"}})
	wantCode(t, "exec with a zero", err, api.CodeInvalid)
	_, err = b.Console(b.ctx, d.ID)
	wantCode(t, "console of a stopped domain", err, api.CodeState)
	_, err = b.Stats(b.ctx, d.ID)
	wantCode(t, "stats of a stopped domain", err, api.CodeState)
	wantCode(t, "agent of a stopped domain", b.AgentPing(b.ctx, d.ID), api.CodeState)
}

// testRedefine checks that a change of a running domain takes effect at its
// next start.
func testRedefine(t *testing.T, b *bench) {
	d := b.domain(t)
	if err := b.Start(b.ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	d.MemoryBytes = 96 << 20
	if err := b.Define(b.ctx, d); err != nil {
		t.Fatalf("Define of a running domain: %v", err)
	}
	b.wantState(t, d.ID, hypervisor.Running)
	all, err := b.List(b.ctx)
	if err != nil || len(all) != 1 || all[0].ID != d.ID || all[0].State != hypervisor.Running {
		t.Errorf("List = %+v, %v, want %s running", all, err, d.ID)
	}
	if err := errors.Join(b.Destroy(b.ctx, d.ID), b.Start(b.ctx, d.ID)); err != nil {
		t.Errorf("restart with the changed definition: %v", err)
	}
}

func testConsole(t *testing.T, b *bench) {
	d := b.booted(t)
	c, err := b.Console(b.ctx, d.ID)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Console(b.ctx, d.ID)
	wantCode(t, "second holder", err, api.CodeInUse)
	said := make(chan string)
	go func() {
		var got strings.Builder
		buf := make([]byte, 64)
		for !strings.Contains(got.String(), "hello") {
			n, err := c.Read(buf)
			got.Write(buf[:n])
			if err != nil {
				break
			}
		}
		said <- got.String()
	}()
	if _, err := io.WriteString(c, "hello"); err != nil {
		t.Fatal(err)
	}
	if text := patience.Receive(t, enough, "the console answers", said); !strings.Contains(text, "hello") {
		t.Errorf("the console printed %q, want hello", text)
	}
	b.until(t, "the console log contains the output", func() bool {
		text, err := b.ConsoleLog(b.ctx, d.ID, 5)
		return err == nil && string(text) == "hello"
	})
	if err := c.Close(); err != nil {
		t.Errorf("close the console: %v", err)
	}
	c, err = b.Console(b.ctx, d.ID)
	if err != nil {
		t.Fatalf("Console after the first holder has closed it: %v", err)
	}
	if err := b.Destroy(b.ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, c); err != nil {
		t.Errorf("read the console of a destroyed domain: %v, want EOF", err)
	}
	_ = c.Close()
}

func testKill(t *testing.T, b *bench) {
	d := b.booted(t)
	b.Kill(t, b.Driver, d.ID)
	if st := b.untilState(t, d.ID, hypervisor.Crashed); st.Reason == "" {
		t.Errorf("Status of a crashed domain = %+v, want a reason", st)
	}
	if err := b.Start(b.ctx, d.ID); err != nil {
		t.Errorf("start after a crash: %v", err)
	}
	b.wantState(t, d.ID, hypervisor.Running)
}

func testPanic(t *testing.T, b *bench) {
	d := b.booted(t)
	if b.Panic != nil {
		b.Panic(t, b.Driver, d.ID)
	} else {
		c, err := b.Console(b.ctx, d.ID)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "!"); err != nil {
			t.Fatal(err)
		}
	}
	b.untilState(t, d.ID, hypervisor.Crashed)
	if err := b.Undefine(b.ctx, d.ID); err != nil {
		t.Errorf("undefine after a crash: %v", err)
	}
}

// testAgent checks the guest agent. The boot sector has none; the fake's boot
// may be slow.
func testAgent(t *testing.T, b *bench) {
	d := b.domain(t)
	if err := b.Start(b.ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	if !b.Slow {
		if err := b.AgentPing(b.ctx, d.ID); err != nil {
			t.Errorf("AgentPing: %v", err)
		}
		if r, err := b.AgentExec(b.ctx, d.ID, hypervisor.Exec{Argv: []string{"true"}}); err != nil || r.ExitCode != 0 {
			t.Errorf("AgentExec of true = %+v, %v, want exit code 0", r, err)
		}
		return
	}
	wantCode(t, "ping of a guest without an agent", b.AgentPing(b.ctx, d.ID), api.CodeUnavailable)
	_, err := b.AgentExec(b.ctx, d.ID, hypervisor.Exec{Argv: []string{"true"}})
	wantCode(t, "exec in a guest without an agent", err, api.CodeUnavailable)
}

func testEvents(t *testing.T, b *bench) {
	ctx, cancel := context.WithCancel(b.ctx)
	events, err := b.Events(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if e := <-events; e.Type != hypervisor.EventResync || e.ID != "" {
		t.Errorf("first event = %+v, want a Resync", e)
	}
	d := b.booted(t)
	b.expect(t, events, d.ID, hypervisor.EventDefined)
	b.expect(t, events, d.ID, hypervisor.EventStarted)
	b.Kill(t, b.Driver, d.ID)
	b.expect(t, events, d.ID, hypervisor.EventCrashed)
	if err := errors.Join(b.Start(b.ctx, d.ID), b.Destroy(b.ctx, d.ID), b.Undefine(b.ctx, d.ID)); err != nil {
		t.Fatal(err)
	}
	b.expect(t, events, d.ID, hypervisor.EventStarted)
	b.expect(t, events, d.ID, hypervisor.EventStopped)
	b.expect(t, events, d.ID, hypervisor.EventUndefined)
	cancel()
	b.until(t, "the channel is closed", func() bool {
		select {
		case _, open := <-events:
			return !open
		default:
			return false
		}
	})
}

// expect skips events until the wanted one.
func (b *bench) expect(t *testing.T, events <-chan hypervisor.Event, id api.InstanceID, want hypervisor.EventType) {
	t.Helper()
	late, cancel := patience.Context(context.Background(), enough)
	defer cancel()
	for {
		select {
		case e, open := <-events:
			if !open {
				t.Fatalf("the event channel was closed before event %s of %s", want, id)
			}
			if e.ID == id && e.Type == want {
				return
			}
		case <-late.Done():
			t.Fatalf("no event %s of %s within %v", want, id, enough)
		}
	}
}

func testStats(t *testing.T, b *bench) {
	d := b.booted(t)
	s, err := b.Stats(b.ctx, d.ID)
	if err != nil {
		t.Fatal(err)
	}
	if s.QMPStatus != "running" || len(s.Disks) != 1 || s.Disks[0].Serial != "root" {
		t.Errorf("Stats = %+v, want status running and the disk root", s)
	}
	if b.Slow && s.Disks[0].ReadBytes < 512 {
		t.Errorf("disk statistics of a booted guest = %+v, want at least 512 bytes read", s.Disks[0])
	}
	info, err := b.Info(b.ctx)
	if err != nil || info.Libvirt == "" || info.QEMU == "" || info.VCPUs < 1 || info.Memory < 1<<20 {
		t.Errorf("Info = %+v, %v, want versions, CPUs and memory", info, err)
	}
}

func testCancelled(t *testing.T, b *bench) {
	d := b.domain(t)
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	if err := b.Start(ctx, d.ID); !errors.Is(err, context.Canceled) {
		t.Errorf("Start with a canceled context = %v, want context.Canceled", err)
	}
	if _, err := b.List(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("List with a canceled context = %v, want context.Canceled", err)
	}
	b.wantState(t, d.ID, hypervisor.Stopped)
}
