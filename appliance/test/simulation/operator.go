package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// actions are the actions of the operator and of the tenants. Each is a thread that sends its
// batch to some node and, as long as the outcome is unknown, to another one, with the same
// batch ID.
type actions struct {
	w           *world
	threads     []*thread
	lostAnswers float64
	instances   int
	volumes     int
	acked       map[string]ack  // by batch ID
	removed     map[string]bool // IDs of objects whose deletion was requested
}

// ack is an acknowledged outcome, which the store must hold at the end.
type ack struct {
	kind api.Kind
	id   string
	what string
}

func (a *actions) stop() {
	for _, t := range a.threads {
		t.end()
	}
}

func (a *actions) spawn(name string, f func()) {
	a.threads = append(a.threads, a.w.spawn(nil, name, func(*thread) { f() }))
}

// apply sends a batch to one node after another until one knows the outcome.
func (a *actions) apply(id string, cmds ...api.Command) error {
	w := a.w
	for range 60 {
		m := w.nodes[w.rng.IntN(len(w.nodes))]
		if !m.alive() {
			w.wait(w.between(100*time.Millisecond, time.Second))
			continue
		}
		_, err := view{m: m, p: m.proc}.Apply(context.Background(), api.Batch{ID: id, At: m.wall().UTC(), Commands: cmds})
		if api.CodeOf(err) != api.CodeUnavailable {
			return err
		}
		w.wait(w.between(100*time.Millisecond, 2*time.Second))
	}
	return errUnavailable
}

// change writes the spec of an object it has read before, and retries on a conflict.
func change[T any](a *actions, id string, kind api.Kind, objects map[string]T, meta func(T) api.Meta, spec func(T) (any, bool)) {
	for try := range 4 {
		x, ok := objects[id]
		if !ok || meta(x).DeletedAt != nil {
			return
		}
		s, ok := spec(x)
		if !ok {
			return
		}
		err := a.apply(fmt.Sprintf("%s-%s-%d-%d", kind, id, a.w.now, try), api.Command{Op: api.OpPutSpec, Kind: kind, ID: id, Expect: meta(x).Revision,
			Labels: meta(x).Labels, Data: api.Encode(s)})
		if err == nil {
			a.w.logf("operator", "%s %s: %s", kind, id, api.Encode(s))
		}
		if api.CodeOf(err) != api.CodeConflict {
			return
		}
	}
}

func (a *actions) instance(id string, f func(in api.Instance, s *api.InstanceSpec) bool) {
	change(a, id, api.KindInstance, a.w.truth.Instances, func(in api.Instance) api.Meta { return in.Meta }, func(in api.Instance) (any, bool) {
		s := in.Spec
		ok := f(in, &s)
		return s, ok && api.ChangeInstance(in.Spec, s) == nil
	})
}

func (a *actions) node(id string, f func(s *api.NodeSpec)) {
	change(a, id, api.KindNode, a.w.truth.Nodes, func(n api.Node) api.Meta { return n.Meta }, func(n api.Node) (any, bool) {
		s := n.Spec
		f(&s)
		return s, true
	})
}

var finalizers = []string{api.FinalizerAgent}

// begin creates the objects that all other actions need.
func (a *actions) begin() {
	putSpec := func(kind api.Kind, id, name string, spec any, fin []string) api.Command {
		return api.Command{Op: api.OpPutSpec, Kind: kind, ID: id, Name: name, Finalizers: fin, Data: api.Encode(spec)}
	}
	_ = a.apply("begin",
		putSpec(api.KindFlavor, "flv-1", "small", api.FlavorSpec{Vcpus: 1, MemoryBytes: 1 << 30, RootBytes: 1 << 20}, nil),
		putSpec(api.KindFlavor, "flv-2", "large", api.FlavorSpec{Vcpus: 3, MemoryBytes: 3 << 30, RootBytes: 1 << 20}, nil),
		putSpec(api.KindGPUPool, "pool-1", "default", api.GPUPoolSpec{}, nil),
		putSpec(api.KindImage, "img-1", "debian", api.ImageSpec{Format: "raw", URL: imageURL}, finalizers))
}

// create creates an instance together with its root volume, as the API server does.
func (a *actions) create(s api.InstanceSpec) {
	a.instances++
	id := fmt.Sprintf("ins-%02d", a.instances)
	vol := "vol-" + id
	a.w.disks.roots[api.InstanceID(id)] = api.VolumeID(vol)
	err := a.apply("create-"+id,
		api.Command{Op: api.OpPutSpec, Kind: api.KindInstance, ID: id, Name: id, Organization: "org-1", Project: "prj-1", Finalizers: finalizers, Data: api.Encode(s)},
		api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: vol, Name: id + "-root", Organization: "org-1", Project: "prj-1", Finalizers: finalizers,
			Data: api.Encode(api.VolumeSpec{SizeBytes: 1 << 20, Image: s.Image, Instance: api.InstanceID(id), Root: true, Pool: s.StoragePool})})
	// A retry after a lost answer learns late that the instance was created; it may have been
	// deleted by then.
	if err == nil && !a.removed[id] {
		a.w.logf("operator", "created %s: %s", id, api.Encode(s))
		a.acked["create-"+id] = ack{api.KindInstance, id, "created"}
	}
}

func (a *actions) remove(kind api.Kind, id string) {
	a.w.logf("operator", "deletes %s %s", kind, id)
	a.removed[id] = true
	for b, k := range a.acked {
		if k.id == id {
			delete(a.acked, b)
		}
	}
	if a.apply(fmt.Sprintf("delete-%s-%d", id, a.w.now), api.Command{Op: api.OpDelete, Kind: kind, ID: id, Expect: api.AnyRevision}) == nil {
		a.acked["delete-"+id] = ack{kind, id, "deleted"}
	}
}

// draw draws the actions of the whole run.
func (a *actions) draw(r *rand.Rand) (list []planned) {
	w := a.w
	moment := func(from, to time.Duration) time.Duration { return from + time.Duration(r.Int64N(int64(to-from))) }
	add := func(at time.Duration, name string, f func()) {
		list = append(list, planned{at, "operator " + name, func() { a.spawn("operator", f) }})
	}
	spec := func() api.InstanceSpec {
		s := api.InstanceSpec{Flavor: "flv-1", Image: "img-1", Power: api.PowerRunning, Priority: int64(r.IntN(101)), Ephemeral: r.IntN(4) == 0}
		if r.IntN(3) == 0 {
			s.Flavor = "flv-2"
		}
		switch r.IntN(4) {
		case 0:
			s.StoragePool = api.PoolLocal
		case 1:
			if w.shared != nil {
				s.StoragePool = api.PoolShared
			}
		}
		if r.IntN(4) == 0 {
			s.Vgpu = &api.VGPUSpec{VramBytes: int64(1+r.IntN(5)) << 30, SharePercent: int64(20 * r.IntN(4)), Pool: "default"}
		}
		return s
	}
	add(8*time.Second, "begins", a.begin)
	for range 3 + r.IntN(7) {
		s := spec()
		add(moment(15*time.Second, 40*time.Second), "creates", func() { a.create(s) })
	}
	kinds := 16
	if w.o.Attach {
		kinds = 20
	}
	added, removed := 0, 0
	for range 5 + r.IntN(15) {
		at, pick, coin := moment(35*time.Second, w.o.Storm), r.IntN(1<<30), r.IntN(2) == 0
		some := func() string { // picks an instance that exists at that time
			ids := slices.Sorted(keys(w.truth.Instances))
			if len(ids) == 0 {
				return ""
			}
			return ids[pick%len(ids)]
		}
		node := fmt.Sprintf("node-%d", 1+pick%len(w.nodes))
		switch r.IntN(kinds) {
		case 0, 1:
			s := spec()
			add(at, "creates", func() { a.create(s) })
		case 2:
			add(at, "deletes an instance", func() {
				if id := some(); id != "" {
					a.remove(api.KindInstance, id)
				}
			})
		case 3, 4:
			add(at, "stops or starts", func() {
				id, bound := some(), a.bound()
				if coin {
					a.power(id, api.PowerStopped)
					return
				}
				if len(bound) > 0 {
					id = bound[pick%len(bound)]
					a.power(id, api.PowerStopped)
					w.wait(w.between(5*time.Second, 20*time.Second)) // usually until it has stopped
					a.migrate(id, "", pick)
					w.wait(w.between(0, 20*time.Second))
				}
				a.power(id, api.PowerRunning)
			})
		case 5:
			add(at, "restarts", func() {
				a.instance(some(), func(_ api.Instance, s *api.InstanceSpec) bool { s.Restarts++; return true })
			})
		case 6:
			add(at, "resizes", func() {
				a.instance(some(), func(_ api.Instance, s *api.InstanceSpec) bool {
					s.Flavor = api.FlavorID(fmt.Sprintf("flv-%d", 1+pick%2))
					return true
				})
			})
		case 7, 8:
			add(at, "drains or undrains "+node, func() { a.node(node, func(s *api.NodeSpec) { s.Drain = coin }) })
		case 9, 10, 11:
			add(at, "migrates", func() {
				if coin {
					a.migrate(some(), api.NodeID(node), pick)
				} else {
					a.migrate(some(), "", pick)
				}
			})
		case 12:
			add(at, "aborts migrations", func() {
				for _, id := range slices.Sorted(keys(w.truth.Migrations)) {
					change(a, id, api.KindMigration, w.truth.Migrations, func(m api.Migration) api.Meta { return m.Meta },
						func(m api.Migration) (any, bool) {
							s := m.Spec
							s.Abort = true
							return s, !m.Assignment.Phase.Ended()
						})
				}
			})
		case 13:
			if added++; added == 1 {
				add(at, "adds a node", func() { w.addMachine(w.shared != nil).on() })
			}
		case 14:
			if removed++; removed == 1 {
				add(at, "removes "+node+" if it is off", func() { a.force(w.machine(api.NodeID(node))) })
			}
		case 15, 16:
			add(at, "creates, deletes or migrates a volume", func() {
				if pick%4 == 0 {
					a.migrateVolume(pick)
					return
				}
				a.volume(coin, pick%3 > 0)
			})
		case 17, 18, 19:
			add(at, "attaches or detaches a volume", func() { a.attach(pick, some(), coin || pick%3 > 0) })
		}
	}
	return list
}

func (a *actions) power(id string, p api.Power) {
	a.instance(id, func(_ api.Instance, s *api.InstanceSpec) bool { s.Power = p; return true })
}

// bound returns the instances whose disks only their nodes have.
func (a *actions) bound() (ids []string) {
	for _, id := range slices.Sorted(keys(a.w.truth.Instances)) {
		in := a.w.truth.Instances[id]
		if v, ok := a.w.truth.Volumes[string(in.Assignment.RootVolume)]; ok && !api.SharedPool(v.Assignment.Pool) && !in.Spec.Ephemeral {
			ids = append(ids, id)
		}
	}
	return ids
}

// migrate asks for a migration of an instance, as the API does.
func (a *actions) migrate(id string, target api.NodeID, number int) {
	in, ok := a.w.truth.Instances[id]
	if !ok {
		return
	}
	m := api.MigrationSpec{Instance: api.InstanceID(id), Target: target, Offline: api.AtRest(in)}
	mig := fmt.Sprintf("mig-%d", number)
	if a.apply(mig, api.Command{Op: api.OpPutSpec, Kind: api.KindMigration, ID: mig, Name: mig, Data: api.Encode(m)}) == nil {
		a.w.logf("operator", "asks for %s of %s to %q, stopped: %t", mig, id, m.Target, m.Offline)
	}
}

// migrateVolume asks for a migration of one of the data volumes, as the API does.
func (a *actions) migrateVolume(pick int) {
	if a.volumes == 0 {
		a.volume(true, false)
	}
	id, mig := fmt.Sprintf("vol-data-%d", 1+pick%a.volumes), fmt.Sprintf("mig-%d", pick)
	m := api.MigrationSpec{Volume: api.VolumeID(id), Offline: true}
	if a.apply(mig, api.Command{Op: api.OpPutSpec, Kind: api.KindMigration, ID: mig, Name: mig, Data: api.Encode(m)}) == nil {
		a.w.logf("operator", "asks for %s of %s", mig, id)
	}
}

// force removes a node that the operator is certain is off for good.
func (a *actions) force(m *machine) {
	off := 0
	for _, o := range a.w.nodes {
		if !o.power {
			off++
		}
	}
	if m.power || off > 1 || len(a.w.nodes) < 4 {
		return
	}
	m.gone = true
	a.remove(api.KindNode, string(m.id))
}

// attach attaches one of the data volumes to the instance or detaches it, as the API does.
func (a *actions) attach(pick int, instance string, on bool) {
	if a.volumes == 0 {
		a.volume(true, pick%2 > 0)
	}
	id := fmt.Sprintf("vol-data-%d", 1+pick%a.volumes)
	change(a, id, api.KindVolume, a.w.truth.Volumes, func(v api.Volume) api.Meta { return v.Meta }, func(v api.Volume) (any, bool) {
		s := v.Spec
		if s.Instance = ""; on {
			s.Instance = api.InstanceID(instance)
		}
		return s, s.Instance == "" || v.Status.Attached == "" || v.Status.Attached == s.Instance
	})
}

// volume creates a data volume that is attached to no instance, or deletes the last one.
func (a *actions) volume(create, shared bool) {
	if !create && a.volumes > 0 {
		id := fmt.Sprintf("vol-data-%d", a.volumes)
		if v, ok := a.w.truth.Volumes[id]; ok && v.Spec.Instance == "" && v.Status.Attached == "" {
			a.remove(api.KindVolume, id)
		}
		return
	}
	a.volumes++
	id := fmt.Sprintf("vol-data-%d", a.volumes)
	s := api.VolumeSpec{SizeBytes: 1 << 20, Pool: api.PoolLocal}
	if shared {
		s.Pool = ""
		if a.w.o.Attach {
			s.Pool = api.PoolShared
		}
	}
	_ = a.apply(fmt.Sprintf("create-%s-%d", id, a.w.now), api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: id, Name: id, Organization: "org-1", Project: "prj-1",
		Finalizers: finalizers, Data: api.Encode(s)})
}
