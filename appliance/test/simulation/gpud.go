package simulation

import (
	"context"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/agent"
)

const vramBytes = 8 << 30

// gpud models basalt-gpud on a machine with one GPU. Its allocations survive a reboot of the
// machine; its backends do not.
type gpud struct {
	m      *machine
	away   bool // a fault
	slices map[api.InstanceID]agent.VGPU
	alive  map[api.InstanceID]bool
	card   agent.Card
}

var _ agent.VGPUs = (*gpud)(nil)

func newGPUD(m *machine) *gpud {
	return &gpud{m: m, slices: map[api.InstanceID]agent.VGPU{}, alive: map[api.InstanceID]bool{}}
}

func (g *gpud) off() { clear(g.alive) }

func (g *gpud) enter(ctx context.Context, op string) error {
	if err := g.m.enter(ctx, op); err != nil {
		return err
	}
	if g.away {
		return api.Errorf(api.CodeUnavailable, "basalt-gpud does not answer")
	}
	return nil
}

func (g *gpud) GPUs(ctx context.Context) ([]agent.GPU, error) {
	if err := g.enter(ctx, "GPUs"); err != nil {
		return nil, err
	}
	return []agent.GPU{{ID: "soft0", Name: "soft0", Model: "soft", VRAMBytes: vramBytes, VGPUs: int64(len(g.slices)), Card: g.card}}, nil
}

// Unusable implements agent.VGPUs: there are none.
func (*gpud) Unusable(context.Context) ([]string, error) { return nil, nil }

func (g *gpud) SetCard(ctx context.Context, _ string, c agent.Card) error {
	if err := g.enter(ctx, "SetCard"); err != nil {
		return err
	}
	g.card = c
	return nil
}

func (g *gpud) Ensure(ctx context.Context, v agent.VGPU) (string, error) {
	if err := g.enter(ctx, "Ensure"); err != nil {
		return "", err
	}
	g.slices[v.Instance], g.alive[v.Instance] = v, true
	var vram, share int64
	for _, s := range g.slices {
		vram += s.VRAMBytes
		share += s.SharePercent
	}
	if vram > vramBytes || share > 100 {
		g.m.w.failf("the GPU of %s is over-allocated: %d bytes and %d %% to %v, want at most %d bytes and 100 %%", g.m.id, vram, share, sortedIDs(g.slices), int64(vramBytes))
	}
	g.m.spring("Ensure", true)
	return "/run/vgpu/" + string(v.Instance), nil
}

func (g *gpud) Alive(id api.InstanceID) bool { return g.alive[id] && !g.away }

// Guest implements agent.VGPUs: a guest uses its vGPU as long as the backend is alive.
func (g *gpud) Guest(id api.InstanceID) (agent.GuestGPU, error) {
	return agent.GuestGPU{Known: true, Driver: g.alive[id], Library: g.alive[id]}, nil
}

func (g *gpud) Stop(ctx context.Context, id api.InstanceID) error {
	if err := g.enter(ctx, "StopVGPU"); err != nil {
		return err
	}
	delete(g.alive, id)
	return nil
}

func (g *gpud) Remove(ctx context.Context, id api.InstanceID) error {
	if err := g.enter(ctx, "RemoveVGPU"); err != nil {
		return err
	}
	delete(g.alive, id)
	delete(g.slices, id)
	return nil
}

func (g *gpud) List(ctx context.Context) ([]api.InstanceID, error) {
	if err := g.enter(ctx, "ListVGPUs"); err != nil {
		return nil, err
	}
	return slices.Clone(sortedIDs(g.slices)), nil
}

func (g *gpud) Totals(ctx context.Context, _ api.InstanceID) (agent.Totals, error) {
	return agent.Totals{}, g.enter(ctx, "Totals")
}

func (g *gpud) Exits() <-chan api.InstanceID { return nil }
