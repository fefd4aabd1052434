package agent

import (
	"context"
	"fmt"
	"os"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/meter"
)

// VGPUs runs the vGPU backends of this node's instances.
type VGPUs interface {
	// GPUs returns the node's GPUs.
	GPUs(ctx context.Context) ([]GPU, error)
	// Unusable describes the node's unusable GPUs: what is wrong with each, and
	// what to do.
	Unusable(ctx context.Context) ([]string, error)
	// SetCard applies the decision of its pool to a GPU.
	SetCard(ctx context.Context, device string, c Card) error
	// Ensure makes sure that the instance has its slice and a backend that listens
	// on the returned socket.
	Ensure(ctx context.Context, v VGPU) (socket string, err error)
	// Alive reports whether the instance's backend runs.
	Alive(id api.InstanceID) bool
	// Guest returns what the backend has observed of its guest.
	Guest(id api.InstanceID) (GuestGPU, error)
	// Stop ends the backend; the slice and its totals are kept.
	Stop(ctx context.Context, id api.InstanceID) error
	// Remove ends the backend and removes the slice; it does nothing if there is
	// none.
	Remove(ctx context.Context, id api.InstanceID) error
	// List returns the instances that have a backend or a slice.
	List(ctx context.Context) ([]api.InstanceID, error)
	// Totals returns the totals of the instance's vGPU since its slice was first
	// created; they only grow. They are zero at first.
	Totals(ctx context.Context, id api.InstanceID) (Totals, error)
	// Exits delivers the ID of an instance whose backend has ended.
	Exits() <-chan api.InstanceID
}

// GPU is a GPU of this node, as gpud reports it.
type GPU struct {
	ID, Name, Model, UUID, Driver string // ID is gpud's name of the device
	VRAMBytes, VRAMUsedBytes      int64
	VRAMSwappedBytes              int64 // of VRAMUsedBytes
	Multiprocessors, VGPUs        int64
	Failed                        string // why the GPU failed; empty if it works
	Throttled                     bool   // throttled because it is hot
	Celsius, Milliwatts           int64  // temperature and power; 0 if unknown
	Card
}

// Card is what the GPU's pool decides about it.
type Card struct {
	// SwapBytes is the part of this node's memory that backs VRAM allocated beyond
	// the GPU's own.
	SwapBytes int64
	// Interop is set if guests may answer the vendor runtime's authenticity query.
	Interop bool
}

// GuestGPU is what a vGPU has observed of its guest since the guest's driver last
// started.
type GuestGPU struct {
	Known    bool   // false if the backend's version does not report this
	Driver   bool   // the guest's kernel drives the device
	Library  bool   // a session of a guest library was accepted
	Mismatch bool   // the last session was refused for its version
	Refused  string // why the last session was refused, while none was accepted since
}

// ready reports whether programs in the guest can use the vGPU.
func (g GuestGPU) ready() bool { return g.Known && g.Driver && g.Library }

// VGPU describes the vGPU that an instance should have. Device is gpud's name of
// the GPU.
type VGPU struct {
	Instance                api.InstanceID
	Device                  string
	VRAMBytes, SharePercent int64
	Tier                    api.GPUTier
	// VCPUs and MemoryBytes are the instance's, which bound the resources of its
	// worker.
	VCPUs, MemoryBytes int64
}

// Totals are the totals of a vGPU, which are exact and cumulative. PremiumNanos and
// BasicNanos are the parts of GPUNanos that were executed in these tiers.
type Totals struct {
	GPUNanos, PremiumNanos, BasicNanos, VRAMByteSeconds, CopyBytes, Launches uint64
}

// vgpuSlices manages gpud's slices of this node's instances.
type vgpuSlices struct{ *core }

// ensure records that the instance has a slice, so that it is found and removed
// whatever happens, and then creates slice and backend.
func (g *vgpuSlices) ensure(ctx context.Context, in api.Instance) (string, error) {
	id := api.InstanceID(in.Meta.ID)
	gpu, ok := get(g.cache, g.cache.gpus, string(in.Assignment.Gpu))
	if !ok {
		return "", api.Errorf(api.CodeUnavailable, "GPU %s does not exist on this node", in.Assignment.Gpu)
	}
	if err := os.WriteFile(g.files.vgpuMark(id), []byte(gpu.Status.Device), 0o600); err != nil {
		return "", err
	}
	if err := g.o.VGPUs.SetCard(ctx, gpu.Status.Device, g.cache.card(gpu)); err != nil {
		return "", fmt.Errorf("apply the settings of its pool to GPU %s: %w", gpu.Meta.ID, err)
	}
	socket, err := g.o.VGPUs.Ensure(ctx, VGPU{Instance: id, Device: gpu.Status.Device,
		VRAMBytes: in.Assignment.VgpuVramBytes, SharePercent: in.Assignment.VgpuSharePercent, Tier: in.Assignment.VgpuTier,
		VCPUs: in.Assignment.Vcpus, MemoryBytes: in.Assignment.MemoryBytes})
	return socket, wrap(err, "start the vGPU of instance %s on GPU %s", id, gpu.Meta.ID)
}

// remove ends the backend of the instance and removes its slice.
func (g *vgpuSlices) remove(ctx context.Context, id api.InstanceID) error {
	return wrap(g.o.VGPUs.Remove(ctx, id), "remove the vGPU of instance %s", id)
}

// leave removes a slice of gpud for which there is nothing else on the node.
func (g *vgpuSlices) leave(ctx context.Context, id api.InstanceID) error {
	if g.o.VGPUs == nil || exists(g.files.vgpuMark(id)) {
		return nil
	}
	gone, _, err := g.notMine(ctx, api.KindInstance, string(id))
	if err != nil || !gone {
		return err
	}
	return g.remove(ctx, id)
}

// totals returns the totals of the instance's vGPU, or nil if it has none on this
// node.
func (g *vgpuSlices) totals(ctx context.Context, id api.InstanceID) (*meter.Totals, error) {
	if g.o.VGPUs == nil || !exists(g.files.vgpuMark(id)) {
		return nil, nil
	}
	t, err := g.o.VGPUs.Totals(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read the use of the vGPU of instance %s: %w", id, err)
	}
	return &meter.Totals{GPUNanos: t.GPUNanos, PremiumNanos: t.PremiumNanos, BasicNanos: t.BasicNanos, VRAMByteSeconds: t.VRAMByteSeconds, CopyBytes: t.CopyBytes, Launches: t.Launches}, nil
}
