package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/node/agent"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	gpunode "github.com/basalt-gpu/basalt/gpu/gpud"
	"github.com/basalt-gpu/basalt/gpu/gpud/client"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// softGPU starts a gpud with one soft GPU and returns a client and its socket.
func softGPU(t *testing.T) (*client.Control, string) {
	t.Helper()
	dir := t.TempDir()
	g, err := gpunode.New(gpunode.Config{StateDir: filepath.Join(dir, "state"), Socket: filepath.Join(dir, "s"), NoNVIDIA: true,
		SoftGPUs: []gpunode.SoftGPU{{Name: "soft0", VRAM: 8 << 30, SMs: 4}}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- g.Run(ctx) }()
	control := client.NewControl(filepath.Join(dir, "s"))
	t.Cleanup(func() {
		control.Close()
		cancel()
		if err := errors.Join(<-ran, g.Close()); err != nil {
			t.Errorf("end of gpud: %v", err)
		}
	})
	return control, filepath.Join(dir, "s")
}

// tenant registers a worker of a new vGPU and reserves VRAM for it.
func tenant(t *testing.T, control *client.Control, socket, id string, share int, hold uint64) *client.Host {
	t.Helper()
	v, err := control.PutVGPU(t.Context(), id, wire.VGPUSpec{GPU: "soft0", VRAMBytes: 2 << 30, SharePercent: share})
	if err != nil {
		t.Fatal(err)
	}
	h, err := client.DialWorker(t.Context(), socket, id, client.Options{Token: v.Token, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	if err := h.Reserve(hold); err != nil {
		t.Fatal(err)
	}
	return h
}

// TestCardsAreMeasured: the VRAM and GPU time that tenants use of a soft GPU are reported, for
// each tenant separately.
func TestCardsAreMeasured(t *testing.T) {
	control, socket := softGPU(t)
	a := tenant(t, control, socket, "ins-a", 50, 300<<20)
	tenant(t, control, socket, "ins-b", 0, 20<<20)
	var total worker.Totals
	for range 5 {
		lease, err := a.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		time.Sleep(min(time.Until(lease.Until), 5*time.Millisecond))
		total.GPUNanos += uint64(time.Since(begun))
		total.Launches++
		a.Report(total)
		a.Yield()
	}
	cards := &vgpus{gpud: control}
	want := []agent.TenantUse{{Instance: "ins-a", SharePercent: 50, GPUNanos: total.GPUNanos, VRAMLimitBytes: 2 << 30, VRAMResidentBytes: 300 << 20},
		{Instance: "ins-b", VRAMLimitBytes: 2 << 30, VRAMResidentBytes: 20 << 20}}
	for w := patience.Start(); ; time.Sleep(10 * time.Millisecond) {
		all, err := cards.Use(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(all) != 1 || all[0].Device != "soft0" || all[0].VRAMBytes != 8<<30 || all[0].VRAMResidentBytes != 320<<20 || len(all[0].Tenants) != 2 {
			t.Fatalf("usage = %+v, want soft0 with 8 GiB of VRAM, 320 MiB resident, and 2 tenants", all)
		}
		if got := all[0].Tenants; got[0] == want[0] && got[1] == want[1] {
			return
		} else if w.Over(20 * time.Second) {
			t.Fatalf("usage of the tenants after 20 s = %+v, want %+v", got, want)
		}
	}
}
