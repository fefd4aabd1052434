package server_test

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// TestInstanceWarnings checks that an instance with a vGPU and an image that does not
// support one is created with a warning, and that there is no warning without a vGPU or
// for an image whose abilities are unknown.
func TestInstanceWarnings(t *testing.T) {
	w := newWorld(t)
	make := func(name, image string, vgpu *api.VGPUSpec, app string) []api.InstanceWarning {
		t.Helper()
		i := must(t, ret(client.Of[api.Instance](w.op).Create(t.Context(), api.Instance{Meta: api.Meta{Name: name, Project: w.web},
			Spec: api.InstanceSpec{Flavor: "small", Image: api.ImageID(image), App: api.AppID(app), Vgpu: vgpu, UserData: "#cloud-config\n"}}))).v
		// The warning is only in the response to the creation, not stored.
		if again := must(t, ret(client.Of[api.Instance](w.op).Get(t.Context(), i.Meta.ID, client.Query{}))).v; len(again.Warnings) > 0 {
			t.Errorf("instance %s read again has warnings %+v, want none", name, again.Warnings)
		}
		return i.Warnings
	}
	image := func(name string, can api.ImageAbilities) {
		must(t, ret(client.Of[api.Image](w.op).Create(t.Context(), api.Image{Meta: api.Meta{Name: name}, Spec: api.ImageSpec{Format: "qcow2", Public: true, Abilities: can}})))
	}
	image("cloud", api.ImageAbilities{Vgpu: api.VGPUNewKernel, GuestAgent: api.AgentAbsent})
	image("router", api.ImageAbilities{Vgpu: api.VGPUUnsupported})
	image("ordinary", api.ImageAbilities{Vgpu: api.VGPUSupported})
	image("unsaid", api.ImageAbilities{})
	must(t, ret(client.Of[api.App](w.op).Create(t.Context(), api.App{Meta: api.Meta{Name: "bench"},
		Spec: api.AppSpec{DisplayName: "Bench", Version: "1", Image: "unsaid", Abilities: api.ImageAbilities{Vgpu: api.VGPUUnsupported}}})))
	gpu := &api.VGPUSpec{VramBytes: 1 << 30}
	for _, c := range []struct {
		name, image, app string
		vgpu             *api.VGPUSpec
		want             string
	}{
		{"a", "cloud", "", gpu, api.WarnVGPUNewKernel},
		{"b", "router", "", gpu, api.WarnVGPUUnsupported},
		{"c", "router", "", nil, ""},
		{"d", "ordinary", "", gpu, ""},
		{"e", "unsaid", "", gpu, ""},
		{"f", "", "bench", gpu, api.WarnVGPUUnsupported}, // the app's own image is known
		{"g", "ordinary", "bench", gpu, ""},              // but not another image
	} {
		got := make(c.name, c.image, c.vgpu, c.app)
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || string(got[0].Code) != c.want || got[0].Message == "") {
			t.Errorf("warnings for image %s, app %q, vGPU %v = %+v, want code %q", c.image, c.app, c.vgpu != nil, got, c.want)
		}
	}
	_, err := client.Of[api.Image](w.op).Create(t.Context(), api.Image{Meta: api.Meta{Name: "odd"}, Spec: api.ImageSpec{Format: "raw", Abilities: api.ImageAbilities{Vgpu: "perhaps"}}})
	wantErr(t, err, api.CodeInvalid, "spec.abilities.vgpu")
}
