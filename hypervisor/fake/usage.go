package fake

import (
	"math"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// The load of a simulated guest rises and falls between idle and busy, on
// every processor, once per cycle. Its disk and network traffic is
// proportional to it.
const (
	cycle       = 90 * time.Second
	rest, work  = 0.1, 0.9
	fullRead    = 40 << 20 // bytes per second at full load
	fullWrite   = 12 << 20
	fullReceive = 5 << 20
	fullSend    = 1 << 20
	request     = 64 << 10 // bytes per request
)

// pretend returns the usage of a guest after the given run time: the load
// integrated over time, so that the counters only grow.
func pretend(id api.InstanceID, d hypervisor.Domain, ran time.Duration) hypervisor.Usage {
	phase := 0.0 // guests are not all busy at the same time
	for _, c := range []byte(id) {
		phase += float64(c)
	}
	t, w := ran.Seconds(), 2*math.Pi/cycle.Seconds()
	middle, swing := (rest+work)/2, (work-rest)/2
	worked := middle*t - swing/w*(math.Cos(w*t+phase)-math.Cos(phase)) // seconds at full load
	load := middle + swing*math.Sin(w*t+phase)
	of := func(full float64) uint64 { return uint64(worked * full) }
	memory := float64(d.MemoryBytes)
	return hypervisor.Usage{ID: id, CPUNanos: of(1e9 * float64(d.VCPUs)),
		MemoryBytes: uint64(d.MemoryBytes), ResidentBytes: uint64(memory * (0.3 + 0.5*load)),
		ReadBytes: of(fullRead), WriteBytes: of(fullWrite), ReadOps: of(fullRead / request), WriteOps: of(fullWrite / request),
		ReceivedBytes: of(fullReceive), SentBytes: of(fullSend)}
}
