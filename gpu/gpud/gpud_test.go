package gpud_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/gpud"
	"github.com/basalt-gpu/basalt/gpu/gpud/client"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

const gib = 1 << 30

var _ worker.Host = (*client.Host)(nil)

// testNode runs a gpud with one soft GPU of 8 GiB in this process.
type testNode struct {
	t       testing.TB
	cfg     gpud.Config
	control *client.Control
	stop    func()
	tokens  map[string]string // of the vGPUs created with put
}

func newTestNode(t testing.TB) *testNode {
	dir := t.TempDir()
	n := &testNode{t: t, tokens: map[string]string{}, cfg: gpud.Config{
		StateDir: filepath.Join(dir, "state"), Socket: filepath.Join(dir, "s"), NoNVIDIA: true,
		SoftGPUs: []gpud.SoftGPU{{Name: "soft0", VRAM: 8 * gib, SMs: 4}}, Log: testLog(t),
	}}
	n.control = client.NewControl(n.cfg.Socket)
	t.Cleanup(n.control.Close)
	n.start()
	t.Cleanup(func() { n.stop() })
	return n
}

func testLog(t testing.TB) *slog.Logger {
	if testing.Verbose() {
		return slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	return slog.New(slog.NewTextHandler(io.Discard, nil))
}

func (n *testNode) start() {
	n.t.Helper()
	g, err := gpud.New(n.cfg)
	if err != nil {
		n.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- g.Run(ctx) }()
	n.stop = func() {
		cancel()
		if err := errors.Join(<-ran, g.Close()); err != nil {
			n.t.Error(err)
		}
		n.stop = func() {}
	}
}

func (n *testNode) put(id string, vram uint64, share int) wire.VGPU {
	n.t.Helper()
	v, err := n.control.PutVGPU(n.t.Context(), id, wire.VGPUSpec{GPU: "soft0", Name: "vGPU " + id, VRAMBytes: vram, SharePercent: share})
	if err != nil {
		n.t.Fatal(err)
	}
	n.tokens[id] = v.Token
	return v
}

func (n *testNode) dial(vgpu string) *client.Host {
	n.t.Helper()
	return n.dialAt(n.cfg.Socket, vgpu)
}

func (n *testNode) dialAt(socket, vgpu string) *client.Host {
	n.t.Helper()
	h, err := client.DialWorker(n.t.Context(), socket, vgpu, client.Options{Token: n.tokens[vgpu], PID: 42, Name: "matmul", Log: n.cfg.Log})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = h.Close() })
	return h
}

func (n *testNode) vgpu(id string) wire.VGPU {
	n.t.Helper()
	all, err := n.control.VGPUsAndDeleted(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	for _, v := range all {
		if v.ID == id {
			return v
		}
	}
	n.t.Fatalf("VGPUs = %v, want %s among them", all, id)
	return wire.VGPU{}
}

// eventually waits for a condition that other processes or goroutines cause.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	patience.Until(t, 20*time.Second, what, ok)
}

func code(err error) string {
	var e *wire.Error
	if errors.As(err, &e) {
		return e.Code + " " + e.Reason
	}
	return ""
}

func TestPutListDelete(t *testing.T) {
	n := newTestNode(t)
	a := n.put("a", 4*gib, 60)
	if again := n.put("a", 4*gib, 60); again.UUID != a.UUID {
		t.Errorf("second put changed the UUID of the vGPU from %s to %s", a.UUID, again.UUID)
	}
	for _, c := range []struct {
		id   string
		spec wire.VGPUSpec
		want string
	}{
		{"b", wire.VGPUSpec{GPU: "soft0", VRAMBytes: 5 * gib}, "does-not-fit vram"},
		{"b", wire.VGPUSpec{GPU: "soft0", VRAMBytes: gib, SharePercent: 41}, "does-not-fit share"},
		{"b", wire.VGPUSpec{GPU: "soft0", SharePercent: 41}, "does-not-fit invalid"},
		{"b", wire.VGPUSpec{GPU: "soft1", VRAMBytes: gib}, "not-found "},
		{"a", wire.VGPUSpec{GPU: "soft0", VRAMBytes: 9 * gib}, "does-not-fit vram"},
		{strings.Repeat("x", 200), wire.VGPUSpec{GPU: "soft0", VRAMBytes: gib}, "invalid "},
	} {
		if _, err := n.control.PutVGPU(t.Context(), c.id, c.spec); code(err) != c.want {
			t.Errorf("put %s %+v: error %v, want %s", c.id, c.spec, err, c.want)
		}
	}
	n.put("a", 8*gib, 100) // its own limits are not counted against it
	gpus, err := n.control.GPUs(t.Context())
	if err != nil || len(gpus) != 1 || gpus[0].VRAMReserved != 8*gib || gpus[0].ShareReserved != 100 || gpus[0].VGPUs != 1 {
		t.Errorf("GPUs = %+v, %v, want one with 8 GiB and 100 %% reserved by one vGPU", gpus, err)
	}
	if _, err := n.control.DeleteVGPU(t.Context(), "never"); code(err) != "not-found " {
		t.Errorf("delete of a vGPU that never existed = %v, want not-found", err)
	}
	for range 2 {
		if v, err := n.control.DeleteVGPU(t.Context(), "a"); err != nil || !v.Deleted {
			t.Errorf("delete = %+v, %v, want a deleted vGPU", v, err)
		}
	}
	if all, err := n.control.VGPUs(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("vGPUs after the delete = %v, %v, want none", all, err)
	}
	n.put("b", 8*gib, 100)
	if h, err := n.control.Health(t.Context()); err != nil || !h.OK || h.GPUs != 1 || h.VGPUs != 1 {
		t.Errorf("health = %+v, %v, want OK with one GPU and one vGPU", h, err)
	}
}

func TestWorkerSession(t *testing.T) {
	n := newTestNode(t)
	n.put("a", gib, 50)
	h := n.dial("a")
	if l := h.Limits(); l.VRAM != gib || l.Name != "vGPU a" || l.UUID == [16]byte{} {
		t.Errorf("limits = %+v, want 1 GiB, the name vGPU a and a UUID", l)
	}
	if d := h.Device(); d.Driver != wire.DriverSoft || d.VRAMBytes != 8*gib || d.Multiprocessors != 4 {
		t.Errorf("device = %+v, want a soft GPU with 8 GiB and 4 multiprocessors", d)
	}
	if err := h.Reserve(gib - 100); err != nil {
		t.Fatal(err)
	}
	if err := h.Reserve(101); !errors.Is(err, abi.ErrOutOfMemory) {
		t.Errorf("reserve over the limit = %v, want %v", err, abi.ErrOutOfMemory)
	}
	other := n.dial("a")
	if err := other.Reserve(1<<64 - 1); !errors.Is(err, abi.ErrOutOfMemory) {
		t.Errorf("reserve of 2⁶⁴-1 bytes = %v, want %v", err, abi.ErrOutOfMemory)
	}
	if err := other.Reserve(100); err != nil {
		t.Error(err)
	}
	if free, total, err := h.Memory(); free != 0 || total != gib || err != nil {
		t.Errorf("memory = %d free of %d, %v, want 0 of %d", free, total, err, gib)
	}
	st, err := h.Status()
	if err != nil || st.VRAMUsed != gib || st.VRAMLimit != gib || len(st.Processes) != 2 || st.Processes[0].Name != "matmul" || st.Processes[0].PID != 42 {
		t.Errorf("status = %+v, %v, want 1 GiB in use by two processes, the first matmul with PID 42", st, err)
	}
	h.Release(gib - 200)
	eventually(t, "the release", func() bool { free, _, _ := other.Memory(); return free == gib-200 })

	// When the worker ends, its memory is free at once.
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if v := n.vgpu("a"); v.VRAMUsed != 100 || len(v.Processes) != 1 {
		t.Errorf("vGPU after one of two sessions ended = %+v, want 100 bytes in use by one process", v)
	}
	// New limits reach the worker.
	n.put("a", 2*gib, 50)
	eventually(t, "the new limit", func() bool { return h.Limits().VRAM == 2*gib })
}

func TestUnknownVGPU(t *testing.T) {
	n := newTestNode(t)
	if _, err := client.DialWorker(t.Context(), n.cfg.Socket, "none", client.Options{}); code(err) != "not-found " {
		t.Errorf("error = %v, want not-found", err)
	}
	if _, err := client.DialWorker(t.Context(), n.cfg.Socket+"x", "none", client.Options{}); err == nil {
		t.Error("DialWorker without a gpud returned no error")
	}
}

// work runs for d of leases, meters it correctly, and yields.
func work(t *testing.T, h *client.Host, total *worker.Totals, d time.Duration) {
	t.Helper()
	for left := d; left > 0; {
		lease, err := h.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		time.Sleep(max(0, min(left, time.Until(lease.Until))))
		busy := time.Since(start)
		left -= busy
		total.GPUNanos += uint64(busy)
		total.Launches++
		h.Report(*total)
	}
	h.Yield()
}

func TestLeasesAndMeter(t *testing.T) {
	n := newTestNode(t)
	n.put("a", gib, 50)
	n.put("b", gib, 50)
	a, b := n.dial("a"), n.dial("b")
	var ta, tb worker.Totals
	done := make(chan struct{})
	go func() { defer close(done); work(t, b, &tb, 50*time.Millisecond) }()
	work(t, a, &ta, 50*time.Millisecond)
	<-done
	ta.BytesToDevice, ta.BytesFromDevice = 1000, 1
	a.Report(ta)
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
	ua, ub := n.vgpu("a").Usage, n.vgpu("b").Usage
	if ua.GPUNanos != ta.GPUNanos || ua.Launches != ta.Launches || ua.BytesToDevice != 1000 || ua.BytesFromDevice != 1 {
		t.Errorf("metered usage of a = %+v, want %+v", ua, ta)
	}
	if ub.GPUNanos != tb.GPUNanos {
		t.Errorf("metered usage of b = %+v, want %+v", ub, tb)
	}
	gpus, _ := n.control.GPUs(t.Context())
	if g := gpus[0]; g.LeasedNanos > g.WallNanos || g.LeasedNanos < ua.GPUNanos+ub.GPUNanos {
		t.Errorf("leased %d ns of %d ns, used %d ns; want used <= leased <= elapsed", g.LeasedNanos, g.WallNanos, ua.GPUNanos+ub.GPUNanos)
	}
}

// TestTiersAreMeteredApart checks that GPU time counts for the tier that the vGPU
// had when the work was executed.
func TestTiersAreMeteredApart(t *testing.T) {
	n := newTestNode(t)
	tier := func(s string) {
		t.Helper()
		v, err := n.control.PutVGPU(t.Context(), "a", wire.VGPUSpec{GPU: "soft0", Name: "vGPU a", VRAMBytes: gib, Tier: s})
		if err != nil {
			t.Fatal(err)
		}
		if v.Token != "" {
			n.tokens["a"] = v.Token
		}
	}
	var total worker.Totals
	done := map[string]uint64{}
	for _, s := range []string{"premium", "", "basic", "premium"} {
		tier(s)
		var did worker.Totals
		h := n.dial("a")
		work(t, h, &did, 20*time.Millisecond)
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		total.GPUNanos += did.GPUNanos
		done[s] += did.GPUNanos
	}
	if u := n.vgpu("a").Usage; u.GPUNanos != total.GPUNanos || u.PremiumNanos != done["premium"] || u.BasicNanos != done["basic"] {
		t.Errorf("metered usage = %+v, want %+v", u, done)
	}
	if _, err := n.control.PutVGPU(t.Context(), "a", wire.VGPUSpec{GPU: "soft0", VRAMBytes: gib, Tier: "gold"}); err == nil {
		t.Error("PutVGPU accepted the tier gold")
	}
}

func TestAcquireCancelled(t *testing.T) {
	n := newTestNode(t)
	n.put("a", gib, 0)
	a, b := n.dial("a"), n.dial("a")
	if _, err := a.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := b.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("second exclusive lease = %v, want %v", err, context.DeadlineExceeded)
	}
	a.Yield()
	if _, err := b.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Yield()
}

func TestDeleteNotifiesWorkers(t *testing.T) {
	n := newTestNode(t)
	n.put("a", gib, 0)
	h := n.dial("a")
	if err := h.Reserve(gib); err != nil {
		t.Fatal(err)
	}
	v, err := n.control.DeleteVGPU(t.Context(), "a")
	if err != nil || v.VRAMUsed != 0 {
		t.Errorf("deleted vGPU = %+v, %v, want no VRAM in use", v, err)
	}
	patience.Receive(t, 20*time.Second, "the worker is told", h.Lost())
	if err := h.Reserve(1); !errors.Is(err, abi.ErrUnavailable) {
		t.Errorf("reserve after the vGPU was deleted = %v, want %v", err, abi.ErrUnavailable)
	}
	if _, err := h.Acquire(t.Context()); !errors.Is(err, abi.ErrUnavailable) {
		t.Errorf("acquire after the vGPU was deleted = %v, want %v", err, abi.ErrUnavailable)
	}
}

func TestSecondGpudIsRefused(t *testing.T) {
	n := newTestNode(t)
	if _, err := gpud.New(n.cfg); err == nil || !strings.Contains(err.Error(), "another gpud") {
		t.Errorf("second gpud on the same state = %v, want another gpud", err)
	}
	other := n.cfg
	other.StateDir = t.TempDir()
	if _, err := gpud.New(other); err == nil || !strings.Contains(err.Error(), "another process is already listening") {
		t.Errorf("second gpud on the same socket = %v, want that another process listens", err)
	}
	if _, err := n.control.Health(t.Context()); err != nil {
		t.Errorf("health of the first gpud = %v, want no error", err)
	}
}

func TestStaleSocketAndNewerState(t *testing.T) {
	n := newTestNode(t)
	n.stop()
	if _, err := os.Stat(n.cfg.Socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Stat of the socket after the stop = %v, want that it does not exist", err)
	}
	l, err := gpud.Listen(n.cfg.Socket, 0)
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	n.start()
	n.put("a", gib, 1)
	n.stop()
	path := filepath.Join(n.cfg.StateDir, "state.json")
	for _, bad := range []string{`{"version":2}`, `{"version":1`, ``} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := gpud.New(n.cfg); err == nil {
			t.Errorf("New with the state %q returned no error", bad)
		}
	}
}

// TestCloseWhileReporting checks that messages which cross the bye change
// nothing, and that no session registers again.
func TestCloseWhileReporting(t *testing.T) {
	n := newTestNode(t)
	n.put("a", gib, 0)
	for range 20 {
		h := n.dial("a")
		stop := make(chan struct{})
		go func() {
			for i := uint64(0); ; i++ {
				select {
				case <-stop:
					return
				default:
					h.Report(worker.Totals{Launches: i})
					h.SetProcess(uint32(i), "busy")
				}
			}
		}()
		time.Sleep(time.Millisecond)
		if err := h.Close(); err != nil && !errors.Is(err, context.DeadlineExceeded) { // Close waits a second for the answer
			t.Fatal(err)
		}
		close(stop)
	}
	eventually(t, "no process is listed", func() bool { return len(n.vgpu("a").Processes) == 0 })
}

// TestNow checks that the state for charts has cards and vGPUs at one point in
// time: a card's use is the sum of its vGPUs' uses.
func TestNow(t *testing.T) {
	n := newTestNode(t)
	n.put("a", gib, 50)
	n.put("b", 2*gib, 20)
	n.put("gone", gib, 0)
	if _, err := n.control.DeleteVGPU(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	a, b := n.dial("a"), n.dial("b")
	if err := errors.Join(a.Reserve(300<<20), b.Reserve(50<<20)); err != nil {
		t.Fatal(err)
	}
	var total worker.Totals
	work(t, a, &total, 30*time.Millisecond)
	eventually(t, "the work is counted", func() bool {
		all, err := n.control.Now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(all.GPUs) != 1 || len(all.VGPUs) != 2 {
			t.Fatalf("state = %+v, want 1 GPU and 2 vGPUs", all)
		}
		va, vb := all.VGPUs[0], all.VGPUs[1]
		if va.ID != "a" || va.VRAMUsed != 300<<20 || va.SharePercent != 50 || va.VRAMBytes != gib || va.Token != "" || vb.VRAMUsed != 50<<20 || vb.Usage.GPUNanos != 0 {
			t.Fatalf("vGPUs = %+v, %+v, want a with 300 MiB in use and a share of 50 %%, b with 50 MiB and no GPU time", va, vb)
		}
		if sum := va.VRAMUsed + vb.VRAMUsed; all.GPUs[0].VRAMUsed != sum {
			t.Fatalf("VRAM in use on the card = %d bytes, want the sum of its vGPUs, %d", all.GPUs[0].VRAMUsed, sum)
		}
		return va.Usage.GPUNanos == total.GPUNanos
	})
}
