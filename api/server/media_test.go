package server_test

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// TestMedia checks instances without an image: what is in their drives, which is held,
// and their blank root volumes.
func TestMedia(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	c := w.as(api.RoleMember, w.acme, w.web)
	images, instances := client.Of[api.Image](c), client.Of[api.Instance](c)
	disc := func(name string, can api.ImageAbilities) api.Image {
		return must(t, ret(images.Create(ctx, api.Image{Meta: api.Meta{Name: name, Project: w.web}, Spec: api.ImageSpec{Format: api.FormatISO, Abilities: can}}))).v
	}
	windows, drivers := disc("windows", api.ImageAbilities{OS: api.OSWindows}), disc("drivers", api.ImageAbilities{})
	of := func(name string, s api.InstanceSpec) api.Instance {
		s.Flavor = "small"
		return api.Instance{Meta: api.Meta{Name: name, Project: w.web}, Spec: s}
	}
	in := must(t, ret(instances.Create(ctx, of("server", api.InstanceSpec{Media: []api.ImageID{"windows", "drivers"}, RootBytes: 8 << 30})))).v
	s := in.Spec
	if len(s.Media) != 2 || string(s.Media[0]) != windows.Meta.ID || string(s.Media[1]) != drivers.Meta.ID || s.OS != api.OSWindows || !s.TPM || !s.SecureBoot {
		t.Errorf("spec = %+v, want the IDs of both media and a machine for Windows", s)
	}
	root := must(t, ret(client.Of[api.Volume](c).Get(ctx, in.Meta.ID+"-root", client.Query{}))).v
	if root.Spec.Image != "" || root.Spec.SizeBytes != 8<<30 || !root.Spec.Root {
		t.Errorf("root volume = %+v, want a blank one of 8 GiB", root.Spec)
	}
	for _, i := range []api.Image{windows, drivers} {
		if _, err := images.Delete(ctx, i.Meta.ID); api.CodeOf(err) != api.CodeInUse {
			t.Errorf("delete of %s in a drive: %v, want %s", i.Meta.Name, err, api.CodeInUse)
		}
	}
	in.Spec.Media = []api.ImageID{"", "drivers"}
	in = must(t, ret(instances.Update(ctx, in.Meta.ID, in))).v
	if _, err := images.Delete(ctx, windows.Meta.ID); err != nil {
		t.Errorf("delete of an ejected medium: %v", err)
	}
	in.Spec.Media = nil
	_, err := instances.Update(ctx, in.Meta.ID, in)
	wantErr(t, err, api.CodeInvalid, "spec.image")

	in = w.stopped(t, c, in.Meta.ID)
	again := must(t, ret(c.ReinstallInstance(ctx, in.Meta.ID, api.InstanceReinstall{}))).v
	fresh := must(t, ret(client.Of[api.Volume](c).Get(ctx, string(again.Spec.RootVolume), client.Query{}))).v
	if fresh.Spec.Image != "" || fresh.Spec.SizeBytes != 8<<30 || again.Spec.Image != "" {
		t.Errorf("reinstalled with volume %+v and image %q, want another blank volume of 8 GiB", fresh.Spec, again.Spec.Image)
	}
	_, err = c.ReinstallInstance(ctx, w.stopped(t, c, in.Meta.ID).Meta.ID, api.InstanceReinstall{Image: "drivers"})
	wantErr(t, err, api.CodeInvalid, "image")
}

// TestMediaRefused checks that discs are not used as disks, nor disks as discs.
func TestMediaRefused(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	c := w.as(api.RoleMember, w.acme, w.web)
	must(t, ret(client.Of[api.Image](c).Create(ctx, api.Image{Meta: api.Meta{Name: "disc", Project: w.web}, Spec: api.ImageSpec{Format: api.FormatISO}})))
	must(t, ret(client.Of[api.Flavor](w.op).Create(ctx, api.Flavor{Meta: api.Meta{Name: "sizeless"}, Spec: api.FlavorSpec{Vcpus: 1, MemoryBytes: 1 << 30}})))
	for field, s := range map[string]api.InstanceSpec{
		"spec.image":     {Flavor: "small", Image: "disc"},
		"spec.media":     {Flavor: "small", Media: []api.ImageID{"debian"}},
		"spec.rootBytes": {Flavor: "sizeless", Media: []api.ImageID{"disc"}},
		"spec.ephemeral": {Flavor: "small", Media: []api.ImageID{"disc"}, Ephemeral: true},
	} {
		_, err := client.Of[api.Instance](c).Create(ctx, api.Instance{Meta: api.Meta{Name: "x", Project: w.web}, Spec: s})
		wantErr(t, err, api.CodeInvalid, field)
	}
	for _, media := range [][]api.ImageID{{"none"}, {"", "none"}, {"disc", "disc", "disc"}} {
		_, err := client.Of[api.Instance](c).Create(ctx, api.Instance{Meta: api.Meta{Name: "x", Project: w.web}, Spec: api.InstanceSpec{Flavor: "small", Media: media}})
		wantErr(t, err, api.CodeInvalid, "spec.media")
	}
	_, err := client.Of[api.Volume](c).Create(ctx, api.Volume{Meta: api.Meta{Name: "x", Project: w.web}, Spec: api.VolumeSpec{Image: "disc", SizeBytes: 1 << 30}})
	wantErr(t, err, api.CodeInvalid, "spec.image")
}
