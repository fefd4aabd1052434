package gpud

import (
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/sched"
)

// TestMemoryUtilization checks that a vGPU gets the utilization of its card's memory only
// for a second in which it alone had work.
func TestMemoryUtilization(t *testing.T) {
	on := func(gpu string) *vgpu { return &vgpu{spec: wire.VGPUSpec{GPU: gpu}} }
	c := newCore(Config{})
	c.cards["g"] = &card{leases: sched.NewLeases(sched.NewRoundRobin())}
	for id, v := range map[sched.VGPUID]*vgpu{"a": on("g"), "b": on("g"), "elsewhere": on("h")} {
		v.id = id
		c.vgpus[id] = v
	}
	reading := uint32(70)
	at := time.Minute
	work := func(ids ...sched.VGPUID) *card {
		at += time.Minute
		for _, v := range c.vgpus {
			v.gauge.note(at-2*gaugeSpan, v.usage.Work.GPUNanos)
		}
		for _, id := range ids {
			c.vgpus[id].usage.Work.GPUNanos += uint64(gaugeSpan / 4)
		}
		c.read("g", sensors{memory: &reading}, at)
		return c.cards["g"]
	}
	check := func(name string, card *card, of sched.VGPUID, want uint32, known bool) {
		t.Helper()
		if got, ok := card.memoryOf(of); got != want || ok != known {
			t.Errorf("%s: memory utilization of %s = %d, known %t; want %d, %t", name, of, got, ok, want, known)
		}
	}
	one := work("a")
	check("a alone", one, "a", 70, true)
	check("a alone", one, "b", 0, true)
	check("beside work on another card", work("a", "elsewhere"), "a", 70, true)
	both := work("a", "b")
	check("both", both, "a", 0, false)
	check("both", both, "b", 0, false)
	check("nobody", work(), "a", 0, true)
	s := &session{id: "long", vgpu: c.vgpus["a"], state: live}
	c.vgpus["a"].sessions = map[string]*session{"long": s}
	c.cards["g"].leases.SetClaims(map[sched.VGPUID]sched.Claim{"a": {SharePercent: 100}})
	c.cards["g"].leases.Step(at, sched.Want{Session: s.key(), VGPU: "a"})
	check("a kernel that has not ended", work(), "a", 70, true)
	check("a kernel that has not ended", work("b"), "b", 0, false)
	c.cards["g"].leases.Step(at, sched.Drop{Session: s.key()})
	reading = 250
	check("above 100", work("b"), "b", 100, true)
	c.read("g", sensors{}, at)
	check("not known", c.cards["g"], "a", 0, false)
	check("no card", nil, "a", 0, false)
}
