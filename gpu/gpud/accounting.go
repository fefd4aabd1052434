package gpud

import (
	"cmp"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/sched"
)

// unix converts a time of now to microseconds since 1970. One gpud uses the same
// offset for all times, so that a guest can compare them.
func (c *core) unix(at sched.Time) uint64 { return uint64((c.epoch + at) / time.Microsecond) }

// accounted returns the sessions that have used the vGPU, oldest first: those that are
// running and those that are still remembered.
func (v *vgpu) accounted(c *core, at sched.Time) (all []abi.AccountedProcess) {
	var sessions []*session
	for _, s := range v.sessions {
		if s.peak > 0 || s.counter.Counted.GPUNanos > 0 {
			sessions = append(sessions, s)
		}
	}
	slices.SortFunc(sessions, func(a, b *session) int {
		return cmp.Or(cmp.Compare(a.counter.Since, b.counter.Since), cmp.Compare(a.id, b.id))
	})
	for _, s := range sessions {
		p := abi.AccountedProcess{PID: s.pid, Start: c.unix(s.counter.Since), GPUNanos: s.counter.Counted.GPUNanos, PeakVRAM: s.peak}
		if s.state == ended {
			p.End = c.unix(s.changed)
		} else {
			p.GPUUtilization = s.gauge.percent(at, p.GPUNanos)
		}
		all = append(all, p)
	}
	return all
}

// samples returns the vGPU's utilization between the times at which gpud learned of
// it.
func (v *vgpu) samples(c *core, at sched.Time) (all []abi.Sample) {
	g := v.gauge
	g.note(at, v.usage.Work.GPUNanos)
	for i := 1; i < g.n; i++ {
		busy := (g.sum[i] - g.sum[i-1]) * 100 / uint64(g.at[i]-g.at[i-1])
		all = append(all, abi.Sample{At: c.unix(g.at[i]), GPUUtilization: uint32(min(100, busy))})
	}
	return all
}
