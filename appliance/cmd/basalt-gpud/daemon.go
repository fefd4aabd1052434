package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/basalt-gpu/basalt/gpu/gpud"
	"github.com/basalt-gpu/basalt/gpu/gpud/client"
	"github.com/basalt-gpu/basalt/gpu/gpud/standalone"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/worker/sandbox"
)

// daemon is gpud, with --standalone also the server for programs on this machine.
type daemon struct {
	o        options
	control  string // socket
	server   *gpud.Server
	programs *standalone.Server // nil without --standalone
	log      *slog.Logger
}

func newDaemon(o options, log *slog.Logger) (_ *daemon, err error) {
	d := &daemon{o: o, control: o.socket, log: log}
	if o.standalone {
		d.control += ".control"
		if !o.makesCards() && o.noNVIDIA {
			return nil, errors.New("--standalone needs a card: give --soft-gpu vram=8GiB, or leave --no-nvidia away")
		}
	}
	group, err := o.groupID()
	if err != nil {
		return nil, fmt.Errorf("--worker-group: %w", err)
	}
	if d.server, err = gpud.New(gpud.Config{
		StateDir: o.state, Socket: d.control, SoftGPUs: o.soft, NullGPUs: o.null, SwapBytes: o.swap, Interop: o.interop,
		NoNVIDIA: o.noNVIDIA || o.standalone && o.makesCards(), WorkerGroup: group, Log: log,
	}); err != nil {
		return nil, fmt.Errorf("start the GPU daemon: %w", err)
	}
	if !o.standalone {
		return d, nil
	}
	workers, open, err := sandbox.For(o.user)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--worker-user: %w", err), d.server.Close())
	}
	if open != "" {
		log.Warn("workers are not fully confined", "reason", open)
	}
	listener, err := gpud.Listen(o.socket, group)
	if err == nil {
		d.programs, err = standalone.New(standalone.Config{
			Listener: listener, Worker: o.worker, Control: d.control, MaxWorkers: o.maxWorkers, Sandbox: workers, Log: log,
		})
		if err != nil {
			err = errors.Join(err, listener.Close())
		}
	}
	if err != nil {
		return nil, errors.Join(err, d.server.Close())
	}
	return d, nil
}

// Run serves until ctx ends.
func (d *daemon) Run(ctx context.Context) error {
	if d.programs == nil {
		d.log.Info("gpud is ready", "socket", d.control, "state", d.o.state)
		return d.server.Run(ctx)
	}
	// The workers end before gpud does, so that their last totals are recorded.
	serverCtx, stopServer := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServer()
	var all errgroup.Group
	all.Go(func() error { return d.server.Run(serverCtx) })
	all.Go(func() error {
		defer stopServer()
		token, err := d.giveWholeCard(ctx)
		if ctx.Err() != nil {
			return nil // stopped during the start, which is not an error
		}
		if err != nil {
			return err
		}
		return d.programs.Run(ctx, token)
	})
	return all.Wait()
}

// giveWholeCard creates a vGPU that is the whole first GPU, prints how to use it, and returns
// its token.
func (d *daemon) giveWholeCard(ctx context.Context) (token string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c := client.NewControl(d.control)
	defer c.Close()
	gpus, err := c.GPUs(ctx)
	if err != nil {
		return "", fmt.Errorf("list the GPUs: %w", err)
	}
	if len(gpus) == 0 {
		return "", errors.New("this machine has no NVIDIA card that answers; give --soft-gpu vram=8GiB")
	}
	g := gpus[0]
	for _, candidate := range gpus {
		if candidate.ID == d.o.firstMade() {
			g = candidate
		}
	}
	v, err := c.PutVGPU(ctx, standalone.VGPU, wire.VGPUSpec{GPU: g.ID, VRAMBytes: g.VRAMBytes, SharePercent: 100})
	if err != nil {
		return "", fmt.Errorf("create a vGPU on GPU %s: %w", g.ID, err)
	}
	fmt.Printf("GPU %s: %s, %s of memory, %d multiprocessors. Run CUDA programs with:\n\n  BASALT_GPU=unix:%s LD_LIBRARY_PATH=%s ./program\n\n",
		g.ID, g.Name, gpud.FormatSize(g.VRAMBytes), g.Multiprocessors, d.o.socket, guestLibraries())
	return v.Token, nil
}

// guestLibraries returns the folder of the guest's libcuda: beside the programs in a build
// tree, otherwise as in the README.
func guestLibraries() string {
	if exe, err := os.Executable(); err == nil {
		dir := filepath.Join(filepath.Dir(exe), "..", "guest", "lib")
		if _, err := os.Stat(filepath.Join(dir, "libcuda.so.1")); err == nil {
			return dir
		}
	}
	return "build/guest/lib"
}

// Close removes the sockets and releases the state.
func (d *daemon) Close() error {
	if d.programs != nil {
		return errors.Join(d.programs.Close(), d.server.Close())
	}
	return d.server.Close()
}
