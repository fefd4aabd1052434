package simulation

import (
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// bill holds what was metered against what really ran, in vCPU seconds.
type bill struct {
	w     *world
	real  map[api.InstanceID]float64
	since map[api.InstanceID]time.Duration
	rate  map[api.InstanceID]float64
	ends  map[api.InstanceID]int // how often a run began or ended
}

func newBill(w *world) *bill {
	return &bill{w: w, real: map[api.InstanceID]float64{}, since: map[api.InstanceID]time.Duration{},
		rate: map[api.InstanceID]float64{}, ends: map[api.InstanceID]int{}}
}

// changed: a domain of the instance is not what it was.
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

// told: a record was committed, perhaps not for the first time.
func (b *bill) told(c api.Command) {
	r, err := api.RecordOf(c, epoch)
	if err == nil && r.Spec.Meter == api.MeterVCPU {
		b.w.say(string(r.Spec.Node), "%s used %d vCPU s from %.1f s to %.1f s", r.Spec.Resource, r.Spec.Quantity, r.Spec.Start.Sub(epoch).Seconds(), r.Spec.End.Sub(epoch).Seconds())
	}
}

// metered is what the store has of records.
func (b *bill) metered() map[api.InstanceID]float64 {
	out := map[api.InstanceID]float64{}
	whole := b.w.raft.other(nil)
	if whole == nil {
		b.w.broken("no node has a whole store")
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

// wrong says whose bill is.
func (b *bill) wrong() (out []string) {
	sums := b.metered()
	for _, id := range sortedIDs(b.real) {
		b.changed(id)
		real, metered := b.real[id], sums[id]
		if over := metered - real; over > 2+0.01*real {
			out = append(out, fmt.Sprintf("%s ran %.1f vCPU s and pays for %.1f", id, real, metered))
		}
	}
	return out
}
