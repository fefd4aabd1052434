package billingmonth

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/meter"
)

// truth is the actual usage by resource and meter, of the meters that count time, and of the
// GPU.
type truth map[string]map[api.Meter]float64

func (t truth) add(resource string, m api.Meter, n float64) {
	if t[resource] == nil {
		t[resource] = map[api.Meter]float64{}
	}
	t[resource][m] += n
}

// ran adds the vCPU and memory usage of an instance that ran for d.
func (t truth) ran(w *world, id string, d time.Duration) {
	o, err := w.store.Get(w.t.Context(), api.KindInstance, id)
	if err != nil {
		return // it has been deleted meanwhile
	}
	in, err := api.Decode[api.Instance](o)
	if err != nil {
		w.t.Fatal(err)
	}
	t.add(id, api.MeterVCPU, float64(in.Assignment.Vcpus)*d.Seconds())
	t.add(id, api.MeterMemory, float64(in.Assignment.MemoryBytes)*d.Seconds())
}

// metered returns the usage according to the usage records.
func (w *world) metered() truth {
	out := truth{}
	for _, r := range w.records("") {
		out.add(r.Spec.Resource, r.Spec.Meter, float64(r.Spec.Quantity))
	}
	return out
}

// send records egress traffic of the instance's project, one part by each of the nodes that its
// router was on. Each record is committed twice, as after a crash.
func (w *world) send(in api.Instance, bytes ...uint64) {
	w.t.Helper()
	for i, n := range bytes {
		r := meter.Resource{ID: "rtr-000000000001", Name: "router", Organization: in.Meta.Organization, Project: in.Meta.Project, Node: w.nodes[i].id}
		_, cmds := meter.Traffic{At: w.Now().Add(-time.Minute)}.Count(map[string]uint64{"c": n}).Record(r, w.Now())
		for range 2 {
			if _, err := w.store.Apply(w.t.Context(), api.Batch{At: w.Now(), Commands: cmds}); err != nil {
				w.t.Fatal(err)
			}
		}
		w.truth.add(r.ID, api.MeterEgress, float64(n))
	}
}
