package simulation

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
	sdsfake "github.com/basalt-gpu/basalt/sds/fake"
)

func keys[T any](m map[string]T) iter.Seq[string] { return maps.Keys(m) }

// build creates the world of the seed, schedules its faults and actions, and returns their
// descriptions.
func (w *world) build() (names []string) {
	r := rand.New(rand.NewPCG(w.o.Seed, 0xfa17))
	if w.o.Nodes == 0 {
		w.o.Nodes = 3 + r.IntN(4)
	}
	if w.o.Storm == 0 {
		w.o.Storm = time.Duration(100+r.IntN(100)) * time.Second
	}
	w.states, w.assigned, w.ended = map[string]api.NodeState{}, map[api.InstanceID]api.InstanceAssignment{}, map[api.InstanceID]bool{}
	w.net = network{w: w, cut: map[link]bool{}}
	w.disks, w.bill = newDisks(w), newBill(w)
	w.acts = &actions{w: w, acked: map[string]ack{}, removed: map[string]bool{}}
	w.shared = sdsfake.Shared("pool-1", sds.Limits{}, 1)[0]
	w.shared.SetNow(func() time.Time { return epoch.Add(w.now) })
	w.shared.Serve(imageURL, rawImage)
	shared := r.IntN(5) > 0
	for range w.o.Nodes {
		has := shared && r.IntN(10) > 0
		m := w.addMachine(has || w.o.Shared)
		switch r.IntN(6) {
		case 0:
			m.skew = time.Hour
		case 1:
			m.skew = -time.Hour
		}
	}
	w.raft.w = w
	w.raft.begin()
	list := append(w.acts.draw(r), w.drawFaults(r)...)
	list = append(list, w.drawStoreFaults(rand.New(rand.NewPCG(w.o.Seed, 0x5708e)))...)
	slices.SortStableFunc(list, func(a, b planned) int { return int(a.at - b.at) })
	for i, p := range list {
		names = append(names, fmt.Sprintf("%3d %8.3fs %s", i, p.at.Seconds(), p.name))
		if w.o.Skip != nil && w.o.Skip(i) {
			continue
		}
		w.after(p.at, "planned", func() {
			w.logf("plan", "%d: %s", i, p.name)
			w.stats.Faults++
			p.run()
		})
	}
	for _, m := range w.nodes {
		m.on()
	}
	return names
}
