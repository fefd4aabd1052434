package billingmonth

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/agent"
)

// cards implements agent.VGPUs: the GPU of a node and the state that gpud keeps of it.
type cards struct {
	mu     sync.Mutex
	slices map[api.InstanceID]agent.VGPU
	alive  map[api.InstanceID]bool
	totals map[api.InstanceID]agent.Totals
}

func newCards() *cards {
	return &cards{slices: map[api.InstanceID]agent.VGPU{}, alive: map[api.InstanceID]bool{}, totals: map[api.InstanceID]agent.Totals{}}
}

func (c *cards) GPUs(context.Context) ([]agent.GPU, error) {
	return []agent.GPU{{ID: "soft0", Name: "soft0", Model: "Basalt Soft GPU", Driver: "soft", VRAMBytes: 8 << 30}}, nil
}

func (*cards) Unusable(context.Context) ([]string, error) { return nil, nil }

func (c *cards) SetCard(context.Context, string, agent.Card) error { return nil }

func (c *cards) Ensure(_ context.Context, v agent.VGPU) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slices[v.Instance], c.alive[v.Instance] = v, true
	return "/run/" + string(v.Instance), nil
}

// Guest implements agent.VGPUs: its guests always use their vGPUs.
func (*cards) Guest(api.InstanceID) (agent.GuestGPU, error) {
	return agent.GuestGPU{Known: true, Driver: true, Library: true}, nil
}

func (c *cards) Alive(id api.InstanceID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.alive[id]
}

func (c *cards) Stop(_ context.Context, id api.InstanceID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.alive, id)
	return nil
}

func (c *cards) Remove(_ context.Context, id api.InstanceID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.alive, id)
	delete(c.slices, id)
	delete(c.totals, id)
	return nil
}

func (c *cards) List(context.Context) ([]api.InstanceID, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.slices)), nil
}

func (c *cards) Totals(_ context.Context, id api.InstanceID) (agent.Totals, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.totals[id], nil
}

func (c *cards) Exits() <-chan api.InstanceID { return nil }

// work adds the usage of d to the instance's totals: a third of the GPU time, and the allocated
// VRAM. It returns the GPU time in nanoseconds.
func (c *cards) work(id api.InstanceID, d time.Duration) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.slices[id]
	if !ok || !c.alive[id] {
		return 0
	}
	t := c.totals[id]
	n := uint64(d / 3)
	t.GPUNanos += n
	t.VRAMByteSeconds += uint64(v.VRAMBytes) * uint64(d/time.Second)
	t.Launches += 7
	t.CopyBytes += 4096
	c.totals[id] = t
	return n
}
