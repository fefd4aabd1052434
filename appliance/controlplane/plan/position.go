package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

const (
	// sampleAge is how long ago a wait that is used for an estimate ended at most.
	sampleAge = 30 * 24 * time.Hour
	// minSamples is the least number of waits that an estimate is calculated from, and
	// maxSamples the most.
	minSamples, maxSamples = 3, 20
)

// QueuePlaces returns the places of those of the instances that wait in a queue, by ID.
func QueuePlaces(s *State, ins []api.Instance, now time.Time) map[string]api.InstanceQueue {
	length, position := map[queueKey]int64{}, map[string]int64{}
	for _, in := range waiting(s) {
		key := queueOf(in)
		length[key]++
		position[in.Meta.ID] = length[key]
	}
	out := map[string]api.InstanceQueue{}
	for _, in := range ins {
		if position[in.Meta.ID] == 0 {
			continue
		}
		since := *s.Instances[in.Meta.ID].Assignment.QueuedAt
		q := api.InstanceQueue{Position: position[in.Meta.ID], Length: length[queueOf(in)], Since: &since}
		out[in.Meta.ID] = estimated(s, in, q, now)
	}
	return out
}

// NextPlace returns the place that an instance would have if it began to wait now.
func NextPlace(s *State, in api.Instance, now time.Time) api.InstanceQueue {
	q, mine := api.InstanceQueue{Position: 1, Length: 1}, turn{Instance: in, class: wantsRoom}
	if queued(in.Assignment) { // with another size it keeps its place
		mine = turn{in, waitsRoom, *in.Assignment.QueuedAt}
	}
	for _, other := range waiting(s) {
		if queueOf(other) != queueOf(in) || other.Meta.ID == in.Meta.ID {
			continue
		}
		q.Length++
		if compareTurns(turnOf(s, other), mine) < 0 {
			q.Position++
		}
	}
	return estimated(s, in, q, now)
}

// estimated adds to a place how long similar instances waited for the same: a node, or
// another size.
func estimated(s *State, in api.Instance, q api.InstanceQueue, now time.Time) api.InstanceQueue {
	type wait struct {
		ended time.Time
		took  time.Duration
	}
	var waits []wait
	for _, x := range s.Instances {
		a := x.Assignment
		if a.QueuedAt != nil && a.PlacedAt != nil && now.Sub(*a.PlacedAt) <= sampleAge && a.QueuedFor == waitsFor(in) && queueOf(x) == queueOf(in) && similar(sizeOf(s, x), sizeOf(s, in)) {
			waits = append(waits, wait{*a.PlacedAt, max(a.PlacedAt.Sub(*a.QueuedAt), 0)})
		}
	}
	q.Samples = int64(len(waits))
	if len(waits) < minSamples {
		return q
	}
	slices.SortFunc(waits, func(a, b wait) int { return b.ended.Compare(a.ended) })
	waits = waits[:min(len(waits), maxSamples)]
	slices.SortFunc(waits, func(a, b wait) int { return cmp.Compare(a.took, b.took) })
	usual := waits[len(waits)/2].took
	q.UsualSeconds = max(1, int64(usual.Round(time.Second).Seconds()))
	since := now
	if q.Since != nil {
		since = *q.Since
	}
	if at := since.Add(usual).UTC(); at.After(now) {
		q.ExpectedAt = &at
	}
	return q
}

// waitsFor returns what an instance waits for in the queue, or would.
func waitsFor(in api.Instance) api.QueuedFor {
	if in.Assignment.Node != "" {
		return api.QueuedForResize
	}
	return ""
}

// sizeOf returns the size of an instance for comparison within a queue: its VRAM, or its
// memory if it has no virtual GPU, in bytes.
func sizeOf(s *State, in api.Instance) int64 {
	if v := in.Spec.Vgpu; v != nil {
		return v.VramBytes
	}
	return s.Flavors[string(in.Spec.Flavor)].Spec.MemoryBytes
}

// similar reports whether neither size is more than twice the other.
func similar(a, b int64) bool { return a <= 2*b && b <= 2*a }
