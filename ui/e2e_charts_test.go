package ui_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	gpuclient "github.com/basalt-gpu/basalt/gpu/gpud/client"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// TestCharts tests the charts of instances with a simulated hypervisor and of a soft GPU of a
// real gpud. Two of them reserve its memory and one of these works on it.
func TestCharts(t *testing.T) {
	n := start(t)
	n.fill(t)
	op, err := client.New(client.Options{Server: n.URL, Token: n.Key})
	if err != nil {
		t.Fatal(err)
	}
	n.softGPU(t)
	train, serve := n.runs(t, op, "train-1"), n.runs(t, op, "serve-1")
	n.tenant(t, train, 50, 300<<20, true)
	n.tenant(t, serve, 20, 20<<20, false)
	nodes, err := client.Of[api.Node](op).Page(t.Context(), client.Query{})
	if err != nil || len(nodes.Items) != 1 {
		t.Fatalf("nodes = %+v (%v), want one", nodes, err)
	}
	n.tell(t, "charts.mjs", "INSTANCE="+train, "NODE="+nodes.Items[0].Meta.Name)
}

// softGPU starts a gpud with a soft GPU.
func (n daemon) softGPU(t *testing.T) {
	t.Helper()
	bin := built.Program(t, "appliance/cmd/basalt-gpud")
	cmd := exec.Command(bin, "--state", t.TempDir(), "--socket", n.gpud(), "--no-nvidia", "--soft-gpu", "name=soft0,vram=8GiB,sms=4")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // it exits by a signal
	})
}

func (n daemon) gpud() string { return filepath.Join(n.Run, "gpud.sock") }

// runs creates an instance, waits until it runs and returns its ID.
func (n daemon) runs(t *testing.T, op *client.API, name string) string {
	t.Helper()
	in, err := client.Of[api.Instance](op).Create(t.Context(), api.Instance{Meta: api.Meta{Name: name, Project: "render", Organization: "acme"},
		Spec: api.InstanceSpec{Flavor: "tiny", Image: "debian-12"}})
	if err != nil {
		t.Fatal(err)
	}
	patience.Until(t, 2*time.Minute, name+" runs", func() bool {
		if in, err = client.Of[api.Instance](op).Get(t.Context(), in.Meta.ID, client.Query{}); err != nil {
			t.Fatal(err)
		}
		return in.Status.Phase == api.InstanceRunning
	})
	return in.Meta.ID
}

// tenant creates a virtual GPU for the instance and starts a worker that reserves VRAM. If it
// works, it also acquires the GPU whenever gpud permits, until the test ends.
func (n daemon) tenant(t *testing.T, instance string, share int, hold uint64, works bool) {
	t.Helper()
	control := gpuclient.NewControl(n.gpud())
	t.Cleanup(control.Close)
	var v wire.VGPU
	var err error
	patience.Until(t, time.Minute, "gpud comes up", func() bool {
		v, err = control.PutVGPU(t.Context(), instance, wire.VGPUSpec{GPU: "soft0", VRAMBytes: 1 << 30, SharePercent: share})
		return err == nil
	})
	h, err := gpuclient.DialWorker(t.Context(), n.gpud(), instance, gpuclient.Options{Token: v.Token, Name: "work"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	if err := h.Reserve(hold); err != nil {
		t.Fatal(err)
	}
	if !works {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		var total worker.Totals
		for ctx.Err() == nil {
			lease, err := h.Acquire(ctx)
			if err != nil {
				return
			}
			begun := time.Now()
			time.Sleep(min(time.Until(lease.Until), 20*time.Millisecond))
			total.GPUNanos += uint64(time.Since(begun))
			total.Launches++
			h.Report(total)
			h.Yield()
			time.Sleep(20 * time.Millisecond)
		}
	}()
}
