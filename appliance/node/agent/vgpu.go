package agent

import (
	"context"
	"os"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/meter"
)

// VGPUs runs the vGPU backends of this node's instances.
type VGPUs interface {
	// GPUs of the node.
	GPUs(ctx context.Context) ([]GPU, error)
	// Unusable GPUs of the node: what is wrong with each, and what to do.
	Unusable(ctx context.Context) ([]string, error)
	// SetCard decides about a card of the node.
	SetCard(ctx context.Context, device string, c Card) error
	// Ensure that the instance has its slice and a backend that listens on
	// the socket it returns.
	Ensure(ctx context.Context, v VGPU) (socket string, err error)
	// Alive reports whether the instance's backend runs.
	Alive(id api.InstanceID) bool
	// Guest returns what the backend has seen of its guest.
	Guest(id api.InstanceID) (GuestGPU, error)
	// Stop ends the backend; the slice and its totals stay.
	Stop(ctx context.Context, id api.InstanceID) error
	// Remove ends the backend and gives the slice back; nothing to do if there is none.
	Remove(ctx context.Context, id api.InstanceID) error
	// List the instances that have a backend or a slice.
	List(ctx context.Context) ([]api.InstanceID, error)
	// Totals of the instance's vGPU since its slice was first made: they only
	// grow. None yet: zero.
	Totals(ctx context.Context, id api.InstanceID) (Totals, error)
	// Exits delivers an instance's id when its backend has ended.
	Exits() <-chan api.InstanceID
}

// GPU of this node, as gpud sees it.
type GPU struct {
	ID, Name, Model, UUID, Driver string // ID is gpud's name of the device
	VRAMBytes, VRAMUsedBytes      int64
	VRAMSwappedBytes              int64 // of VRAMUsedBytes
	Multiprocessors, VGPUs        int64
	Failed                        string // why it does not work; empty: it works
	Throttled                     bool   // hot, and slower by it
	Celsius, Milliwatts           int64  // temperature and power; 0: not known
	Card
}

// Card is what the card's pool decides about it.
type Card struct {
	// SwapBytes of this node's memory back what the card is promised beyond its
	// own.
	SwapBytes int64
	// Interop: guests may answer the vendor runtime's authenticity query.
	Interop bool
}

// GuestGPU is what a vGPU has seen of its guest since the guest's driver last started.
type GuestGPU struct {
	Known    bool   // false: the backend is of a version that does not tell
	Driver   bool   // the guest's kernel drives the device
	Library  bool   // a session of a guest library was accepted
	Mismatch bool   // the last session was refused for its version
	Refused  string // why the last session was refused, while none was accepted since
}

// ready reports whether programs in the guest can use the vGPU.
func (g GuestGPU) ready() bool { return g.Known && g.Driver && g.Library }

// VGPU that an instance should have. Device is gpud's name of the card.
type VGPU struct {
	Instance                api.InstanceID
	Device                  string
	VRAMBytes, SharePercent int64
	Tier                    api.GPUTier
	// VCPUs and MemoryBytes of the instance: what it pays for of the node, besides.
	VCPUs, MemoryBytes int64
}

// Totals of a vGPU: exact, cumulative. Of GPUNanos, PremiumNanos and BasicNanos
// were executed in these tiers.
type Totals struct {
	GPUNanos, PremiumNanos, BasicNanos, VRAMByteSeconds, CopyBytes, Launches uint64
}

// vgpuSlices are what gpud holds for this node's instances.
type vgpuSlices struct{ *core }

// ensure marks that the instance has a slice, so that it is found and
// given back whatever happens, then makes slice and backend.
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
