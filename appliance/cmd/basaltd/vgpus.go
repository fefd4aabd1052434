package main

import (
	"context"
	"errors"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/agent"
	"github.com/basalt-gpu/basalt/gpu/gpud/backend"
	"github.com/basalt-gpu/basalt/gpu/gpud/cgroup"
	"github.com/basalt-gpu/basalt/gpu/gpud/client"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
)

// vgpus implements agent.VGPUs and agent.Cards: slices of gpud, with a basalt-vgpu process
// each.
type vgpus struct {
	gpud   *client.Control
	runner *backend.Runner
	exits  chan api.InstanceID
}

func newVGPUs(gpud *client.Control, runner *backend.Runner) *vgpus {
	v := &vgpus{gpud: gpud, runner: runner, exits: make(chan api.InstanceID)}
	go func() {
		for id := range runner.Exits() {
			v.exits <- api.InstanceID(id)
		}
	}()
	return v
}

func (v *vgpus) GPUs(ctx context.Context) ([]agent.GPU, error) {
	cards, err := v.gpud.GPUs(ctx)
	if err != nil {
		return nil, err
	}
	var all []agent.GPU
	for _, c := range cards {
		all = append(all, agent.GPU{ID: c.ID, Name: c.ID, Model: c.Name, UUID: c.UUID, Driver: c.Driver,
			VRAMBytes: int64(c.VRAMBytes), VRAMUsedBytes: int64(c.VRAMUsed), VRAMSwappedBytes: int64(c.VRAMSwapped), Multiprocessors: int64(c.Multiprocessors), VGPUs: int64(c.VGPUs),
			Failed: c.Failed, Throttled: c.Throttled, Celsius: int64(c.Temperature), Milliwatts: int64(c.PowerMilliwatts),
			Card: agent.Card{SwapBytes: int64(c.SwapBytes), Interop: c.Interop}})
	}
	return all, nil
}

// Unusable implements agent.VGPUs.
func (v *vgpus) Unusable(ctx context.Context) (all []string, err error) {
	cards, err := v.gpud.UnusableGPUs(ctx)
	for _, c := range cards {
		all = append(all, c.Address+": "+c.Reason)
	}
	return all, err
}

func (v *vgpus) SetCard(ctx context.Context, device string, c agent.Card) error {
	return v.gpud.PutGPU(ctx, device, wire.GPUSpec{SwapBytes: uint64(c.SwapBytes), Interop: c.Interop})
}

func (v *vgpus) Ensure(ctx context.Context, g agent.VGPU) (string, error) {
	slice, err := v.gpud.PutVGPU(ctx, string(g.Instance), wire.VGPUSpec{GPU: g.Device, VRAMBytes: uint64(g.VRAMBytes), SharePercent: int(g.SharePercent), Tier: string(g.Tier)})
	if err != nil {
		return "", err
	}
	return v.runner.Ensure(ctx, string(g.Instance), slice.Token, workerLimits(g))
}

// workerLimits returns the limits of all workers of the vGPU together. Their needs grow with
// the instance: each guest process has a worker with a context of the driver, whose programs
// and buffers are in the node's memory, as are the VRAM of a soft GPU and the swapped VRAM of a
// real one. A worker polls while its guest process has work.
func workerLimits(g agent.VGPU) cgroup.Limits {
	return cgroup.Limits{
		MemoryBytes: 1<<30 + g.MemoryBytes/2 + g.VRAMBytes,
		PIDs:        1024 + 256*g.VCPUs,
		MilliCPUs:   1000 * (g.VCPUs + 1),
	}
}

func (v *vgpus) Alive(id api.InstanceID) bool { return v.runner.Alive(string(id)) }

// Guest implements agent.VGPUs.
func (v *vgpus) Guest(id api.InstanceID) (agent.GuestGPU, error) {
	o, known, err := v.runner.Observed(string(id))
	return agent.GuestGPU{Known: known, Driver: o.Driver, Library: o.Library, Mismatch: o.Mismatch, Refused: o.Refused}, err
}

func (v *vgpus) Stop(ctx context.Context, id api.InstanceID) error {
	return v.runner.Remove(ctx, string(id))
}

func (v *vgpus) Remove(ctx context.Context, id api.InstanceID) error {
	if err := v.runner.Remove(ctx, string(id)); err != nil {
		return err
	}
	_, err := v.gpud.DeleteVGPU(ctx, string(id))
	if isNotFound(err) {
		return nil
	}
	return err
}

func (v *vgpus) List(ctx context.Context) ([]api.InstanceID, error) {
	running, err := v.runner.List()
	if err != nil {
		return nil, err
	}
	slices, err := v.gpud.VGPUs(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var ids []api.InstanceID
	for _, s := range slices {
		running = append(running, s.ID)
	}
	for _, id := range running {
		if !seen[id] {
			seen[id] = true
			ids = append(ids, api.InstanceID(id))
		}
	}
	return ids, nil
}

// Totals implements agent.VGPUs. It also finds a vGPU that was deleted recently, whose last
// usage gpud keeps until it is recorded.
func (v *vgpus) Totals(ctx context.Context, id api.InstanceID) (agent.Totals, error) {
	all, err := v.gpud.VGPUsAndDeleted(ctx)
	if err != nil {
		return agent.Totals{}, err
	}
	for _, g := range all {
		if g.ID == string(id) {
			u := g.Usage
			return agent.Totals{GPUNanos: u.GPUNanos, PremiumNanos: u.PremiumNanos, BasicNanos: u.BasicNanos, VRAMByteSeconds: u.VRAMByteSeconds,
				CopyBytes: u.BytesToDevice + u.BytesFromDevice, Launches: u.Launches}, nil
		}
	}
	return agent.Totals{}, nil
}

// Use implements agent.Cards.
func (v *vgpus) Use(ctx context.Context) ([]agent.CardUse, error) {
	now, err := v.gpud.Now(ctx)
	if err != nil {
		return nil, err
	}
	var all []agent.CardUse
	for _, c := range now.GPUs {
		use := agent.CardUse{Device: c.ID, VRAMBytes: c.VRAMBytes, VRAMResidentBytes: c.VRAMUsed - c.VRAMSwapped}
		for _, g := range now.VGPUs {
			if g.GPU == c.ID {
				use.Tenants = append(use.Tenants, agent.TenantUse{Instance: api.InstanceID(g.ID), SharePercent: int64(g.SharePercent),
					GPUNanos: g.Usage.GPUNanos, VRAMLimitBytes: g.VRAMBytes, VRAMResidentBytes: g.VRAMUsed - g.VRAMSwapped, VRAMSwappedBytes: g.VRAMSwapped})
			}
		}
		all = append(all, use)
	}
	return all, nil
}

func (v *vgpus) Exits() <-chan api.InstanceID { return v.exits }

func isNotFound(err error) bool {
	var e *wire.Error
	return errors.As(err, &e) && e.Code == wire.CodeNotFound
}
