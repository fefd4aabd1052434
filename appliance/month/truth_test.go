package month

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// truth is what really ran: units by resource and meter, of what the meters
// count by time, and the GPU.
type truth map[string]map[api.Meter]float64

func (t truth) add(resource string, m api.Meter, n float64) {
	if t[resource] == nil {
		t[resource] = map[api.Meter]float64{}
	}
	t[resource][m] += n
}

// ran so long, with what it was given.
func (t truth) ran(w *world, id string, d time.Duration) {
	o, err := w.store.Get(w.t.Context(), api.KindInstance, id)
	if err != nil {
		return // its deletion is under way
	}
	in, err := api.Decode[api.Instance](o)
	if err != nil {
		w.t.Fatal(err)
	}
	t.add(id, api.MeterVCPU, float64(in.Assignment.Vcpus)*d.Seconds())
	t.add(id, api.MeterMemory, float64(in.Assignment.MemoryBytes)*d.Seconds())
}

// metered is the same by the usage records.
func (w *world) metered() truth {
	out := truth{}
	for _, r := range w.records("") {
		out.add(r.Spec.Resource, r.Spec.Meter, float64(r.Spec.Quantity))
	}
	return out
}
