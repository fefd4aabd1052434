package server_test

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// TestRescue checks that a rescue restarts or starts an instance, that its medium is
// held, and what is refused.
func TestRescue(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	c := w.as(api.RoleMember, w.acme, w.web)
	images := client.Of[api.Image](c)
	disc := must(t, ret(images.Create(ctx, api.Image{Meta: api.Meta{Name: "live", Project: w.web}, Spec: api.ImageSpec{Format: api.FormatISO}}))).v
	in := must(t, ret(w.instance(c, "web-1"))).v
	runs := in.Spec.Restarts
	in = must(t, ret(c.RescueInstance(ctx, in.Meta.ID, api.InstanceRescue{Medium: "live"}))).v
	if string(in.Spec.Rescue) != disc.Meta.ID || in.Spec.Restarts != runs+1 || in.Spec.Power != api.PowerRunning {
		t.Errorf("spec = %+v, want the medium and a restart", in.Spec)
	}
	if _, err := images.Delete(ctx, disc.Meta.ID); api.CodeOf(err) != api.CodeInUse {
		t.Errorf("delete of the medium: %v, want %s", err, api.CodeInUse)
	}
	in = must(t, ret(c.UnrescueInstance(ctx, in.Meta.ID))).v
	again := must(t, ret(c.UnrescueInstance(ctx, in.Meta.ID))).v
	if in.Spec.Rescue != "" || in.Spec.Restarts != runs+2 || again.Spec.Restarts != in.Spec.Restarts {
		t.Errorf("after the rescue = %+v, then %+v, want one restart without the medium", in.Spec, again.Spec)
	}

	w.stopped(t, c, in.Meta.ID)
	in = must(t, ret(c.RescueInstance(ctx, in.Meta.ID, api.InstanceRescue{Medium: "live"}))).v
	if in.Spec.Power != api.PowerRunning || in.Spec.Restarts != runs+2 {
		t.Errorf("rescue of a stopped instance = %+v, want it started", in.Spec)
	}
	w.stopped(t, c, in.Meta.ID)
	if in = must(t, ret(c.UnrescueInstance(ctx, in.Meta.ID))).v; in.Spec.Power != api.PowerStopped {
		t.Errorf("end of the rescue of a stopped instance = %+v, want it stopped", in.Spec)
	}
	if _, err := images.Delete(ctx, disc.Meta.ID); err != nil {
		t.Errorf("delete of the medium after the rescue: %v", err)
	}
}

// TestRescueRefused checks what cannot be a rescue medium, and what cannot be rescued.
func TestRescueRefused(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	c := w.as(api.RoleMember, w.acme, w.web)
	must(t, ret(client.Of[api.Image](c).Create(ctx, api.Image{Meta: api.Meta{Name: "live", Project: w.web}, Spec: api.ImageSpec{Format: api.FormatISO}})))
	in := must(t, ret(w.instance(c, "web-1"))).v
	for _, medium := range []api.ImageID{"", "none", "debian"} {
		_, err := c.RescueInstance(ctx, in.Meta.ID, api.InstanceRescue{Medium: medium})
		wantErr(t, err, api.CodeInvalid, "medium")
	}
	instances := client.Of[api.Instance](c)
	_, err := instances.Create(ctx, api.Instance{Meta: api.Meta{Name: "x", Project: w.web}, Spec: api.InstanceSpec{Flavor: "small", Image: "debian", Rescue: "live"}})
	wantErr(t, err, api.CodeInvalid, "spec.rescue")
	short := must(t, ret(instances.Create(ctx, api.Instance{Meta: api.Meta{Name: "short", Project: w.web}, Spec: api.InstanceSpec{Flavor: "small", Image: "debian", Ephemeral: true}}))).v
	if _, err := c.RescueInstance(ctx, short.Meta.ID, api.InstanceRescue{Medium: "live"}); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("rescue of an ephemeral instance: %v, want %s", err, api.CodeInvalid)
	}
	viewer := w.as(api.RoleViewer, w.acme, w.web)
	if _, err := viewer.RescueInstance(ctx, in.Meta.ID, api.InstanceRescue{Medium: "live"}); api.CodeOf(err) != api.CodeForbidden {
		t.Errorf("rescue by a viewer: %v, want %s", err, api.CodeForbidden)
	}
}
