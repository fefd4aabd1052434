package gpud_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/gpud/client"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// alone returns a program that has a card for itself: it launches small kernels
// and waits for each.
func alone(t testing.TB) (*testNode, *program) {
	t.Helper()
	n := overcommitted(t)
	n.cfg.ReturnAfter, n.cfg.DetachGrace = time.Hour, time.Hour // the worker is this process
	n.stop()
	n.start()
	card := softCard(t)
	v, err := n.control.PutVGPU(t.Context(), "a", wire.VGPUSpec{GPU: "soft0", VRAMBytes: 50 * mib})
	if err != nil {
		t.Fatal(err)
	}
	n.tokens["a"] = v.Token
	return n, n.program(t, card, "a", 4096)
}

// steps runs as many steps as fit into d, one after another, and returns their
// number.
func (p *program) steps(d time.Duration) (n uint64) {
	p.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); n++ {
		if err := p.step(); err != nil {
			p.t.Fatal(err)
		}
	}
	return n
}

// TestRateWithoutGpud checks that a session keeps its rate while gpud is not
// running, and that all of its work is counted once after gpud has started again.
func TestRateWithoutGpud(t *testing.T) {
	n, p := alone(t)
	const round = 200 * time.Millisecond
	warm := p.steps(round)
	var with, without uint64
	for range 4 { // in turns: other load of the machine affects both
		with += p.steps(round)
		n.stop()
		without += p.steps(round)
		n.start()
	}
	t.Logf("kernels with gpud: %d, without: %d", with, without)
	if without < with/4 {
		t.Errorf("%d kernels without gpud, want about as many as the %d with it in the same time", without, with)
	}
	counted := uint64(0)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("launches: %d made, %d counted", warm+with+without, counted)
		}
	})
	eventually(t, "every launch is counted", func() bool { counted = n.launches("a"); return counted == warm+with+without })
}

// TestStoppedGpudStopsNobody stops gpud with its socket open. Sessions that work
// continue without it, and their usage arrives exactly when gpud continues, which
// treats no session as overdue because of the pause.
func TestStoppedGpudStopsNobody(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	gpud := role(t, "gpud", filepath.Join(dir, "state"), socket, nil)
	control := client.NewControl(socket)
	t.Cleanup(control.Close)
	var hosts []*client.Host
	for _, id := range []string{"a", "b"} {
		var v wire.VGPU
		eventually(t, "the vGPU "+id, func() (ok bool) {
			var err error
			v, err = control.PutVGPU(t.Context(), id, wire.VGPUSpec{GPU: "soft0", VRAMBytes: gib, SharePercent: 50})
			return err == nil
		})
		h, err := client.DialWorker(t.Context(), socket, id, client.Options{Token: v.Token, PID: 1, Name: id})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close() })
		hosts = append(hosts, h)
	}
	ctx, cancel := context.WithCancel(t.Context())
	totals := make([]worker.Totals, len(hosts))
	kernels := make([]atomic.Uint64, len(hosts))
	var busy sync.WaitGroup
	for i, h := range hosts {
		busy.Go(func() {
			for total := &totals[i]; ; h.Yield() {
				if _, err := h.Acquire(ctx); err != nil {
					if ctx.Err() == nil {
						t.Errorf("acquire without gpud = %v, want no error", err)
					}
					return
				}
				start := time.Now()
				time.Sleep(time.Millisecond)
				total.GPUNanos += uint64(time.Since(start))
				total.Launches++
				h.Report(*total)
				kernels[i].Add(1)
			}
		})
	}
	more := func(what string) {
		t.Helper()
		for i := range kernels {
			from := kernels[i].Load()
			eventually(t, what, func() bool { return kernels[i].Load() > from+100 })
		}
	}
	more("kernels with gpud")
	for range 2 {
		freeze(t, gpud)
		time.Sleep(2 * time.Second) // longer than a session may overrun its lease
		more("kernels while gpud is stopped")
		if err := gpud.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		eventually(t, "gpud answers", func() bool { _, err := control.Health(t.Context()); return err == nil })
		more("kernels when gpud goes on")
	}
	cancel()
	busy.Wait()
	for i, h := range hosts {
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		all, err := control.VGPUs(t.Context())
		if err != nil || len(all) != len(hosts) {
			t.Fatalf("VGPUs = %+v, %v, want %d of them", all, err, len(hosts))
		}
		if u := all[i].Usage; u.GPUNanos != totals[i].GPUNanos || u.Launches != totals[i].Launches {
			t.Errorf("metered usage = %+v, want %+v", u, totals[i])
		}
	}
}

// TestStoppedGpudKeepsMemory checks that a session keeps its memory while
// it reconnects to a gpud that was stopped, even if another session of its vGPU
// wants it.
func TestStoppedGpudKeepsMemory(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	gpud := role(t, "gpud", filepath.Join(dir, "state"), socket, nil)
	control := client.NewControl(socket)
	t.Cleanup(control.Close)
	var v wire.VGPU
	eventually(t, "the vGPU", func() (ok bool) {
		var err error
		v, err = control.PutVGPU(t.Context(), "a", wire.VGPUSpec{GPU: "soft0", VRAMBytes: gib})
		return err == nil
	})
	dial := func(name string) *client.Host {
		h, err := client.DialWorker(t.Context(), socket, "a", client.Options{Token: v.Token, PID: 1, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close() })
		return h
	}
	holder, other := dial("holder"), dial("other")
	if err := holder.Reserve(gib); err != nil {
		t.Fatal(err)
	}
	freeze(t, gpud)
	if _, err := holder.Acquire(t.Context()); err != nil { // it has noticed, and closed the connection
		t.Fatal(err)
	}
	holder.Yield()
	wanted := make(chan error, 1)
	done, stop := context.WithCancel(t.Context())
	go func() {
		for done.Err() == nil {
			if err := other.Reserve(mib); !errors.Is(err, abi.ErrOutOfMemory) {
				wanted <- err
				return
			}
		}
		wanted <- nil
	}()
	time.Sleep(2 * time.Second) // the holder's next attempt to reconnect waits in gpud's queue
	if err := gpud.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if free, _, err := holder.Memory(); err != nil || free != 0 {
		t.Errorf("free memory for the holder = %d bytes, %v, want 0", free, err)
	}
	stop()
	if err := <-wanted; err != nil {
		t.Errorf("reserve of the other session = %v, want out of memory", err)
	}
	if all, err := control.VGPUs(t.Context()); err != nil || all[0].VRAMUsed != gib {
		t.Errorf("vGPUs = %+v, %v, want 1 GiB in use", all, err)
	}
}

// launches returns the launches counted for the vGPU.
func (n *testNode) launches(id string) uint64 {
	all, err := n.control.VGPUs(n.t.Context())
	if err != nil {
		return 0
	}
	for _, v := range all {
		if v.ID == id {
			return v.Usage.Launches
		}
	}
	return 0
}

// BenchmarkWithoutGpud measures a small kernel that the program waits for, with
// and without gpud in turns of the same run. "ratio" is the kernels per second
// without gpud divided by those with it; the goal is 1.
func BenchmarkWithoutGpud(b *testing.B) {
	n, p := alone(b)
	p.steps(100 * time.Millisecond)
	var took [2]time.Duration // with, without
	each := max(b.N/8, 1)
	b.ResetTimer()
	for i := 0; i < b.N; {
		for away := range took {
			if away == 1 {
				n.stop()
			}
			begin := time.Now()
			for range each {
				if err := p.step(); err != nil {
					b.Fatal(err)
				}
			}
			took[away] += time.Since(begin)
			i += each
			if away == 1 {
				n.start()
			}
		}
	}
	b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "ratio")
}
