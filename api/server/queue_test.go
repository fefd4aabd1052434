package server_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server/servertest"
)

// fieldOf returns the field of a domain error.
func fieldOf(err error) string {
	var e *api.Error
	errors.As(err, &e)
	if e == nil {
		return ""
	}
	return e.Field
}

// TestWhenFull checks what a creation does when no node has room: by default and with
// Queue it is done, and a dry run shows the place in the queue; with Refuse it fails at
// the part that does not fit.
func TestWhenFull(t *testing.T) {
	e := servertest.Start(t, nil)
	w := worldOf(t, e)
	ctx := t.Context()
	instances := client.Of[api.Instance](w.op)
	vgpu := &api.VGPUSpec{VramBytes: 1 << 30}
	wanted := func(name string, full api.WhenFull, g *api.VGPUSpec, until *time.Time) api.Instance {
		return api.Instance{Meta: api.Meta{Name: name, Project: w.web}, Spec: api.InstanceSpec{Flavor: "small", Image: "debian", WhenFull: full, Vgpu: g, QueueUntil: until}}
	}
	past, future := time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	for _, c := range []struct {
		name     string
		in       api.Instance
		full     bool // no room at all
		onlyVGPU bool // no room for a virtual GPU
		code     api.Code
		field    string
	}{
		{name: "refuse-fits", in: wanted("a1", api.WhenFullRefuse, vgpu, nil)},
		{name: "default-waits", in: wanted("a2", "", vgpu, nil), full: true},
		{name: "queue-waits", in: wanted("a3", api.WhenFullQueue, vgpu, &future), full: true},
		{name: "refuse-gpu", in: wanted("a4", api.WhenFullRefuse, vgpu, nil), full: true, onlyVGPU: true, code: api.CodeNoCapacity, field: "spec.vgpu"},
		{name: "refuse-machine", in: wanted("a5", api.WhenFullRefuse, vgpu, nil), full: true, code: api.CodeNoCapacity, field: "spec.flavor"},
		{name: "refuse-plain", in: wanted("a6", api.WhenFullRefuse, nil, nil), full: true, code: api.CodeNoCapacity, field: "spec.flavor"},
		{name: "word", in: wanted("a7", "Perhaps", nil, nil), code: api.CodeInvalid, field: "spec.whenFull"},
		{name: "past", in: wanted("a8", "", nil, &past), code: api.CodeInvalid, field: "spec.queueUntil"},
		{name: "deadline-of-refused", in: wanted("a9", api.WhenFullRefuse, nil, &future), code: api.CodeInvalid, field: "spec.queueUntil"},
	} {
		e.Room.Fill("", false, 0)
		if c.full {
			e.Room.Fill("no node fits: n1: 1 GiB of VRAM requested, 0 B of 8 GiB free", c.onlyVGPU, 2)
		}
		dry, dryErr := instances.DryRun().Create(ctx, c.in)
		_, err := instances.Create(ctx, c.in)
		for _, err := range []error{dryErr, err} {
			if (err != nil) != (c.code != "") || err != nil && api.CodeOf(err) != c.code || c.field != "" && fieldOf(err) != c.field {
				t.Errorf("%s: error = %v at %q, want code %q at %q", c.name, err, fieldOf(err), c.code, c.field)
			}
		}
		if c.code != "" {
			continue
		}
		var want *api.InstanceQueue
		if c.full {
			want = &api.InstanceQueue{Position: 3, Length: 3}
		}
		if diff := cmp.Diff(want, dry.Queue); diff != "" {
			t.Errorf("%s: place in the dry run differs (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestPlaceInQueue checks that an instance that waits shows its place when it is read
// and listed, one that has a node does not, and the store has none of it.
func TestPlaceInQueue(t *testing.T) {
	e := servertest.Start(t, nil)
	w := worldOf(t, e)
	ctx := t.Context()
	instances := client.Of[api.Instance](w.op)
	since := time.Now().UTC().Truncate(time.Second)
	for name, a := range map[string]api.InstanceAssignment{
		"waits": {QueuedAt: &since, Reason: "no node fits"},
		"runs":  {QueuedAt: &since, PlacedAt: &since, Node: "node-1"},
	} {
		in, err := instances.Create(ctx, api.Instance{Meta: api.Meta{Name: name, Project: w.web}, Spec: api.InstanceSpec{Flavor: "small", Image: "debian"}})
		if err != nil {
			t.Fatal(err)
		}
		e.Apply(t, api.Command{Op: api.OpAssign, Kind: api.KindInstance, ID: in.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(a)})
	}
	e.Room.Fill("full", false, 4)
	want := map[string]*api.InstanceQueue{"runs": nil, "waits": {Position: 5, Length: 5, Since: &since}}
	listed, read := map[string]*api.InstanceQueue{}, map[string]*api.InstanceQueue{}
	for in, err := range instances.All(ctx, client.Query{Project: w.web}) {
		if err != nil {
			t.Fatal(err)
		}
		listed[in.Meta.Name] = in.Queue
		one, err := instances.Get(ctx, in.Meta.ID, client.Query{})
		if err != nil {
			t.Fatal(err)
		}
		read[in.Meta.Name] = one.Queue
	}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("places in the list differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("places when read differ (-want +got):\n%s", diff)
	}
}

// TestResizeNeedsRoom checks what a change of the size does when there is no room: it is
// refused at the part that does not fit, unless the instance is to wait, and a dry run
// shows the same. Changes of nothing else are not refused.
func TestResizeNeedsRoom(t *testing.T) {
	e := servertest.Start(t, nil)
	w := worldOf(t, e)
	ctx := t.Context()
	instances := client.Of[api.Instance](w.op)
	vgpu := func(n int64) *api.VGPUSpec { return &api.VGPUSpec{VramBytes: n << 30} }
	for _, c := range []struct {
		name     string
		unplaced bool
		onlyVGPU bool
		change   func(*api.InstanceSpec)
		code     api.Code
		field    string
		waits    bool
	}{
		{name: "vgpu", onlyVGPU: true, change: func(s *api.InstanceSpec) { s.Vgpu = vgpu(2) }, code: api.CodeNoCapacity, field: "spec.vgpu"},
		{name: "machine", change: func(s *api.InstanceSpec) { s.Vgpu = vgpu(2) }, code: api.CodeNoCapacity, field: "spec.flavor"},
		{name: "flavor", change: func(s *api.InstanceSpec) { s.Flavor = "large" }, code: api.CodeNoCapacity, field: "spec.flavor"},
		{name: "refuse", change: func(s *api.InstanceSpec) { s.Flavor, s.WhenFull = "large", api.WhenFullRefuse }, code: api.CodeNoCapacity, field: "spec.flavor"},
		{name: "queue", change: func(s *api.InstanceSpec) { s.Flavor, s.WhenFull = "large", api.WhenFullQueue }, waits: true},
		{name: "same", change: func(s *api.InstanceSpec) { s.Priority, s.Flavor = 3, "small" }},
		{name: "unplaced", unplaced: true, change: func(s *api.InstanceSpec) { s.Flavor = "large" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			e.Room.Fill("", false, 0)
			if c.name == "vgpu" { // once
				must(t, ret(client.Of[api.Flavor](w.op).Create(ctx, api.Flavor{Meta: api.Meta{Name: "large"}, Spec: api.FlavorSpec{Vcpus: 8, MemoryBytes: 8 << 30, RootBytes: 1 << 30}})))
			}
			in := must(t, ret(instances.Create(ctx, api.Instance{Meta: api.Meta{Name: c.name, Project: w.web}, Spec: api.InstanceSpec{Flavor: "small", Image: "debian", Vgpu: vgpu(1)}}))).v
			if !c.unplaced {
				e.Apply(t, api.Command{Op: api.OpAssign, Kind: api.KindInstance, ID: in.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(api.InstanceAssignment{Node: "node-1"})})
			}
			in = must(t, ret(instances.Get(ctx, in.Meta.ID, client.Query{}))).v
			e.Room.Fill("no node fits: n1: full", c.onlyVGPU, 2)
			c.change(&in.Spec)
			tried, dryErr := instances.DryRun().Update(ctx, in.Meta.ID, in)
			changed, err := instances.Update(ctx, in.Meta.ID, in)
			for _, err := range []error{dryErr, err} {
				if api.CodeOf(err) != c.code && (err != nil || c.code != "") || c.code != "" && fieldOf(err) != c.field {
					t.Errorf("error = %v at %q, want code %q at %q", err, fieldOf(err), c.code, c.field)
				}
			}
			for _, o := range []api.Instance{tried, changed} {
				waits := o.Queue != nil && o.Queue.Position == 3 && len(o.Warnings) == 1 && o.Warnings[0].Code == api.WarnNoRoom
				if waits != c.waits {
					t.Errorf("response has place %+v and warnings %+v, want a place: %t", o.Queue, o.Warnings, c.waits)
				}
			}
			if now := must(t, ret(instances.Get(ctx, in.Meta.ID, client.Query{}))).v; (now.Meta.Generation == in.Meta.Generation) != (c.code != "") {
				t.Errorf("generation after the change = %d, was %d; want it changed if nothing was refused", now.Meta.Generation, in.Meta.Generation)
			}
		})
	}
}

// TestMigrationNeedsRoom checks that a migration is refused, in a dry run as well, if no
// node can take the instance, and that a dry run shows the target.
func TestMigrationNeedsRoom(t *testing.T) {
	e := servertest.Start(t, nil)
	w := worldOf(t, e)
	ctx := t.Context()
	in := must(t, ret(client.Of[api.Instance](w.op).Create(ctx, api.Instance{Meta: api.Meta{Name: "a", Project: w.web}, Spec: api.InstanceSpec{Flavor: "small", Image: "debian"}}))).v
	e.Apply(t,
		api.Command{Op: api.OpAssign, Kind: api.KindInstance, ID: in.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(api.InstanceAssignment{Node: "node-1"})},
		api.Command{Op: api.OpReport, Kind: api.KindInstance, ID: in.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(api.InstanceStatus{Phase: api.InstanceRunning})})
	migrations := client.Of[api.Migration](w.op)
	m := api.Migration{Spec: api.MigrationSpec{Instance: "a"}}
	tried := must(t, ret(migrations.DryRun().Create(ctx, m))).v
	if a := tried.Assignment; a.Source != "node-1" || a.Target != "node-2" {
		t.Errorf("assignment in the dry run = %+v, want node-1 to node-2", a)
	}
	e.Room.Fill("no node fits: n2: full", false, 0)
	_, err := migrations.DryRun().Create(ctx, m)
	wantErr(t, err, api.CodeNoCapacity, "spec.target")
	_, err = migrations.Create(ctx, m)
	wantErr(t, err, api.CodeNoCapacity, "spec.target")
	e.Room.Fill("", false, 0)
	if real := must(t, ret(migrations.Create(ctx, m))).v; real.Assignment.Target != "" {
		t.Errorf("assignment in the response to a migration = %+v, want none: the planner makes it", real.Assignment)
	}
}

// TestVolumeMigration checks that a volume is migrated by name, without an instance, and
// that a dry run shows where to.
func TestVolumeMigration(t *testing.T) {
	e := servertest.Start(t, nil)
	w := worldOf(t, e)
	ctx := t.Context()
	v := must(t, ret(client.Of[api.Volume](w.op).Create(ctx, api.Volume{Meta: api.Meta{Name: "data", Project: w.web}, Spec: api.VolumeSpec{SizeBytes: 1 << 30}}))).v
	e.Apply(t, api.Command{Op: api.OpAssign, Kind: api.KindVolume, ID: v.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(api.VolumeAssignment{Node: "node-1", Pool: api.PoolLocal})})
	migrations := client.Of[api.Migration](w.op)
	m := api.Migration{Spec: api.MigrationSpec{Volume: "data"}}
	tried := must(t, ret(migrations.DryRun().Create(ctx, m))).v
	if a := tried.Assignment; a.Source != "node-1" || a.Target != "node-2" {
		t.Errorf("assignment in the dry run = %+v, want node-1 to node-2", a)
	}
	e.Room.Fill("no other node can store it", false, 0)
	_, err := migrations.Create(ctx, m)
	wantErr(t, err, api.CodeNoCapacity, "spec.target")
	e.Room.Fill("", false, 0)
	_, err = migrations.Create(ctx, api.Migration{Spec: api.MigrationSpec{Volume: "data", Instance: "data"}})
	wantErr(t, err, api.CodeInvalid, "spec.volume")
	_, err = migrations.Create(ctx, api.Migration{})
	wantErr(t, err, api.CodeInvalid, "spec.instance")
	_, err = migrations.Create(ctx, api.Migration{Spec: api.MigrationSpec{Volume: "other"}})
	wantErr(t, err, api.CodeInvalid, "spec.volume")
	if real := must(t, ret(migrations.Create(ctx, m))).v; real.Spec.Volume != api.VolumeID(v.Meta.ID) || !real.Spec.Offline {
		t.Errorf("spec of the migration = %+v, want the ID of the volume, offline", real.Spec)
	}
}
