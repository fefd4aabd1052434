package main

import (
	"testing"

	"github.com/basalt-gpu/basalt/appliance/node/agent"
	"github.com/basalt-gpu/basalt/gpu/gpud/cgroup"
)

// TestWorkerLimits: the limits of a vGPU's workers depend only on what the instance pays for.
func TestWorkerLimits(t *testing.T) {
	const gib = 1 << 30
	for name, c := range map[string]struct {
		vgpu agent.VGPU
		want cgroup.Limits
	}{
		"small":       {agent.VGPU{VCPUs: 1, MemoryBytes: 2 * gib, VRAMBytes: 1 * gib}, cgroup.Limits{MemoryBytes: 3 * gib, PIDs: 1280, MilliCPUs: 2000}},
		"large":       {agent.VGPU{VCPUs: 16, MemoryBytes: 64 * gib, VRAMBytes: 80 * gib}, cgroup.Limits{MemoryBytes: 113 * gib, PIDs: 5120, MilliCPUs: 17000}},
		"share, tier": {agent.VGPU{VCPUs: 1, MemoryBytes: 2 * gib, VRAMBytes: 1 * gib, SharePercent: 100, Tier: "premium"}, cgroup.Limits{MemoryBytes: 3 * gib, PIDs: 1280, MilliCPUs: 2000}},
	} {
		if got := workerLimits(c.vgpu); got != c.want {
			t.Errorf("%s: limits of %+v = %+v, want %+v", name, c.vgpu, got, c.want)
		}
	}
}
