package simulation

import (
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// bill compares metered usage with actual usage, in vCPU seconds.
type bill struct {
	w     *world
	real  map[api.InstanceID]float64
	since map[api.InstanceID]time.Duration
	rate  map[api.InstanceID]float64
	ends  map[api.InstanceID]int // number of changes of rate
}

func newBill(w *world) *bill {
	return &bill{w: w, real: map[api.InstanceID]float64{}, since: map[api.InstanceID]time.Duration{},
		rate: map[api.InstanceID]float64{}, ends: map[api.InstanceID]int{}}
}

// changed updates the actual usage after a domain of the instance changed state.
func (b *bill) changed(id api.InstanceID) {
	b.real[id] += b.rate[id] * (b.w.now - b.since[id]).Seconds()
	b.since[id] = b.w.now
	rate := 0.0
	for _, m := range b.w.nodes {
		if m.executes(id) {
			_, running, _ := m.machines.Domain(id)
			rate = max(rate, float64(running.VCPUs))
		}
	}
	if rate != b.rate[id] {
		b.ends[id]++
	}
	b.rate[id] = rate
}

// recorded logs a committed usage record. The same record may be committed more than once.
func (b *bill) recorded(c api.Command) {
	r, err := api.RecordOf(c, epoch)
	if err == nil && r.Spec.Meter == api.MeterVCPU {
		b.w.logf(string(r.Spec.Node), "%s used %d vCPU s from %.1f s to %.1f s", r.Spec.Resource, r.Spec.Quantity, r.Spec.Start.Sub(epoch).Seconds(), r.Spec.End.Sub(epoch).Seconds())
	}
}

// metered returns the metered vCPU seconds by instance, as recorded in the store.
func (b *bill) metered() map[api.InstanceID]float64 {
	out := map[api.InstanceID]float64{}
	whole := b.w.raft.other(nil)
	if whole == nil {
		b.w.failf("no node has a complete and unaltered store")
		return out
	}
	for q := (api.RecordQuery{Meter: api.MeterVCPU, Limit: api.MaxRecords}); ; {
		page, err := whole.store.Records(q)
		if !b.w.raft.check(whole, err) {
			return out
		}
		for _, r := range page.Items {
			out[api.InstanceID(r.Spec.Resource)] += float64(r.Spec.Quantity)
		}
		if q.After = page.Next; !page.More {
			return out
		}
	}
}

// overcharged describes each instance whose metered usage exceeds its actual usage by more than
// 2 vCPU s plus 1 %.
func (b *bill) overcharged() (out []string) {
	sums := b.metered()
	for _, id := range sortedIDs(b.real) {
		b.changed(id)
		real, metered := b.real[id], sums[id]
		if over := metered - real; over > 2+0.01*real {
			out = append(out, fmt.Sprintf("%s ran %.1f vCPU s and pays for %.1f vCPU s", id, real, metered))
		}
	}
	return out
}
