package agent

import (
	"context"
	"os"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/meter"
)

// vgpuSlices are what gpud holds for this node's instances.
type vgpuSlices struct{ *core }

// ensure marks that the instance has a slice, so that it is found and
// given back whatever happens, then makes slice and backend.
func (g *vgpuSlices) ensure(ctx context.Context, in api.Instance) (string, error) {
	id := api.InstanceID(in.Meta.ID)
	gpu, ok := get(g.cache, g.cache.gpus, string(in.Assignment.Gpu))
	if !ok {
		return "", api.Errorf(api.CodeUnavailable, "GPU %s is not on this node", in.Assignment.Gpu)
	}
	if err := os.WriteFile(g.files.vgpuMark(id), []byte(gpu.Status.Device), 0o600); err != nil {
		return "", err
	}
	if err := g.o.VGPUs.SetCard(ctx, gpu.Status.Device, g.cache.card(gpu)); err != nil {
		return "", err
	}
	return g.o.VGPUs.Ensure(ctx, VGPU{Instance: id, Device: gpu.Status.Device,
		VRAMBytes: in.Assignment.VgpuVramBytes, SharePercent: in.Assignment.VgpuSharePercent, Tier: in.Assignment.VgpuTier,
		VCPUs: in.Assignment.Vcpus, MemoryBytes: in.Assignment.MemoryBytes})
}

// leave gives back a slice that gpud has and of which nothing else on the
// node knows.
func (g *vgpuSlices) leave(ctx context.Context, id api.InstanceID) error {
	if g.o.VGPUs == nil || exists(g.files.vgpuMark(id)) {
		return nil
	}
	gone, _, err := g.notMine(ctx, api.KindInstance, string(id))
	if err != nil || !gone {
		return err
	}
	return g.o.VGPUs.Remove(ctx, id)
}

// totals of the instance's vGPU; nil: it has none here.
func (g *vgpuSlices) totals(ctx context.Context, id api.InstanceID) (*meter.Totals, error) {
	if g.o.VGPUs == nil || !exists(g.files.vgpuMark(id)) {
		return nil, nil
	}
	t, err := g.o.VGPUs.Totals(ctx, id)
	if err != nil {
		return nil, err
	}
	return &meter.Totals{GPUNanos: t.GPUNanos, PremiumNanos: t.PremiumNanos, BasicNanos: t.BasicNanos, VRAMByteSeconds: t.VRAMByteSeconds, CopyBytes: t.CopyBytes, Launches: t.Launches}, nil
}
