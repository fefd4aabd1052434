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
